// What "it" looks at, and whether its answer flips with the adjective.
import { mean, train, withModel } from './train.mjs';

const cap = 600;
const ADJECTIVES_OF_A_KIND = 6;

export const pronounExperiment = {
  name: 'pronoun',
  about: 'Which noun "it" is: tested on 216 sentences of held-out triples. Flips: right, and right again with an adjective of the other kind. Weights are the last layer\'s, from "it".',
  cases: [['1 layer, free', 1, 'noun'], ['2 layers, free', 2, 'noun'], ['1 layer, pointer', 1, 'position'], ['2 layers, pointer', 2, 'position']].map(([name, layers, answer]) => ({
    name,
    cap,
    run({ engine, tasks, seed }) {
      const task = tasks.pronoun({ answer, seed });
      return withModel(engine, task, seed, { mixer: 'attention', layers }, (model) => {
        const { steps } = train(model, task, { cap, more: cap });
        const examples = task.heldOut();
        const [before, after] = [rightOnes(model, examples), rightOnes(model, flipped(task, examples))];
        return {
          steps,
          'held out': mean(before),
          flips: mean(before.map((isRight, i) => isRight * after[i])),
          ...weightsOf(model, examples),
        };
      });
    },
  })),
};

/** 1 where a sentence is answered right, else 0. */
function rightOnes(model, { tokens, targets, options }) {
  const { logits, weights } = model.forward(tokens, options);
  const answers = logits ?? weights;
  const width = answers.shape[1];
  return Array.from(targets.data, (target, i) => {
    const row = answers.data.subarray(i * width, (i + 1) * width);
    return Number(row.indexOf(Math.max(...row)) === target);
  });
}

/** The same sentences about the other noun. */
function flipped(task, { tokens, targets, options, right, wrong }) {
  const [count, length] = tokens.shape;
  const data = tokens.data.slice();
  const first = task.words.indexOf('tired');
  for (let i = 0; i < count; i++) {
    const at = i * length + options.lengths[i] - 1;
    data[at] = first + ((data[at] - first + ADJECTIVES_OF_A_KIND) % (2 * ADJECTIVES_OF_A_KIND));
  }
  // Nouns come first among the tokens, and are classes of the same numbers.
  const others = task.model.readout === 'pointer' ? wrong : wrong.map((position, i) => data[i * length + position]);
  return { tokens: { data, shape: tokens.shape }, targets: { data: others, shape: targets.shape }, options, right: wrong, wrong: right };
}

function weightsOf(model, { tokens, options, right, wrong }) {
  const { data, shape: [count, heads, length, keys] } = model.weights(tokens, options).at(-1);
  const toNoun = (positions) => mean(Array.from({ length: count }, (_, i) =>
    mean(Array.from({ length: heads }, (_, head) => data[((i * heads + head) * length + options.at[i]) * keys + positions[i]]))));
  return { 'it to the right noun': toNoun(right), 'to the other': toNoun(wrong) };
}
