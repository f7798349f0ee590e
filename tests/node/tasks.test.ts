// The tasks of qkv/tasks: every answer by a rule of its own on the words, the split, the seeds and the balance of answers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';

import {
  associativeRecall, directedRelation, type Examples, parity, pronoun, type PronounExamples, recall, reorder, type ReorderExamples, type Task, twoQuestions,
} from 'qkv/tasks';

import { keysOf, mostHeldOut, type Shown, shownOf } from './support/tasks.js';

interface Tried {
  readonly name: string;
  readonly make: (seed: number) => Task;
  /** What is right, in the task's answers or as a position; from the words alone. */
  readonly rule: (shown: Shown) => readonly (string | number)[];
}

const count = (words: readonly string[], word: string) => words.filter((one) => one === word).length;
const OF_ANIMALS = ['tired', 'hungry', 'afraid', 'lazy', 'ill', 'old'];

function noun({ words }: Shown): string {
  const [active, passive] = [/^the (\w+) did not cross the (\w+) /.exec(words.join(' ')), /^the (\w+) was not crossed by the (\w+) /.exec(words.join(' '))];
  const [animal, place] = active ? [active[1]!, active[2]!] : [passive![2]!, passive![1]!];
  return OF_ANIMALS.includes(words.at(-1)!) ? animal : place;
}

const TASKS: readonly Tried[] = [
  { name: 'recall', make: (seed) => recall({ length: 6, symbols: 5, seed }), rule: ({ words }) => [words[0]!] },
  { name: 'recall, long', make: (seed) => recall({ length: 200, seed }), rule: ({ words }) => [words[0]!] },
  {
    name: 'associativeRecall', make: (seed) => associativeRecall({ pairs: 3, keys: 5, values: 4, seed }),
    rule: ({ words }) => [words[words.indexOf(words.at(-1)!) + 1]!],
  },
  { name: 'parity', make: (seed) => parity({ length: 12, seed }), rule: ({ words }) => [count(words, '1') % 2 ? 'odd' : 'even'] },
  {
    name: 'parity of one length', make: (seed) => parity({ length: 40, shortest: 40, seed }),
    rule: ({ words }) => [count(words, '1') % 2 ? 'odd' : 'even'],
  },
  {
    name: 'twoQuestions', make: (seed) => twoQuestions({ half: 4, symbols: 3, seed }),
    rule: ({ words }) => [words.slice(0, 4).find((word) => word !== '.')! + words.slice(4, 8).find((word) => word !== '.')!],
  },
  {
    name: 'directedRelation', make: (seed) => directedRelation({ length: 4, animals: 7, seed }),
    rule: ({ words: [a, b, c, d] }) => [b!, c!, d!, a!],
  },
  { name: 'reorder', make: (seed) => reorder({ length: 3, contextLength: 5, symbols: 4, seed }), rule: ({ words, context }) => words.map((word) => context[Number(word) - 1]!) },
  {
    name: 'reorder, reversed', make: (seed) => reorder({ length: 3, contextLength: 5, symbols: 4, order: 'reversed', seed }),
    rule: ({ context: [, , c, d, e] }) => [e!, d!, c!],
  },
  { name: 'pronoun', make: (seed) => pronoun({ seed }), rule: (shown) => [shown.words.indexOf(noun(shown))] },
  { name: 'pronoun, the noun', make: (seed) => pronoun({ answer: 'noun', seed }), rule: (shown) => [noun(shown)] },
];

for (const { name, make, rule } of TASKS) {
  describe(name, () => {
    test('every answer is the one that a plain rule gives', () => {
      for (const seed of [0, 1, 2 ** 32 + 1]) {
        const task = make(seed);
        const { vocab, classes, readout } = task.model;
        assert.deepEqual([task.words.length, task.answers.length], [vocab, classes ?? 0], 'a word for each token, an answer for each class');
        assert.equal(readout === 'pointer', classes === undefined, 'a pointer has no classes, all others have');
        for (const examples of [task.batch(150), task.heldOut(Math.min(150, mostHeldOut(task)))]) {
          for (const shown of shownOf(task, examples)) {
            const told = shown.targets.map((target) => (classes === undefined ? target : task.answers[target]));
            assert.deepEqual(told, rule(shown), `seed ${seed}: ${shown.words.join(' ')} | ${shown.context.join(' ')}`);
          }
        }
      }
    });

    test('what is held out is never trained on', () => {
      const task = make(3);
      const heldOut = keysOf(task, task.heldOut());
      const trained = new Set(Array.from({ length: 20 }, () => keysOf(task, task.batch(250))).flat());
      assert.ok(trained.size > 50 && heldOut.length > 50, `there are ${trained.size} and ${heldOut.length}: too few to tell`);
      assert.deepEqual(heldOut.filter((key) => trained.has(key)), [], 'these are on both sides');
    });

    test('the seed alone says which examples there are', () => {
      const [task, again, other] = [make(5), make(5), make(6)];
      const first = task.batch(8);
      assert.deepEqual(again.batch(8), first, 'the same seed gave others');
      assert.notDeepEqual(other.batch(8), first, 'another seed gave the same');
      assert.notDeepEqual(task.batch(8), first, 'the second batch is the first');
      const [few, many] = [make(5).batch(3), keysOf(again, first)];
      assert.deepEqual(keysOf(again, few), many.slice(0, 3), 'a batch of 3 is no part of a batch of 8');
      assert.deepEqual(task.heldOut(20), make(5).heldOut(20), 'what is held out depends on the calls before');
      assert.deepEqual(keysOf(task, task.heldOut(20)), keysOf(task, task.heldOut()).slice(0, 20), '20 of them are not the first 20');
      assert.notDeepEqual(keysOf(other, other.heldOut(20)), keysOf(task, task.heldOut(20)), 'another seed holds out the same');
    });

    test('answers are equally frequent', () => {
      const task = make(7);
      for (const [what, examples] of [['to train on', task.batch(4000)], ['held out', task.heldOut(Math.min(4000, mostHeldOut(task)))]] as const) {
        const answered = shownOf(task, examples).flatMap((shown) => shown.targets.map((target) => task.answers[target] ?? shown.words[target]!));
        const answers = task.answers.length > 0 ? task.answers : [...new Set(answered)];
        const expected = answered.length / answers.length;
        for (const answer of answers) {
          const found = count(answered, answer);
          // Five standard deviations of a fair draw, and what a split by chance may add.
          const allowed = 5 * Math.sqrt(expected) + expected / 5;
          assert.ok(Math.abs(found - expected) <= allowed, `${what}, ${answer} is right ${found} times, expected ${expected} and at most ${allowed} off`);
        }
      }
    });

    test('words become the tokens they came from', () => {
      const task = make(0);
      const { tokens } = task.batch(1);
      assert.deepEqual(task.encode(task.decode(tokens.data)), tokens.data);
      assert.deepEqual(task.encode('  '), new Int32Array());
      assert.equal(task.decode([]), '');
    });
  });
}

