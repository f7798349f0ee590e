// What the tasks of qkv/tasks refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import type { Engine } from 'qkv';
import { associativeRecall, directedRelation, parity, pronoun, recall, reorder, twoQuestions } from 'qkv/tasks';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { literal, wrongChoice, wrongNames, wrongWhole } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

// As JavaScript would call them, without TypeScript to help.
type Options = Record<string, unknown>;
const made = (make: unknown, right: Options) => (given: Options) => (make as (options: Options) => unknown)({ ...right, ...given });
const size = (name: string, make: (given: Options) => unknown, least: number, most: number, isNeeded = false) =>
  wrongWhole(name, (value) => make({ [name]: value }), least, most, isNeeded);
const seeds = (make: (given: Options) => unknown) => wrongWhole('seed', (seed) => make({ seed }), 0);
const names = (operation: string, make: unknown, known: string, isNeeded = true) =>
  wrongNames(`${operation}: options`, (options) => (make as (options: unknown) => unknown)(options), known, isNeeded);
const few = (name: string, call: () => unknown, sizes: string): Refusal => [
  name, call, 'INVALID_ARGUMENT', literal(`${sizes} different sequences, expected at least 64, so that some can be held out.`)];

const recalls = made(recall, { length: 8, symbols: 4 });
const associates = made(associativeRecall, { pairs: 3, keys: 5, values: 4 });
const parities = made(parity, { length: 8 });
const twos = made(twoQuestions, { half: 4 });
const relations = made(directedRelation, { length: 5 });
const reorders = made(reorder, { length: 4 });
const pronouns = made(pronoun, {});
const task = recall({ length: 8, symbols: 4 });
const words = pronoun();

refuses('tasks refuse', {
  engine: () => engine,
  untouched: () => [],
  next: () => assert.equal(recall({ length: 8 }).batch(1).tokens.data.length, 8, 'the next call was wrong'),
  tables: {
    recall: [
      ...names('recall', recall, 'length, symbols, seed'),
      ...size('length', recalls, 2, 65536, true), ...size('symbols', recalls, 2, 65536), ...seeds(recalls),
      few('few', () => recall({ length: 5, symbols: 2 }), 'length 5 and symbols 2 make 32'),
    ],
    associativeRecall: [
      ...names('associativeRecall', associativeRecall, 'pairs, keys, values, seed'),
      ...size('pairs', associates, 1, 16384, true), ...size('keys', associates, 3, 65536), ...size('values', associates, 2, 65536), ...seeds(associates),
      few('few', () => associativeRecall({ pairs: 1, keys: 5, values: 2 }), 'pairs 1, keys 5 and values 2 make 10'),
      few('few of keys that do not repeat', () => associativeRecall({ pairs: 2, keys: 3, values: 2 }), 'pairs 2, keys 3 and values 2 make 48'),
    ],
    parity: [
      ...names('parity', parity, 'length, shortest, seed'),
      ...size('length', parities, 1, 65536, true), ...size('shortest', parities, 1, 8), ...seeds(parities),
      few('few', () => parity({ length: 4 }), 'length 4 and shortest 1 make 30'),
    ],
    twoQuestions: [
      ...names('twoQuestions', twoQuestions, 'half, symbols, seed'),
      ...size('half', twos, 2, 16384, true), ...size('symbols', twos, 2, 256), ...seeds(twos),
      few('few', () => twoQuestions({ half: 2, symbols: 2 }), 'half 2 and symbols 2 make 36'),
    ],
    directedRelation: [
      ...names('directedRelation', directedRelation, 'length, animals, seed'),
      ...size('length', relations, 3, 8, true), ...size('animals', relations, 6, 16), ...seeds(relations),
    ],
    reorder: [
      ...names('reorder', reorder, 'length, contextLength, symbols, order, seed'),
      ...size('length', reorders, 1, 65536, true), ...size('contextLength', reorders, 4, 65536), ...size('symbols', reorders, 2, 65536), ...seeds(reorders),
      ...wrongChoice('order', (order) => reorders({ order }), "'given' or 'reversed'"),
      few('few', () => reorder({ length: 2, symbols: 3, order: 'reversed' }), 'contextLength 2 and symbols 3 make 9'),
      few('few in every order', () => reorder({ length: 3, symbols: 2 }), 'length 3, contextLength 3 and symbols 2 make 48'),
    ],
    pronoun: [
      ...names('pronoun', pronoun, 'answer, seed', false),
      ...seeds(pronouns), ...wrongChoice('answer', (answer) => pronouns({ answer }), "'position' or 'noun'"),
    ],
    count: [
      ...wrongWhole('count', (count) => task.batch(count as number), 1, 268435455, true),
      ...wrongWhole('count', (count) => task.heldOut(count as number), 1, 13_118),
      ...wrongWhole('count', (count) => recall({ length: 2 }).heldOut(count as number), 1, 14),
      ...wrongWhole('count', (count) => recall({ length: 6 }).heldOut(count as number), 1, 8 ** 6 / 32),
      ...wrongWhole('count', (count) => recall({ length: 60 }).heldOut(count as number), 1, 2 ** 20),
      ...wrongWhole('count', (count) => words.heldOut(count as number), 1, 216),
    ],
    text: [
      ['nothing', () => task.encode(undefined as never), 'INVALID_ARGUMENT', literal('text is undefined, expected words of recall with spaces between them.')],
      ['tokens', () => task.encode([1] as never), 'INVALID_ARGUMENT', literal('text is an array, expected words of recall')],
      ['another word', () => task.encode('A B E'), 'INVALID_ARGUMENT', literal('text has the word "E", expected words of recall: A, B, C, D.')],
      ['a sentence’s end', () => words.encode('it was too tired.'), 'INVALID_ARGUMENT', literal('text has the word "tired.", expected words of pronoun: animal, dog,')],
    ],
    tokens: [
      ...wrongWhole('tokens[1]', (token) => task.decode([0, token as number]), 0, 3, true),
      ...[undefined, null, 7, 'A B', {}, new DataView(new ArrayBuffer(4))].map((tokens): Refusal => [
        String(tokens), () => task.decode(tokens as never), 'INVALID_ARGUMENT', /^tokens is .+, expected a list of tokens of recall\.$/]),
    ],
  },
});
