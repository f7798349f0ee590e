// What the gradients of the building blocks refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongBuffer, wrongChoice, wrongNames, wrongNumber, wrongTensor } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3], [4, 5, 6]]);
const dOut = tensor([[1, 1, 1], [0, 1, 0]]);
const column = tensor(Float32Array.of(1, 2, 3), [3]);
const weight = tensor(new Float32Array(6).fill(0.5), [3, 2]);
const dRows = tensor([[1, 0], [0, 1]]);
const table = tensor([[1, 2], [3, 4], [5, 6]]);

type Method = `${'linear' | 'softmax' | 'layerNorm' | 'rmsNorm' | 'gelu' | 'silu' | 'embedding' | 'rotary'}Backward`;
// As JavaScript would call them, without TypeScript to help.
const call = (method: Method, ...args: unknown[]) => (engine[method] as (...args: unknown[]) => unknown).call(engine, ...args);
const misfit = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'SHAPE_MISMATCH', message];
const invalid = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'INVALID_ARGUMENT', message];

/** dOut and x of an operation by rows or elements. */
const wrongRows = (method: Method, options?: object): Refusal[] => [
  ...wrongTensor('dOut', (from) => call(method, from, x, options), 'rank at least 1', [[]]),
  ...wrongTensor('x', (from) => call(method, dOut, from, options), 'rank at least 1', [[]]),
  misfit('dOut of another shape', () => call(method, zeros(3, 2), x, options), /^dOut has shape \(3, 2\), expected \(2, 3\): x's shape/),
  misfit('dOut of one row', () => call(method, zeros(3), x, options), /^dOut has shape \(3\), expected \(2, 3\): x's shape/),
];

/** gamma or beta. */
const wrongColumn = (method: Method, name: string): Refusal[] => [
  ...wrongTensor(name, (given) => call(method, dOut, x, { [name]: given }), 'rank 1', [[], [1, 3]], false),
  misfit('another length', () => call(method, dOut, x, { [name]: zeros(2) }), new RegExp(`^${name} has shape \\(2\\), expected \\(3\\): \\(columns\\), x's last axis`)),
];

refuses('gradients by rows refuse', {
  engine: () => engine,
  untouched: () => [dOut.data, x.data, column.data],
  next: () => {
    assert.deepEqual(engine.softmaxBackward([[1, 3]], [[5, 5]]).dX.toArray(), [[-0.5, 0.5]], 'the next call of softmaxBackward was wrong');
    assert.deepEqual(engine.layerNormBackward([[1, 2]], [[3, 3]], { beta: [0, 0] }).dBeta!.toArray(), [1, 2], 'the next call of layerNormBackward was wrong');
    assert.deepEqual([engine.geluBackward([2], [0]), engine.siluBackward([2], [0])].map(({ dX }) => [...dX.data]), [[1], [1]], 'the next call of geluBackward or siluBackward was wrong');
  },
  tables: {
    softmaxBackward: wrongRows('softmaxBackward'),
    siluBackward: wrongRows('siluBackward'),
    geluBackward: [
      ...wrongRows('geluBackward'),
      ...wrongNames('geluBackward: options', (options) => call('geluBackward', dOut, x, options), 'approximate'),
      ...wrongChoice('approximate', (approximate) => call('geluBackward', dOut, x, { approximate }), "'none' or 'tanh'"),
    ],
    layerNormBackward: [
      ...wrongRows('layerNormBackward'),
      ...wrongNames('layerNormBackward: options', (options) => call('layerNormBackward', dOut, x, options), 'gamma, beta, eps'),
    ],
    'layerNormBackward, gamma': wrongColumn('layerNormBackward', 'gamma'),
    'layerNormBackward, beta': wrongColumn('layerNormBackward', 'beta'),
    'layerNormBackward, eps': wrongNumber('eps', (eps) => call('layerNormBackward', dOut, x, { eps }), 0),
    rmsNormBackward: [
      ...wrongRows('rmsNormBackward'),
      ...wrongNames('rmsNormBackward: options', (options) => call('rmsNormBackward', dOut, x, options), 'gamma, eps'),
      invalid('beta, which layerNorm has', () => call('rmsNormBackward', dOut, x, { beta: column }), /^rmsNormBackward: options has no "beta"; it may have gamma, eps/),
    ],
    'rmsNormBackward, gamma': wrongColumn('rmsNormBackward', 'gamma'),
    'rmsNormBackward, eps': wrongNumber('eps', (eps) => call('rmsNormBackward', dOut, x, { eps }), 0),
    rotaryBackward: [
      ...wrongRows('rotaryBackward', { pairing: 'halves', dims: 2 }),
      misfit('one row', () => call('rotaryBackward', zeros(2), zeros(2), { pairing: 'halves' }), /^x has rank 1 with shape \(2\), expected \(\.\.\., length, dim\)/),
      ...wrongNames('rotaryBackward: options', (options) => call('rotaryBackward', dOut, x, options), 'pairing, positions, offset, base, dims, cos, sin', true),
      ...wrongChoice('pairing', (pairing) => call('rotaryBackward', dOut, x, { pairing }), "'halves' or 'neighbours'", true),
      invalid('odd dims', () => call('rotaryBackward', dOut, x, { pairing: 'halves' }), /^dims is 3, expected an even number/),
    ],
  },
});

refuses('linearBackward and embeddingBackward refuse', {
  engine: () => engine,
  untouched: () => [dRows.data, x.data, weight.data, table.data],
  next: () => {
    assert.deepEqual(engine.linearBackward([[2]], [[3]], [[4]], [1]).dX.toArray(), [[8]], 'the next call of linearBackward was wrong');
    assert.deepEqual(engine.embeddingBackward([[2]], [[3]], [0]).dTable.toArray(), [[2]], 'the next call of embeddingBackward was wrong');
  },
  tables: {
    dOut: [
      ...wrongTensor('dOut', (from) => call('linearBackward', from, x, weight), 'rank at least 1', [[]]),
      misfit('of another shape', () => call('linearBackward', zeros(2, 3), x, weight), /^dOut has shape \(2, 3\), expected \(2, 2\): the output's shape/),
    ],
    x: wrongTensor('x', (from) => call('linearBackward', dRows, from, weight), 'rank at least 1', [[]]),
    weight: [
      ...wrongTensor('weight', (given) => call('linearBackward', dRows, x, given), 'rank 2', [[], [3], [1, 3, 2]]),
      misfit('other rows', () => call('linearBackward', dRows, x, zeros(2, 3)), /^weight has shape \(2, 3\), expected \(3, any\): \(inDim, outDim\), inDim being x's last axis/),
    ],
    bias: [
      ...wrongTensor('bias', (given) => call('linearBackward', dRows, x, weight, given), 'rank 1', [[], [1, 2]], false),
      misfit('another length', () => call('linearBackward', dRows, x, weight, [1, 2, 3]), /^bias has shape \(3\), expected \(2\): outDim, weight's last axis/),
    ],
    'embeddingBackward, dOut': [
      ...wrongTensor('dOut', (from) => call('embeddingBackward', from, table, [0, 1]), 'rank at least 1', [[]]),
      misfit('of another shape', () => call('embeddingBackward', dRows, table, [0]), /^dOut has shape \(2, 2\), expected \(1, 2\): the output's shape: that of indices, then dim/),
    ],
    'embeddingBackward, table': wrongTensor('table', (from) => call('embeddingBackward', dRows, from, [0, 1]), 'rank 2', [[], [6], [1, 3, 2]]),
    'embeddingBackward, indices': [
      invalid('beyond the table', () => call('embeddingBackward', dRows, table, [0, 3]), /^indices\[1\] is 3, expected a whole number from 0 to 2/),
      wrongBuffer('indices', (which) => call('embeddingBackward', dRows, table, which)),
    ],
  },
});
