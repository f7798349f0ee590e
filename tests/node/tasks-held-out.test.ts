// What the tasks of qkv/tasks hold out: how many different sequences there are, none twice, and no fact that is trained on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { associativeRecall, directedRelation, parity, recall, reorder, type Task, twoQuestions } from 'qkv/tasks';

import { keysOf, mostHeldOut } from './support/tasks.js';

/** All rows of so many words that the rule allows, a context after its tokens. */
function allRows(words: readonly string[], length: number, allowed: (tokens: readonly string[]) => boolean): string[] {
  let rows: string[][] = [[]];
  for (let i = 0; i < length; i++) rows = rows.flatMap((row) => words.map((word) => [...row, word]));
  return rows.filter(allowed).map((row) => row.join(' '));
}

const different = (words: readonly string[]) => new Set(words).size === words.length;
const symbols = (of: string) => [...of];
const halves = (row: readonly string[]) => [row.slice(0, 2), row.slice(2)];
const sided = (row: readonly string[]) => halves(row).every((half) => new Set(half.filter((word) => word !== '.')).size === 1);
const pairsOf = (row: readonly string[]) => [row.slice(0, 2), row.slice(2, 4)];
const associated = (row: readonly string[]) =>
  pairsOf(row).every(([key, value]) => /[A-Z]/.test(key!) && /\d/.test(value!)) && row[0] !== row[2] && [row[0], row[2]].includes(row[4]!);
const asked = (row: readonly string[]) => different(row.slice(0, 3)) && row.slice(0, 3).every((word) => /\d/.test(word)) && row.slice(3).every((word) => /[A-Z]/.test(word));
const bits = (shortest: number, length: number) => Array.from({ length: length - shortest + 1 }, (_, i) => allRows(['0', '1'], shortest + i, () => true)).flat();

/** How many different rows there are, counted one by one. */
const COUNTED: readonly (readonly [name: string, make: () => Task, rows: () => readonly string[]])[] = [
  ['recall, 32', () => recall({ length: 5, symbols: 2 }), () => allRows(symbols('AB'), 5, () => true)],
  ['recall, 81', () => recall({ length: 4, symbols: 3 }), () => allRows(symbols('ABC'), 4, () => true)],
  ['associativeRecall, 48', () => associativeRecall({ pairs: 2, keys: 3, values: 2 }), () => allRows(symbols('ABC01'), 5, associated)],
  ['associativeRecall, 96', () => associativeRecall({ pairs: 2, keys: 4, values: 2 }), () => allRows(symbols('ABCD01'), 5, associated)],
  ['parity, 56', () => parity({ length: 5, shortest: 3 }), () => bits(3, 5)],
  ['twoQuestions, 36', () => twoQuestions({ half: 2, symbols: 2 }), () => allRows(symbols('AB.'), 4, sided)],
  ['twoQuestions, 81', () => twoQuestions({ half: 2, symbols: 3 }), () => allRows(symbols('ABC.'), 4, sided)],
  ['directedRelation, 120', () => directedRelation({ length: 3, animals: 6 }), () => allRows(symbols('abcdef'), 3, different)],
  ['reorder, 48', () => reorder({ length: 3, symbols: 2 }), () => allRows(symbols('123AB'), 6, asked)],
  ['reorder, 162', () => reorder({ length: 3, symbols: 3 }), () => allRows(symbols('123ABC'), 6, asked)],
  ['reorder, 9', () => reorder({ length: 2, symbols: 3, order: 'reversed' }), () => allRows(symbols('ABC'), 2, () => true)],
  ['reorder, 81', () => reorder({ length: 2, contextLength: 4, symbols: 3, order: 'reversed' }), () => allRows(symbols('ABC'), 4, () => true)],
];

describe('different sequences are counted as there are:', () => {
  for (const [name, make, rows] of COUNTED) {
    test(name, () => {
      const count = new Set(rows()).size;
      if (count < 64) {
        assert.throws(make, (error: Error) => error.message.includes(` make ${count} different sequences, expected at least 64`), `${count} were counted`);
        return;
      }
      const task = make();
      const heldOut = keysOf(task, task.heldOut(mostHeldOut(task)));
      const trained = new Set(keysOf(task, task.batch(100 * count)));
      assert.deepEqual([heldOut.length + trained.size, new Set([...heldOut, ...trained]).size], [count, count], 'held out and to train on together');
    });
  }
});

