// What the recurrent cells and their steps refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { GATES } from '../support/recurrent-reference.js';
import { CELLS } from '../support/recurrent-case.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongFlag, wrongNames, wrongTensor, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3], [4, 5, 6]]);
const batch = zeros(2, 4, 3);
const misfit = (name: string, call: () => unknown, message: RegExp): Refusal => [name, call, 'SHAPE_MISMATCH', message];

for (const cell of CELLS) {
  const columns = 2 * GATES[cell];
  const [wx, wh] = [zeros(3, columns), zeros(2, columns)];
  const good = { wx, wh };
  const known = cell === 'lstm' ? 'wx, wh, bx, bh, peephole' : 'wx, wh, bx, bh';
  const states = cell === 'lstm' ? ['h', 'c'] : ['h'];
  const own = { rnn: 'activation', lstm: 'gateOrder', gru: 'gateOrder, resetAfter' }[cell];
  const state = Object.fromEntries(states.map((name) => [name, [0, 0]]));
  // As JavaScript would call them, without TypeScript to help.
  const run = (from: unknown, parameters: unknown, options?: unknown) => (engine[cell] as (...args: unknown[]) => unknown).call(engine, from, parameters, options);
  const step = (from: unknown, before: unknown, parameters: unknown, options?: unknown) =>
    (engine[`${cell}Step`] as (...args: unknown[]) => unknown).call(engine, from, before, parameters, options);

  /** The parameters of a direction, by a call that takes them. */
  const weights = (call: (given: object) => unknown, prefix = ''): Readonly<Record<string, Refusal[]>> => {
    const change = (name: string) => (given: unknown) => call({ ...good, [name]: given });
    const row = (name: string, count: number): Refusal[] => [
      ...wrongTensor(prefix + name, change(name), 'rank 1', [[], [1, 2]], false),
      misfit('another length', () => change(name)([1]), new RegExp(`^${prefix}${name} has shape \\(1\\), expected \\(${count}\\): .*hidden being wh's first axis`)),
    ];
    return {
      [`${prefix}wx`]: [
        ...wrongTensor(`${prefix}wx`, change('wx'), 'rank 2', [[], [3], [1, 3, 2]]),
        misfit('other rows', () => change('wx')(zeros(2, columns)), new RegExp(`^${prefix}wx has shape \\(2, ${columns}\\), expected \\(3, ${columns}\\): \\(inputDim, `)),
        misfit('other columns', () => change('wx')(zeros(3, columns + 1)), new RegExp(`^${prefix}wx has shape \\(3, ${columns + 1}\\), expected \\(3, ${columns}\\)`)),
      ],
      [`${prefix}wh`]: [
        ...wrongTensor(`${prefix}wh`, change('wh'), 'rank 2', [[], [4], [1, 2, 2]]),
        misfit('other columns', () => change('wh')(zeros(2, columns + 1)), new RegExp(`^${prefix}wh has shape \\(2, ${columns + 1}\\), expected \\(2, ${columns}\\): \\(hidden, `)),
      ],
      [`${prefix}bx`]: row('bx', columns),
      [`${prefix}bh`]: row('bh', columns),
      ...(cell === 'lstm' && { [`${prefix}peephole`]: row('peephole', 6) }),
    };
  };

  /** Options that a step has too. */
  const choices = (call: (options: object) => unknown): Readonly<Record<string, Refusal[]>> => ({
    ...(cell === 'rnn' && { activation: wrongChoice('activation', (activation) => call({ activation }), "'tanh' or 'relu'") }),
    ...(cell === 'lstm' && { gateOrder: wrongChoice('gateOrder', (gateOrder) => call({ gateOrder }), "'ifgo' or 'iofg'") }),
    ...(cell === 'gru' && {
      gateOrder: wrongChoice('gateOrder', (gateOrder) => call({ gateOrder }), "'rzn' or 'zrn'"),
      resetAfter: wrongFlag('resetAfter', (resetAfter) => call({ resetAfter })),
    }),
  });

  const untouched = () => [x, batch, wx, wh].map(({ data }) => data);

  refuses(`${cell} refuses`, {
    engine: () => engine,
    untouched,
    next: () => assert.deepEqual((run(x, good, { direction: 'reverse' }) as { h: { toArray(): unknown } }).h.toArray(), [0, 0], 'the next call was wrong'),
    tables: {
      x: wrongTensor('x', (from) => run(from, good), 'rank 2 or 3', [[], [3], [1, 1, 2, 3]]),
      parameters: wrongNames(`${cell}: parameters`, (given) => run(x, given), known, true),
      ...weights((given) => run(x, given)),
      'parameters of two directions': [
        ...wrongNames(`${cell}: parameters`, (given) => run(x, given, { direction: 'both' }), 'forward, reverse', true),
        ...wrongNames(`${cell}: forward: parameters`, (forward) => run(x, { forward, reverse: good }, { direction: 'both' }), known, true),
        misfit('sizes that differ', () => run(x, { forward: good, reverse: { wx: zeros(3, 2 * columns), wh: zeros(4, 2 * columns) } }, { direction: 'both' }),
          new RegExp(`^reverse\\.wh has shape \\(4, ${2 * columns}\\), expected \\(2, ${columns}\\): forward\\.wh's shape`)),
      ],
      ...weights((reverse) => run(x, { forward: good, reverse }, { direction: 'both' }), 'reverse.'),
      options: wrongNames(`${cell}: options`, (options) => run(x, good, options), ['direction, lengths', ...states.map((name) => `${name}0`), own].join(', ')),
      direction: wrongChoice('direction', (direction) => run(x, good, { direction }), "'forward' or 'reverse' or 'both'"),
      lengths: wrongWholeList('lengths', (lengths) => run(batch, good, { lengths }), 0, 4, { count: 2, meaning: 'one a batch' }),
      ...choices((options) => run(x, good, options)),
      ...Object.fromEntries(states.map((name) => [`${name}0`, [
        ...wrongTensor(`${name}0`, (given) => run(x, good, { [`${name}0`]: given }), 'rank 1', [[], [1, 2]], false),
        misfit('another length', () => run(x, good, { [`${name}0`]: [1] }), new RegExp(`^${name}0 has shape \\(1\\), expected \\(2\\): the state's shape`)),
        misfit('no batch', () => run(batch, good, { [`${name}0`]: [1, 2] }), new RegExp(`^${name}0 has rank 1 with shape \\(2\\), expected rank 2`)),
        misfit('another batch', () => run(batch, good, { [`${name}0`]: zeros(4, 2) }), new RegExp(`^${name}0 has shape \\(4, 2\\), expected \\(2, 2\\)`)),
        misfit('one direction', () => run(x, { forward: good, reverse: good }, { direction: 'both', [`${name}0`]: [1, 2] }), new RegExp(`^${name}0 has rank 1`)),
      ]])),
    },
  });

  refuses(`${cell}Step refuses`, {
    engine: () => engine,
    untouched,
    next: () => assert.deepEqual((step([1, 2, 3], state, good) as { h: { toArray(): unknown } }).h.toArray(), [0, 0], 'the next call was wrong'),
    tables: {
      x: wrongTensor('x', (from) => step(from, state, good), 'rank 1 or 2', [[], [1, 2, 3]]),
      state: wrongNames(`${cell}Step: state`, (given) => step([1, 2, 3], given, good), states.join(', '), true),
      ...Object.fromEntries(states.map((name) => [name, [
        ...wrongTensor(name, (given) => step([1, 2, 3], { ...state, [name]: given }, good), 'rank 1', [[], [1, 2]]),
        misfit('another length', () => step([1, 2, 3], { ...state, [name]: [1] }, good), new RegExp(`^${name} has shape \\(1\\), expected \\(2\\): the state's shape`)),
      ]])),
      'a state of another batch': [misfit('h', () => step(x, { h: zeros(3, 2), ...(cell === 'lstm' && { c: zeros(2, 2) }) }, good), /^h has shape \(3, 2\), expected \(2, 2\)/)],
      parameters: wrongNames(`${cell}Step: parameters`, (given) => step([1, 2, 3], state, given), known, true),
      ...weights((given) => step([1, 2, 3], state, given)),
      options: wrongNames(`${cell}Step: options`, (options) => step([1, 2, 3], state, good, options), own),
      ...choices((options) => step([1, 2, 3], state, good, options)),
    },
  });
}
