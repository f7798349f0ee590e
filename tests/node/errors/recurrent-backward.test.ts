// What rnnBackward, lstmBackward and gruBackward refuse; the rest is read as rnn, lstm and gru read it.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { CELLS } from '../support/recurrent-case.js';
import { GATES } from '../support/recurrent-reference.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongNames, wrongTensor, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3], [4, 5, 6]]);
const batch = zeros(2, 4, 3);
const misfit = (name: string, call: () => unknown, message: RegExp): Refusal => [name, call, 'SHAPE_MISMATCH', message];

for (const cell of CELLS) {
  const columns = 2 * GATES[cell];
  const good = { wx: zeros(3, columns), wh: zeros(2, columns) };
  const states = cell === 'lstm' ? ['h', 'c'] : ['h'];
  const own = { rnn: 'activation', lstm: 'gateOrder', gru: 'gateOrder, resetAfter' }[cell];
  const known = cell === 'lstm' ? 'wx, wh, bx, bh, peephole' : 'wx, wh, bx, bh';
  const above = { dOutputs: zeros(2, 2), dH: zeros(2) };
  const operation = `${cell}Backward`;
  // As JavaScript would call it, without TypeScript to help.
  const back = (...args: unknown[]) => (engine[`${cell}Backward`] as (...args: unknown[]) => unknown).call(engine, ...args);

  refuses(`${operation} refuses`, {
    engine: () => engine,
    untouched: () => [x, batch, good.wx, good.wh, above.dOutputs, above.dH].map(({ data }) => data),
    next: () => assert.deepEqual((back({ dH: [0, 0] }, x, good) as { dX: { toArray(): unknown } }).dX.toArray(), [[0, 0, 0], [0, 0, 0]], 'the next call was wrong'),
    tables: {
      gradients: wrongNames(`${operation}: gradients`, (given) => back(given, x, good), cell === 'lstm' ? 'dOutputs, dH, dC' : 'dOutputs, dH', true),
      dOutputs: [
        ...wrongTensor('dOutputs', (dOutputs) => back({ dOutputs }, x, good), 'rank 2', [[], [2], [1, 2, 2]], false),
        misfit('another length', () => back({ dOutputs: zeros(3, 2) }, x, good), /^dOutputs has shape \(3, 2\), expected \(2, 2\): the shape of outputs/),
        misfit('of one direction', () => back({ dOutputs: zeros(2, 2) }, x, { forward: good, reverse: good }, { direction: 'both' }), /^dOutputs has shape \(2, 2\), expected \(2, 4\)/),
      ],
      ...Object.fromEntries(states.map((state) => {
        const name = `d${state.toUpperCase()}`;
        const withState = (given: unknown, from: unknown = x, options = {}) => back({ [name]: given }, from, 'direction' in options ? { forward: good, reverse: good } : good, options);
        return [name, [
          ...wrongTensor(name, withState, 'rank 1', [[], [1, 2]], false),
          misfit('another length', () => withState([1]), new RegExp(`^${name} has shape \\(1\\), expected \\(2\\): the shape of ${state}`)),
          misfit('no batch', () => withState([1, 2], batch), new RegExp(`^${name} has rank 1 with shape \\(2\\), expected rank 2`)),
          misfit('another batch', () => withState(zeros(4, 2), batch), new RegExp(`^${name} has shape \\(4, 2\\), expected \\(2, 2\\)`)),
          misfit('one direction', () => withState([1, 2], x, { direction: 'both' }), new RegExp(`^${name} has rank 1`)),
        ]];
      })),
      x: wrongTensor('x', (from) => back(above, from, good), 'rank 2 or 3', [[], [3], [1, 1, 2, 3]]),
      parameters: [
        ...wrongNames(`${operation}: parameters`, (given) => back(above, x, given), known, true),
        ...wrongNames(`${operation}: reverse: parameters`, (reverse) => back(above, x, { forward: good, reverse }, { direction: 'both' }), known, true),
        ...wrongTensor('wh', (wh) => back(above, x, { ...good, wh }), 'rank 2', [[], [4], [1, 2, 2]]),
        misfit('other rows', () => back(above, x, { ...good, wx: zeros(2, columns) }), new RegExp(`^wx has shape \\(2, ${columns}\\), expected \\(3, ${columns}\\)`)),
      ],
      options: wrongNames(`${operation}: options`, (options) => back(above, x, good, options), ['direction, lengths', ...states.map((name) => `${name}0`), own].join(', ')),
      direction: wrongChoice('direction', (direction) => back(above, x, good, { direction }), "'forward' or 'reverse' or 'both'"),
      lengths: wrongWholeList('lengths', (lengths) => back({}, batch, good, { lengths }), 0, 4, { count: 2, meaning: 'one a batch' }),
      h0: [misfit('another length', () => back(above, x, good, { h0: [1] }), /^h0 has shape \(1\), expected \(2\): the state's shape/)],
    },
  });
}
