// What tensor and its methods refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongMadeFrom } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const x = tensor([[1, 2, 3], [4, 5, 6]]);
// As JavaScript would call it, without TypeScript to help.
const make = (...args: unknown[]) => (tensor as (...args: unknown[]) => unknown)(...args);
const at = (...indices: unknown[]) => (x.at as (...args: unknown[]) => unknown).call(x, ...indices);
const wrongIndex = [-1, 3, 0.5, NaN, Infinity, null, undefined, '1', 1n, true, Symbol('s'), [1], {}];

refuses('tensor refuses', {
  engine: () => engine,
  untouched: () => [x.data],
  next: () => assert.deepEqual(tensor([[1], [2]]).toArray(), [[1], [2]], 'the next call was wrong'),
  tables: {
    ...wrongMadeFrom(make),
    at: [
      ...[0, 1].flatMap((axis) => wrongIndex.map((index): Refusal => [
        `${String(index)} for axis ${axis}`, () => (axis === 0 ? at(index, 0) : at(0, index)), 'INVALID_ARGUMENT',
        new RegExp(`^at: index .+ came for axis ${axis}, expected a whole number from 0 below ${axis + 2}`)])),
      ['too few', () => at(0), 'INVALID_ARGUMENT', /^at: 1 indices came, expected 2, one for each axis of \(2, 3\)/],
      ['too many', () => at(0, 0, 0), 'INVALID_ARGUMENT', /^at: 3 indices came, expected 2/],
      ['none', () => at(), 'INVALID_ARGUMENT', /^at: 0 indices came, expected 2/],
    ],
  },
});