/** Spaces of which fewer than 256 are held out, of which all can be had, and of which there is no end. */
const HELD_OUT: readonly (readonly [name: string, make: (seed: number) => Task])[] = [
  ['recall of 64', (seed) => recall({ length: 2, seed })],
  ['recall of bits', (seed) => recall({ length: 6, symbols: 2, seed })],
  ['one pair', (seed) => associativeRecall({ pairs: 1, keys: 32, values: 2, seed })],
  ['three pairs of three keys', (seed) => associativeRecall({ pairs: 3, keys: 3, values: 2, seed })],
  ['parity of 6', (seed) => parity({ length: 6, seed })],
  ['parity of 13', (seed) => parity({ length: 13, seed })],
  ['parity of 18', (seed) => parity({ length: 18, seed })],
  ['two questions of two symbols', (seed) => twoQuestions({ half: 4, symbols: 2, seed })],
  ['two questions in 16 places', (seed) => twoQuestions({ half: 8, symbols: 2, seed })],
  ['rings of three', (seed) => directedRelation({ length: 3, animals: 6, seed })],
  ['four of two symbols in another order', (seed) => reorder({ length: 4, symbols: 2, seed })],
  ['seven of two symbols in another order', (seed) => reorder({ length: 7, symbols: 2, seed })],
];

describe('held out is no sequence twice, fewer are the first of more, and all are given where there are fewer than 256:', () => {
  for (const [name, make] of HELD_OUT) {
    test(name, () => {
      for (const seed of [0, 1, 2]) {
        const task = make(seed);
        const most = mostHeldOut(task);
        const [all, some] = [keysOf(task, task.heldOut(most)), keysOf(task, task.heldOut())];
        assert.equal(new Set(all).size, most, `seed ${seed}: some of ${most} are there twice`);
        assert.deepEqual(some, all.slice(0, 256), 'by default they are not the first of all');
        assert.deepEqual(keysOf(make(seed), make(seed).heldOut(3)), all.slice(0, 3), 'three are not the first of all');
        if (most > 256) continue;
        const trained = new Set(keysOf(task, task.batch(3000)));
        assert.deepEqual(all.filter((key) => trained.has(key)), [], 'these are on both sides');
      }
    });
  }

  test('some facts in any seed, however few there are', () => {
    for (let seed = 0; seed < 300; seed++) assert.ok(mostHeldOut(reorder({ length: 4, symbols: 2, seed })) >= 24, `seed ${seed} holds out no context`);
  });
});

describe('held out are facts, in whatever order they are told:', () => {
  const rotated = (row: string) => {
    const words = row.split(' |')[0]!.split(' ');
    const first = words.indexOf([...words].sort()[0]!);
    return [...words.slice(first), ...words.slice(0, first)].join(' ');
  };
  const sorted = (row: string) => {
    const words = row.split(' |')[0]!.split(' ');
    return [...[0, 2, 4].map((i) => words.slice(i, i + 2).join(' ')).sort(), words.at(-1)].join(', ');
  };
  const cases: readonly (readonly [name: string, task: Task, facts: (row: string) => string])[] = [
    ['rings, whichever animal they begin with', directedRelation({ length: 4, seed: 1 }), rotated],
    ['pairs and the question', associativeRecall({ pairs: 3, keys: 4, values: 3, seed: 1 }), sorted],
    ['contexts, whatever they are asked', reorder({ length: 3, contextLength: 4, symbols: 3, seed: 1 }), (row) => row.split('| ')[1]!],
  ];
  for (const [name, task, facts] of cases) {
    test(name, () => {
      const trained = new Set(keysOf(task, task.batch(20_000)).map(facts));
      const heldOut = new Set(keysOf(task, task.heldOut(mostHeldOut(task))).map(facts));
      assert.ok(heldOut.size >= 10 && trained.size > heldOut.size, `${heldOut.size} and ${trained.size} facts`);
      assert.deepEqual([...heldOut].filter((fact) => trained.has(fact)), [], 'these are on both sides');
    });
  }
});
