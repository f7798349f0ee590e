// What explain refuses.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongNames, wrongNumber, wrongOffset, wrongTensor, wrongWhole, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const LARGEST = 2 ** 31 - 1;
const x = tensor([[1, 2, 3, 4], [5, 6, 7, 8]]);
const w = tensor(new Float32Array(16).fill(0.5), [4, 4]);
const good = { wq: w, wk: w, wv: w };
// As JavaScript would call it, without TypeScript to help.
const explainOf = (from: unknown, options: unknown) => (engine.explain as (...args: unknown[]) => unknown).call(engine, from, options);
const explain = (options: unknown) => explainOf(x, options);
const option = (name: string, more = {}) => (value: unknown) => explain({ ...good, ...more, [name]: value });
const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const misfit = (name: string, options: object, message: RegExp): Refusal => [name, () => explain({ ...good, ...options }), 'SHAPE_MISMATCH', message];
const refused = (name: string, options: object, message: RegExp): Refusal => [name, () => explain({ ...good, ...options }), 'INVALID_ARGUMENT', message];

refuses('explain refuses', {
  engine: () => engine,
  untouched: () => [x.data, w.data],
  next: () => {
    const { scores, weights, output } = engine.explain([[1], [0]], { wq: [[0]], wk: [[1]], wv: [[2]] });
    const steps = [scores, weights, output].map((step) => step.toArray());
    assert.deepEqual(steps, [[[0, 0], [0, 0]], [[0.5, 0.5], [0.5, 0.5]], [[1], [1]]], 'the next call was wrong');
  },
  tables: {
    x: [
      ...wrongTensor('x', (from) => explainOf(from, good), 'rank 2', [[], [6], [1, 2, 3], [1, 1, 2, 3]]),
      ['another dim', () => explainOf(zeros(2, 3), good), 'SHAPE_MISMATCH', /^wq has shape \(4, 4\), expected \(3, any\): its rows are x's dims/],
    ],
    options: [
      ...wrongNames('explain: options', explain, 'scale, causal, window', true),
      ...['weights', 'scores', 'logSumExp', 'layout', 'out'].map((name) =>
        refused(`${name}, which attention has`, { [name]: undefined }, new RegExp(`^explain: options has no "${name}"; it may have scale, causal`))),
    ],
    wq: [
      ...wrongTensor('wq', option('wq'), 'rank 2', [[], [4], [1, 4, 4]]),
      misfit('other rows', { wq: zeros(3, 4) }, /^wq has shape \(3, 4\), expected \(4, any\): its rows are x's dims, its columns numHeads \* dim/),
    ],
    wk: [
      ...wrongTensor('wk', option('wk'), 'rank 2', [[], [4], [1, 4, 4]]),
      misfit('other columns than wq', { wk: zeros(4, 3) }, /^wk has shape \(4, 3\), expected \(4, 4\): its rows are x's dims, its columns numKvHeads \* dim/),
    ],
    wv: [
      ...wrongTensor('wv', option('wv'), 'rank 2', [[], [4], [1, 4, 4]]),
      misfit('other rows', { wv: zeros(2, 4) }, /^wv has shape \(2, 4\), expected \(4, any\): its rows are x's dims/),
    ],
    numHeads: [
      ...wrongWhole('numHeads', option('numHeads'), 1, LARGEST),
      misfit('does not divide wq', { numHeads: 3 }, /^wq has shape \(4, 4\), expected a last axis that numHeads = 3 divides/),
      misfit('does not divide wv', { numHeads: 2, wv: zeros(4, 3) }, /^wv has shape \(4, 3\), expected a last axis that numKvHeads = 2 divides/),
    ],
    numKvHeads: [
      ...wrongWhole('numKvHeads', option('numKvHeads', { numHeads: 4 }), 1, LARGEST),
      misfit('another wk', { numHeads: 2, numKvHeads: 1 }, /^wk has shape \(4, 4\), expected \(4, 2\)/),
      misfit('does not divide numHeads', { numHeads: 4, numKvHeads: 3, wk: zeros(4, 3), wv: zeros(4, 3) }, /^query has 4 heads and key has 3, expected query heads that are a multiple of the key's/),
      refused('without numHeads', { numKvHeads: 1 }, /^numKvHeads is 1 without numHeads, expected both/),
    ],
    "attention's options": [
      ...wrongNumber('scale', option('scale')),
      ...wrongOffset('queryOffset', option('queryOffset'), -(2 ** 30), 2 ** 30, { count: 1, meaning: 'one offset a batch' }),
      ...wrongWholeList('keyLengths', option('keyLengths'), 0, 2, { count: 1, meaning: 'one length a batch' }),
      ...wrongWhole('dropout.seed', (seed) => explain({ ...good, dropout: { p: 0.5, seed } }), 0, Number.MAX_SAFE_INTEGER, true),
      misfit('mask', { mask: [[true, false, true]] }, /^mask has shape \(1, 3\), expected one that broadcasts/),
      refused('bias', { bias: [[NaN, 'x']] }, /^bias holds "x", expected numbers/),
      refused('window', { window: [-1, 0] }, /^window\[0\] is -1, expected a whole number/),
    ],
  },
});
