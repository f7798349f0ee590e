// What attention refuses of packed sequences, and of options that count per sequence.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongNames, wrongOffset, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const query = zeros(4, 2);
const key = zeros(5, 2);
const out = tensor(new Float32Array(8).fill(7), [4, 2]);
// As JavaScript would call it, without TypeScript to help.
const attend = (options: unknown, q: unknown = query, k: unknown = key) =>
  (engine.attention as (...args: unknown[]) => unknown).call(engine, q, k, k, options);
const pack = (sequences: unknown, more = {}) => attend({ sequences, out, ...more });
const two = { query: [0, 2, 4], key: [0, 3, 5] };
const refused = (name: string, sequences: object, message: RegExp, more = {}): Refusal =>
  [name, () => pack(sequences, more), 'INVALID_ARGUMENT', message];

const perSequence = { count: 2, meaning: 'one offset a sequence' };
const bounds = { meaning: 'where each sequence begins, and the end' };

/** Offsets along one axis, of `length`. */
const offsets = (side: 'query' | 'key', length: number): Refusal[] => [
  ...wrongWholeList(`sequences.${side}`, (given) => pack({ ...two, [side]: given }), 0, length, bounds),
  refused('missing', { ...two, [side]: undefined }, new RegExp(`^sequences\\.${side} is undefined, expected a list`)),
  ...[[], [0], [length], [1, length], [0, 1], [0, 3, 2, length], [0, length, 0], [length, 0]].map((given) =>
    refused(`[${given}]`, { ...two, [side]: given }, new RegExp(`^sequences\\.${side} is \\[${given.join(', ')}\\], expected offsets that rise from 0 to ${length}`))),
  refused('many', { ...two, [side]: Array(1e5).fill(0) }, new RegExp(`^sequences\\.${side} is \\[0, .{97}\\.\\.\\.\\], expected offsets that rise from 0 to ${length}`)),
];

refuses('attention refuses sequences', {
  engine: () => engine,
  untouched: () => [query.data, key.data, out.data],
  next: () => {
    const packed = engine.attention(zeros(2, 1), zeros(3, 1), [[1], [3], [5]], { sequences: { query: [0, 1, 2], key: [0, 2, 3] } });
    assert.deepEqual(packed.output.toArray(), [[2], [5]], 'the next call was wrong');
  },
  tables: {
    sequences: wrongNames('sequences', pack, 'query, key'),
    'sequences.query': offsets('query', 4),
    'sequences.key': offsets('key', 5),
    'both together': [
      ['other counts', () => pack({ ...two, key: [0, 1, 2, 5] }), 'SHAPE_MISMATCH', /^sequences\.key has 4 offsets, expected 3 as sequences\.query has/],
      ['a batch of 2', () => attend({ sequences: two }, zeros(2, 1, 4, 2), zeros(2, 1, 5, 2)), 'INVALID_ARGUMENT', /^sequences is given with a batch of 2, expected a batch of 1/],
      ['a batch of 0', () => attend({ sequences: two }, zeros(0, 1, 4, 2), zeros(0, 1, 5, 2)), 'INVALID_ARGUMENT', /^sequences is given with a batch of 0, expected a batch of 1/],
      refused('with keyLengths', two, /^sequences is given together with keyLengths, expected one of them/, { keyLengths: [5] }),
      refused('causal: true where lengths differ', two, /^causal is true with 2 queries and 3 keys, expected 'top-left'/, { causal: true }),
    ],
    'offsets of each': [
      ...wrongOffset('queryOffset', (queryOffset) => pack(two, { queryOffset }), -(2 ** 30), 2 ** 30, perSequence),
      ...wrongOffset('causal.offset', (offset) => pack(two, { causal: { offset } }), -(2 ** 30), 2 ** 30, perSequence),
    ],
  },
});
