// What attention refuses of query, key, value and the way they lie in memory.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongNames, wrongPlace, wrongTensor, wrongWhole } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3], [4, 5, 6]]);
const out = tensor(new Float32Array(6).fill(7), [2, 3]);
// As JavaScript would call it, without TypeScript to help.
const attend = (query: unknown, key: unknown, value: unknown, options?: unknown) =>
  (engine.attention as (...args: unknown[]) => unknown).call(engine, query, key, value, options);

/** Shapes that do not fit together, of arguments that would do alone. */
const unlike = (name: string, shapes: number[][], message: RegExp, options = {}): Refusal => {
  const [query, key, value] = shapes.map((shape) => zeros(...shape)) as [unknown, unknown, unknown];
  return [name, () => attend(query, key, value, options), 'SHAPE_MISMATCH', message];
};
const blhd = { layout: 'blhd' };

const LARGEST = 2 ** 31 - 1;
const ranks = 'rank 2 or 3 or 4';

refuses('attention refuses inputs', {
  engine: () => engine,
  untouched: () => [x.data, out.data],
  next: () => {
    // Shared memory is a place like any other.
    const to = tensor(new Float32Array(new SharedArrayBuffer(8)), [1, 2]);
    engine.attention([[0, 0]], [[1, 2], [3, 4]], [[1, 2], [3, 6]], { out: to });
    assert.deepEqual([...to.data], [2, 4], 'the next call was wrong');
  },
  tables: {
    query: [
      ...wrongTensor('query', (query) => attend(query, x, x, { out }), ranks, [[], [6], [1, 1, 1, 2, 3]]),
      ['a long text', () => attend('x'.repeat(1e6), x, x), 'INVALID_ARGUMENT', /^query is "x{100}\.\.\.", expected a tensor/],
      ['a shape of many axes', () => attend({ data: x.data, shape: Array(1e5).fill(0.5) }, x, x), 'INVALID_ARGUMENT', /^query\.shape is \(0\.5, .{95}\.\.\.\), expected whole numbers/],
    ],
    key: wrongTensor('key', (key) => attend(x, key, x, { out }), 'rank 2', [[], [6], [1, 2, 3], [1, 1, 2, 3]]),
    value: wrongTensor('value', (value) => attend(x, x, value, { out }), 'rank 2', [[], [6], [1, 2, 3], [1, 1, 2, 3]]),
    options: wrongNames('attention: options', (options) => attend(x, x, x, options), 'scale, causal, window'),
    'shapes of rank 2': [
      unlike('dim of key', [[2, 3], [2, 2], [2, 3]], /^key has shape \(2, 2\), expected \(any, 3\): its rank, batch and dim are the query's/),
      unlike('dim of key, 0', [[2, 3], [2, 0], [2, 3]], /^key has shape \(2, 0\), expected \(any, 3\)/),
      unlike('length of value', [[2, 3], [4, 3], [5, 3]], /^value has shape \(5, 3\), expected \(4, any\): all but its dim are the key's/),
      unlike('no values', [[2, 3], [4, 3], [0, 3]], /^value has shape \(0, 3\), expected \(4, any\)/),
    ],
    'shapes of rank 3': [
      unlike('dim of key', [[2, 2, 3], [2, 2, 4], [2, 2, 3]], /^key has shape \(2, 2, 4\), expected \(2, any, 3\)/),
      unlike('heads of value', [[4, 2, 3], [2, 2, 3], [4, 2, 3]], /^value has shape \(4, 2, 3\), expected \(2, 2, any\)/),
      unlike('heads that do not divide', [[3, 1, 1], [2, 1, 1], [2, 1, 1]], /^query has 3 heads and key has 2, expected query heads that are a multiple of the key's/),
      unlike('more heads of key', [[2, 1, 1], [4, 1, 1], [4, 1, 1]], /^query has 2 heads and key has 4, expected/),
      unlike('no heads of key', [[2, 1, 1], [0, 1, 1], [0, 1, 1]], /^query has 2 heads and key has 0, expected/),
    ],
    'shapes of rank 4': [
      unlike('batch of key', [[1, 1, 1, 1], [2, 1, 1, 1], [2, 1, 1, 1]], /^key has shape \(2, 1, 1, 1\), expected \(1, 1, any, 1\)/),
      unlike('batch of value', [[2, 1, 1, 1], [2, 1, 1, 1], [1, 1, 1, 1]], /^value has shape \(1, 1, 1, 1\), expected \(2, 1, 1, any\)/),
      unlike('heads that do not divide', [[2, 3, 1, 1], [2, 2, 1, 1], [2, 2, 1, 1]], /^query has 3 heads and key has 2, expected/),
      unlike('lengths where heads are', [[1, 2, 5, 3], [1, 2, 5, 3], [1, 5, 2, 3]], /^value has shape \(1, 5, 2, 3\), expected \(1, 2, 5, any\)/),
    ],
    layout: [
      ...wrongChoice('layout', (layout) => attend(x, x, x, { layout, out }), "'bhld' or 'blhd'"),
      ['of rank 2', () => attend(x, x, x, { ...blhd, out }), 'INVALID_ARGUMENT', /^layout is 'blhd' with rank 2, expected rank 4/],
      ['of rank 3', () => attend([x.toArray()], [x.toArray()], [x.toArray()], { ...blhd, out }), 'INVALID_ARGUMENT', /^layout is 'blhd' with rank 3, expected rank 4/],
      ['with numHeads', () => attend(x, x, x, { ...blhd, numHeads: 3 }), 'INVALID_ARGUMENT', /^layout is 'blhd' together with numHeads, expected one of them/],
      unlike('heads that do not divide', [[1, 5, 3, 1], [1, 5, 2, 1], [1, 5, 2, 1]], /^query has 3 heads and key has 2, expected/, blhd),
      unlike('length of value', [[1, 5, 2, 1], [1, 5, 2, 1], [1, 4, 2, 1]], /^value has shape \(1, 4, 2, 1\), expected \(1, 5, 2, any\)/, blhd),
    ],
    numHeads: [
      ...wrongWhole('numHeads', (numHeads) => attend(x, x, x, { numHeads, out }), 0, LARGEST),
      unlike('does not divide the query', [[2, 3], [2, 2], [2, 2]], /^query has shape \(2, 3\), expected a last axis that numHeads = 2 divides/, { numHeads: 2 }),
      unlike('0 of some features', [[2, 3], [2, 3], [2, 3]], /^query has shape \(2, 3\), expected a last axis that numHeads = 0 divides/, { numHeads: 0 }),
      unlike('with rank 4', [[1, 1, 2, 3], [1, 1, 2, 3], [1, 1, 2, 3]], /^query has rank 4 with numHeads given, expected a projection of rank 2 or 3/, { numHeads: 1 }),
      unlike('another dim of a head', [[2, 4], [2, 6], [2, 6]], /^key has shape \(2, 6\), expected \(any, 4\)/, { numHeads: 2 }),
      unlike('batch of projections', [[2, 2, 4], [1, 2, 4], [1, 2, 4]], /^key has shape \(1, 2, 4\), expected \(2, any, 4\)/, { numHeads: 2 }),
    ],
    numKvHeads: [
      ...wrongWhole('numKvHeads', (numKvHeads) => attend(x, x, x, { numHeads: 3, numKvHeads, out }), 0, LARGEST),
      ['without numHeads', () => attend(x, x, x, { numKvHeads: 3 }), 'INVALID_ARGUMENT', /^numKvHeads is 3 without numHeads, expected both/],
      ['a symbol without numHeads', () => attend(x, x, x, { numKvHeads: Symbol('s') }), 'INVALID_ARGUMENT', /^numKvHeads is a symbol without numHeads/],
      unlike('does not divide the key', [[2, 4], [2, 3], [2, 2]], /^key has shape \(2, 3\), expected a last axis that numKvHeads = 2 divides/, { numHeads: 4, numKvHeads: 2 }),
      unlike('does not divide the value', [[2, 4], [2, 2], [2, 3]], /^value has shape \(2, 3\), expected a last axis that numKvHeads = 2 divides/, { numHeads: 4, numKvHeads: 2 }),
      unlike('does not divide numHeads', [[2, 3], [2, 2], [2, 2]], /^query has 3 heads and key has 2, expected/, { numHeads: 3, numKvHeads: 2 }),
    ],
    out: [
      ...wrongPlace('out', (to) => attend(x, x, x, { out: to })),
      ['nested arrays', () => attend(x, x, x, { out: [[0, 0, 0], [0, 0, 0]] }), 'INVALID_ARGUMENT', /^out holds nested arrays, expected a tensor with a Float32Array/],
      ...[new Float64Array(6), new Uint8Array(6), new Int32Array(6)].map((data): Refusal => [
        data.constructor.name, () => attend(x, x, x, { out: { data, shape: [2, 3] } }), 'INVALID_ARGUMENT', /^out holds an object of class \w+, expected a tensor with a Float32Array/]),
      ['another shape', () => attend(x, x, [[1], [2]], { out }), 'SHAPE_MISMATCH', /^out has shape \(2, 3\), expected \(2, 1\): the result's shape/],
      ['another rank', () => attend(x, x, x, { out: { data: out.data, shape: [1, 2, 3] } }), 'SHAPE_MISMATCH', /^out has shape \(1, 2, 3\), expected \(2, 3\)/],
      ['its axes swapped', () => attend(x, x, x, { out: { data: out.data, shape: [3, 2] } }), 'SHAPE_MISMATCH', /^out has shape \(3, 2\), expected \(2, 3\)/],
    ],
  },
});