describe('tasks', () => {
  test('make a large batch without an object for each row', () => {
    const script = "import('qkv/tasks').then(({ recall }) => console.log(recall({ length: 2 }).batch(2e6).tokens.data.length))";
    assert.equal(execFileSync(process.execPath, ['--max-old-space-size=64', '-e', script], { encoding: 'utf8' }).trim(), '4000000');
  });

  test('are the same on every host', () => {
    const task = recall({ length: 5, symbols: 4, seed: 1 });
    assert.deepEqual([keysOf(task, task.batch(4)), keysOf(task, task.heldOut(2))], [
      ['C B D B B | ', 'B D A D C | ', 'A B C B D | ', 'B B D A C | '], ['C C C B C | ', 'D C A A B | '],
    ]);
  });

  test('of one kind and seed share their split: a longer one does not test what a shorter one was trained on', () => {
    const [short, long] = [parity({ length: 10, seed: 4 }), parity({ length: 14, shortest: 9, seed: 4 })];
    const trained = new Set(Array.from({ length: 40 }, () => keysOf(short, short.batch(500))).flat());
    const tested = keysOf(long, long.heldOut(4000));
    assert.ok(tested.some((key) => key.length <= 20), 'none is as short as those trained on');
    assert.deepEqual(tested.filter((key) => trained.has(key)), []);
  });

  test('hold out about a fifth', () => {
    const task = recall({ length: 4, symbols: 6, seed: 2 });
    const [trained, heldOut] = [task.batch(30_000), task.heldOut(mostHeldOut(task))].map((examples) => new Set(keysOf(task, examples)).size) as [number, number];
    assert.equal(trained + heldOut, 6 ** 4, 'each sequence is on one side');
    assert.ok(heldOut > 0.17 * 6 ** 4 && heldOut < 0.23 * 6 ** 4, `${heldOut} of ${6 ** 4} are held out`);
  });

  test('of pronouns hold out triples in both orders of the words, a quarter of each adjective’s', () => {
    const task = pronoun({ seed: 8 });
    const triples = (examples: Examples) => shownOf(task, examples).map(({ words }) => {
      const nouns = words.filter((word) => task.words.indexOf(word) < 12);
      return [...nouns.sort(), words.at(-1)].join(' ');
    });
    const heldOut = triples(task.heldOut());
    assert.equal(heldOut.length, 216);
    assert.equal(new Set(heldOut).size, 108, 'each triple is there in both orders');
    for (const adjective of task.words.slice(12, 24)) {
      assert.equal(heldOut.filter((triple) => triple.endsWith(` ${adjective}`)).length, 18, `${adjective} is in as many as the others`);
    }
    const trained = new Set(triples(task.batch(20_000)));
    assert.equal(trained.size, 432 - 108, 'all others are trained on');
    assert.ok(heldOut.every((triple) => !trained.has(triple)));
  });

  test('of pronouns say where both nouns and "it" stand', () => {
    const task = pronoun();
    const examples: PronounExamples = task.batch(50);
    const { options: { at }, right, wrong, targets } = examples;
    shownOf(task, examples).forEach((shown) => {
      assert.equal(shown.words[at![shown.row]!], 'it');
      assert.equal(shown.words[right[shown.row]!], noun(shown));
      const other = task.words.indexOf(shown.words[wrong[shown.row]!]!);
      assert.ok(other >= 0 && other < 12 && wrong[shown.row] !== right[shown.row], 'the other noun');
    });
    assert.deepEqual(targets.data, right);
  });

  test('of reordering say where each answer stands in the context', () => {
    for (const order of ['given', 'reversed'] as const) {
      const examples: ReorderExamples = reorder({ length: 3, contextLength: 6, order }).batch(20);
      const { alignment, targets, options: { context } } = examples;
      assert.deepEqual([targets.shape, alignment.shape, context!.shape], [[20, 3], [20, 3], [20, 6]]);
      alignment.data.forEach((position, i) => assert.equal(context!.data[Math.floor(i / 3) * 6 + position], targets.data[i]));
    }
  });
});
