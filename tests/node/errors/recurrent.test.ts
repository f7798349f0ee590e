// What rnn and rnnStep refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongNames, wrongTensor } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3], [4, 5, 6]]);
const batch = zeros(2, 4, 3);
const wx = zeros(3, 2);
const wh = zeros(2, 2);
const good = { wx, wh };
// As JavaScript would call them, without TypeScript to help.
const rnn = (from: unknown, parameters: unknown, options?: unknown) => (engine.rnn as (...args: unknown[]) => unknown).call(engine, from, parameters, options);
const step = (from: unknown, state: unknown, parameters: unknown) => (engine.rnnStep as (...args: unknown[]) => unknown).call(engine, from, state, parameters);
const misfit = (name: string, call: () => unknown, message: RegExp): Refusal => [name, call, 'SHAPE_MISMATCH', message];

/** The parameters of either, by a call that takes them. */
const parameters = (call: (given: object) => unknown): Readonly<Record<string, Refusal[]>> => {
  const one = (name: string) => (given: unknown) => call({ ...good, [name]: given });
  const bias = (name: string): Refusal[] => [
    ...wrongTensor(name, one(name), 'rank 1', [[], [1, 2]], false),
    misfit('another length', () => one(name)([1]), new RegExp(`^${name} has shape \\(1\\), expected \\(2\\): hidden, wx's last axis`)),
  ];
  return {
    wx: [
      ...wrongTensor('wx', one('wx'), 'rank 2', [[], [3], [1, 3, 2]]),
      misfit('other rows', () => one('wx')(zeros(2, 2)), /^wx has shape \(2, 2\), expected \(3, any\): \(inputDim, hidden\)/),
    ],
    wh: [
      ...wrongTensor('wh', one('wh'), 'rank 2', [[], [4], [1, 2, 2]]),
      misfit('not square', () => one('wh')(zeros(2, 4)), /^wh has shape \(2, 4\), expected \(2, 2\): \(hidden, hidden\)/),
      misfit('another hidden', () => one('wh')(zeros(3, 3)), /^wh has shape \(3, 3\), expected \(2, 2\)/),
    ],
    bx: bias('bx'),
    bh: bias('bh'),
  };
};

const untouched = () => [x, batch, wx, wh].map(({ data }) => data);

refuses('rnn refuses', {
  engine: () => engine,
  untouched,
  next: () => assert.deepEqual(engine.rnn(x, good, { h0: [1, 1] }).outputs.toArray(), [[0, 0], [0, 0]], 'the next call was wrong'),
  tables: {
    x: wrongTensor('x', (from) => rnn(from, good), 'rank 2 or 3', [[], [3], [1, 1, 2, 3]]),
    parameters: wrongNames('rnn: parameters', (given) => rnn(x, given), 'wx, wh, bx, bh', true),
    ...parameters((given) => rnn(x, given)),
    options: wrongNames('rnn: options', (options) => rnn(x, good, options), 'h0'),
    h0: [
      ...wrongTensor('h0', (h0) => rnn(x, good, { h0 }), 'rank 1', [[], [1, 2]], false),
      misfit('another length', () => rnn(x, good, { h0: [1] }), /^h0 has shape \(1\), expected \(2\): the state's shape/),
      misfit('no batch', () => rnn(batch, good, { h0: [1, 2] }), /^h0 has rank 1 with shape \(2\), expected rank 2/),
      misfit('another batch', () => rnn(batch, good, { h0: zeros(4, 2) }), /^h0 has shape \(4, 2\), expected \(2, 2\)/),
    ],
  },
});

refuses('rnnStep refuses', {
  engine: () => engine,
  untouched,
  next: () => assert.deepEqual(engine.rnnStep([1, 2, 3], { h: [1, 1] }, { ...good, bx: [0, 0] }).h.toArray(), [0, 0], 'the next call was wrong'),
  tables: {
    x: wrongTensor('x', (from) => step(from, { h: [0, 0] }, good), 'rank 1 or 2', [[], [1, 2, 3]]),
    state: wrongNames('rnnStep: state', (state) => step([1, 2, 3], state, good), 'h', true),
    h: [
      ...wrongTensor('h', (h) => step([1, 2, 3], { h }, good), 'rank 1', [[], [1, 2]]),
      misfit('another length', () => step([1, 2, 3], { h: [1] }, good), /^h has shape \(1\), expected \(2\): the state's shape/),
      misfit('another batch', () => step(x, { h: zeros(3, 2) }, good), /^h has shape \(3, 2\), expected \(2, 2\)/),
    ],
    parameters: wrongNames('rnnStep: parameters', (given) => step([1, 2, 3], { h: [0, 0] }, given), 'wx, wh, bx, bh', true),
    ...parameters((given) => step([1, 2, 3], { h: [0, 0] }, given)),
  },
});
