// What linear, softmax, the norms, gelu and silu refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongNames, wrongNumber, wrongTensor } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3], [4, 5, 6]]);
const weight = tensor(new Float32Array(6).fill(0.5), [3, 2]);
const column = tensor(Float32Array.of(1, 2, 3), [3]);
type Method = 'linear' | 'softmax' | 'layerNorm' | 'rmsNorm' | 'gelu' | 'silu';
// As JavaScript would call them, without TypeScript to help.
const call = (method: Method, ...args: unknown[]) => (engine[method] as (...args: unknown[]) => unknown).call(engine, ...args);
const misfit = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'SHAPE_MISMATCH', message];

/** x of any rank, of an operation by rows or elements. */
const wrongX = (method: Method): Refusal[] => wrongTensor('x', (from) => call(method, from), 'rank at least 1', [[]]);

/** gamma or beta. */
const wrongColumn = (method: Method, name: string): Refusal[] => [
  ...wrongTensor(name, (given) => call(method, x, { [name]: given }), 'rank 1', [[], [1, 3]], false),
  misfit('another length', () => call(method, x, { [name]: zeros(2) }), new RegExp(`^${name} has shape \\(2\\), expected \\(3\\): \\(columns\\), x's last axis`)),
];

refuses('linear refuses', {
  engine: () => engine,
  untouched: () => [x.data, weight.data, column.data],
  next: () => assert.deepEqual(engine.linear(x, weight, [1, 2]).toArray(), [[4, 5], [8.5, 9.5]], 'the next call was wrong'),
  tables: {
    x: wrongTensor('x', (from) => call('linear', from, weight), 'rank at least 1', [[]]),
    weight: [
      ...wrongTensor('weight', (given) => call('linear', x, given), 'rank 2', [[], [3], [1, 3, 2]]),
      misfit('other rows', () => call('linear', x, zeros(2, 3)), /^weight has shape \(2, 3\), expected \(3, any\): \(inDim, outDim\), inDim being x's last axis/),
    ],
    bias: [
      ...wrongTensor('bias', (given) => call('linear', x, weight, given), 'rank 1', [[], [1, 2]], false),
      misfit('another length', () => call('linear', x, weight, [1, 2, 3]), /^bias has shape \(3\), expected \(2\): outDim, weight's last axis/),
    ],
  },
});

refuses('layers refuse', {
  engine: () => engine,
  untouched: () => [x.data, column.data],
  next: () => {
    assert.deepEqual(engine.softmax([[0, 0]]).toArray(), [[0.5, 0.5]], 'the next call of softmax was wrong');
    assert.deepEqual(engine.layerNorm([[3, 3]], { beta: [1, 2] }).toArray(), [[1, 2]], 'the next call of layerNorm was wrong');
    assert.deepEqual([engine.gelu([0]), engine.silu([0])].map(({ data }) => [...data]), [[0], [0]], 'the next call of gelu or silu was wrong');
  },
  tables: {
    softmax: wrongX('softmax'),
    silu: wrongX('silu'),
    gelu: [
      ...wrongX('gelu'),
      ...wrongNames('gelu: options', (options) => call('gelu', x, options), 'approximate'),
      ...wrongChoice('approximate', (approximate) => call('gelu', x, { approximate }), "'none' or 'tanh'"),
    ],
    layerNorm: [
      ...wrongX('layerNorm'),
      ...wrongNames('layerNorm: options', (options) => call('layerNorm', x, options), 'gamma, beta, eps'),
    ],
    'layerNorm, gamma': wrongColumn('layerNorm', 'gamma'),
    'layerNorm, beta': wrongColumn('layerNorm', 'beta'),
    'layerNorm, eps': wrongNumber('eps', (eps) => call('layerNorm', x, { eps }), 0),
    rmsNorm: [
      ...wrongX('rmsNorm'),
      ...wrongNames('rmsNorm: options', (options) => call('rmsNorm', x, options), 'gamma, eps'),
      ['beta, which layerNorm has', () => call('rmsNorm', x, { beta: column }), 'INVALID_ARGUMENT', /^rmsNorm: options has no "beta"; it may have gamma, eps/],
    ],
    'rmsNorm, gamma': wrongColumn('rmsNorm', 'gamma'),
    'rmsNorm, eps': wrongNumber('eps', (eps) => call('rmsNorm', x, { eps }), 0),
  },
});
