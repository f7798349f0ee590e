// Several heads: two questions at once, with one head and with two of half the size.
import { EMBED_DIM, heldOutAccuracy, train, withModel } from './train.mjs';

const cap = 1000;

export const headsExperiment = {
  name: 'heads',
  about: 'Which of 8 symbols stands in each half of 16 places, both in one answer; one layer. Muted: the first head\'s rows of wo set to 0.',
  cases: [1, 2].map((numHeads) => ({
    name: `${numHeads} head${numHeads > 1 ? 's' : ''} of ${EMBED_DIM / numHeads}`,
    cap,
    run({ engine, tasks, seed }) {
      const task = tasks.twoQuestions({ half: 8, symbols: 8, seed });
      return withModel(engine, task, seed, { mixer: 'attention', numHeads }, (model) => {
        const { steps } = train(model, task, { cap, more: cap });
        const heldOut = heldOutAccuracy(model, task, 2048);
        if (numHeads === 1) return { steps, 'held out': heldOut };
        mute(model, EMBED_DIM / numHeads);
        return { steps, 'held out': heldOut, 'a head muted': heldOutAccuracy(model, task, 2048) };
      });
    },
  })),
};

function mute(model, rows) {
  const parameters = model.parameters;
  parameters['layers.0.wo'].data.fill(0, 0, rows * EMBED_DIM);
  model.load(parameters);
}
