// Gradients through time: against plain loops that finite differences confirm, and against themselves where two calls
// have to agree to the bit.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, type Tensor, tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { expectGradient, weightedSum } from './support/finite-differences.js';
import { callBackward, CELLS, flipped, one, parametersOf, random, reordered, slice } from './support/recurrent-case.js';
import { noGradients, plainBackward } from './support/recurrent-gradients.js';
import { type Cell, type PlainParameters, type PlainState, plainRun, type Rules } from './support/recurrent-reference.js';
import { allowedError, largestError, type Rounding, toDouble, toFloat } from './support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

/** The options that a cell has for itself, as the library and as the plain loops call them. */
const RULES: Readonly<Record<Cell, readonly { options: object; rules: Omit<Rules, 'round'> }[]>> = {
  rnn: [{ options: {}, rules: {} }, { options: { activation: 'relu' }, rules: { relu: true } }],
  lstm: [{ options: {}, rules: {} }],
  gru: [{ options: {}, rules: {} }, { options: { resetAfter: false }, rules: { resetAfter: false } }],
};
/** Another order of the gates, and which of ours is at each place. */
const ORDERS = { rnn: undefined, lstm: ['iofg', [0, 3, 1, 2]], gru: ['zrn', [1, 0, 2]] } as const;

const plain = (parameters: Record<string, Tensor>) =>
  Object.fromEntries(Object.entries(parameters).map(([name, { data }]) => [name, data])) as unknown as PlainParameters;
const withStates = (cell: Cell, names: readonly [h: string, c: string], seed: number, ...shape: number[]) =>
  ({ [names[0]]: random(seed, ...shape), ...(cell === 'lstm' && { [names[1]]: random(seed + 1, ...shape) }) });
const none = (hidden: number): PlainState => ({ h: new Float64Array(hidden), c: new Float64Array(hidden) });

/** A batch with what the loss says of it. */
function problem(cell: Cell, [batch, length, inputDim, hidden]: readonly [number, number, number, number], seed = 1) {
  return {
    x: random(seed + 10, batch, length, inputDim),
    parameters: parametersOf(cell, inputDim, hidden, seed),
    start: withStates(cell, ['h0', 'c0'], seed + 20, batch, hidden) as Record<string, Tensor>,
    loss: { dOutputs: random(seed + 30, batch, length, hidden), ...withStates(cell, ['dH', 'dC'], seed + 40, batch, hidden) } as Record<string, Tensor>,
    lengths: Array.from({ length: batch }, (_, b) => (b * 4 + 3) % (length + 1)),
  };
}
type Problem = ReturnType<typeof problem>;

/** Gradients by name, of a batch. */
function plainGradients(cell: Cell, { x, parameters, start, loss, lengths }: Problem, round: Rounding, rules: object, fromLast: boolean): Record<string, Float64Array> {
  const [batch, length, inputDim] = x.shape as [number, number, number];
  const hidden = parameters.wh.shape[0]!;
  const made = { dX: new Float64Array(x.data.length), dH0: new Float64Array(batch * hidden), dC0: new Float64Array(cell === 'lstm' ? batch * hidden : 0) };
  const dParameters = noGradients(cell, inputDim, hidden);
  const state = (of: Record<string, Tensor>, h: string, c: string, b: number): PlainState =>
    ({ h: Float64Array.from(one(of[h]!, b).data), c: of[c] ? Float64Array.from(one(of[c], b).data) : none(hidden).c });
  for (let i = 0; i < batch; i++) {
    const b = fromLast ? batch - 1 - i : i;
    const count = lengths[b]!;
    const own = plainBackward(
      cell, slice(one(loss['dOutputs']!, b), 0, 0, count).data, state(loss, 'dH', 'dC', b), slice(one(x, b), 0, 0, count).data, inputDim,
      plain(parameters), state(start, 'h0', 'c0', b), { round, ...rules }, dParameters,
    );
    made.dX.set(own.dX, b * length * inputDim);
    made.dH0.set(own.dH0, b * hidden);
    if (cell === 'lstm') made.dC0.set(own.dC0, b * hidden);
  }
  return { ...made, ...dParameters };
}

describe(`gradients through time, ${variant}`, () => {
  for (const cell of CELLS) {
    const sizes = [11, 9, 5, 13] as const;
    const [batch, length, inputDim, hidden] = sizes;
    const { x, parameters, start, loss, lengths } = problem(cell, sizes);
    const reverse = parametersOf(cell, inputDim, hidden, 50);
    const states = cell === 'lstm' ? ['dH0', 'dC0'] as const : ['dH0'] as const;

    test(`${cell}: the plain loops are right: finite differences in double precision`, () => {
      for (const { rules } of RULES[cell]) {
        const given = { ...plain(parametersOf(cell, 2, 3, 5)), x: random(6, 4, 2).data, h: random(7, 3).data, c: random(8, 3).data };
        const [dOutputs, dH, dC] = [random(9, 4, 3).data, random(10, 3).data, random(11, 3).data];
        const all = { round: toDouble, ...rules };
        const run = ({ x, h, c, ...weights }: typeof given) => plainRun(cell, x, 2, weights, { h: Float64Array.from(h), c: Float64Array.from(c) }, all);
        const lossOf = (changed: object) => {
          const { outputs, h, c } = run({ ...given, ...changed });
          return weightedSum(outputs, dOutputs) + weightedSum(h, dH) + weightedSum(c, dC);
        };
        const made = plainBackward(cell, dOutputs, { h: Float64Array.from(dH), c: Float64Array.from(dC) }, given.x, 2, given, { h: Float64Array.from(given.h), c: Float64Array.from(given.c) }, all);
        const gradients = { x: made.dX, h: made.dH0, ...(cell === 'lstm' && { c: made.dC0, peephole: made.dParameters.peephole }), ...(({ peephole, ...rest }) => (void peephole, rest))(made.dParameters) };
        for (const [name, gradient] of Object.entries(gradients)) {
          expectGradient(gradient, given[name as 'x'], (moved) => lossOf({ [name]: moved }), `${name} of ${JSON.stringify(rules)}`);
        }
      }
    });

    test(`${cell}: gradients are as exact as those of a plain float program, in every order of the gates`, () => {
      for (const [count, steps, size] of [[3, 12, 1], [1, 12, 4], [3, 7, 21], [2, 5, 64], [9, 6, 13]] as const) {
        for (const { options, rules } of RULES[cell]) {
          for (const order of ORDERS[cell] ? [undefined, ORDERS[cell]] : [undefined]) {
            const errors = new Map<string, { error: number; allowed: number }>();
            for (let seed = 1; seed <= 4; seed++) {
              const given = problem(cell, [count, steps, 6, size], 100 * seed);
              const theirs = order ? reordered(given.parameters, order[1], size) : given.parameters;
              const made = callBackward(engine, cell, given.loss, given.x, theirs, { ...given.start, lengths: given.lengths, ...options, ...(order && { gateOrder: order[0] }) });
              const back = order && order[1].map((_, gate) => order[1].indexOf(gate as never));
              const all = { dX: made.dX, dH0: made.dH0, ...(made.dC0 && { dC0: made.dC0 }), ...(back ? reordered(made.dParameters, back, size) : made.dParameters) };
              const exact = plainGradients(cell, given, toDouble, rules, false);
              for (const fromLast of [false, true]) {
                const float = plainGradients(cell, given, toFloat, rules, fromLast);
                for (const [name, { data }] of Object.entries(all)) {
                  const { error, allowed } = errors.get(name) ?? { error: 0, allowed: 0 };
                  errors.set(name, { error: Math.max(error, largestError(data, exact[name]!)), allowed: Math.max(allowed, allowedError(float[name]!, exact[name]!)) });
                }
              }
            }
            for (const [name, { error, allowed }] of errors) {
              assert.ok(error <= allowed, `${name} is off by ${error}, allowed are ${allowed}, with ${count} x ${steps} x ${size}, ${JSON.stringify({ ...options, order })}`);
            }
          }
        }
      }
    });

    test(`${cell}: what is left out is 0`, () => {
      const zero = ({ shape, data }: Tensor) => tensor(new Float32Array(data.length), shape);
      for (const left of Object.keys(loss)) {
        const { [left]: gone, ...rest } = loss;
        assert.deepEqual(callBackward(engine, cell, rest, x, parameters, start), callBackward(engine, cell, { ...rest, [left]: zero(gone!) }, x, parameters, start), left);
      }
      const nothing = callBackward(engine, cell, {}, x, parameters, start);
      for (const { data } of [nothing.dX, nothing.dH0, ...Object.values(nothing.dParameters)]) assert.ok(data.every((gradient) => gradient === 0));
      const zeros = Object.fromEntries(Object.entries(start).map(([name, state]) => [name, zero(state)]));
      assert.deepEqual(callBackward(engine, cell, loss, x, parameters), callBackward(engine, cell, loss, x, parameters, zeros), 'first states');
    });

    test(`${cell}: gradients have the names of the parameters, in their order`, () => {
      const { wx, wh, bx, bh, ...rest } = parameters;
      const shapes = (given: object) => Object.entries(given as Record<string, Tensor>).map(([name, { shape }]) => [name, [...shape]]);
      for (const given of [{ wh, wx }, { bh, wh, wx }, { wx, ...rest, wh, bx, bh: undefined }, parameters]) {
        const expected = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
        assert.deepEqual(shapes(callBackward(engine, cell, loss, x, given).dParameters), shapes(expected));
      }
      const whole = callBackward(engine, cell, loss, x, { ...parameters, bx: tensor(new Float32Array(bx.data.length), bx.shape) }).dParameters;
      const { bx: unknown, ...without } = parameters;
      assert.ok(unknown);
      const { bx: dropped, ...expected } = whole;
      assert.ok(dropped);
      assert.deepEqual(callBackward(engine, cell, loss, x, without).dParameters, expected);
    });

    test(`${cell}: reverse is forward over the turned input`, () => {
      const turned = callBackward(engine, cell, { ...loss, dOutputs: flipped(loss['dOutputs']!, 1) }, flipped(x, 1), parameters, start);
      const made = callBackward(engine, cell, loss, x, parameters, { ...start, direction: 'reverse' });
      assert.deepEqual(made, { ...turned, dX: flipped(turned.dX, 1) });
    });

    test(`${cell}: both is one run in each direction, of which dX is the sum`, () => {
      const twice = { ...withStates(cell, ['h0', 'c0'], 60, 2, batch, hidden) } as Record<string, Tensor>;
      const above = { dOutputs: random(61, batch, length, 2 * hidden), ...withStates(cell, ['dH', 'dC'], 62, 2, batch, hidden) } as Record<string, Tensor>;
      const made = callBackward(engine, cell, above, x, { forward: parameters, reverse }, { ...twice, direction: 'both', lengths });
      const single = (['forward', 'reverse'] as const).map((direction, d) => {
        const own = (of: Record<string, Tensor>) => Object.fromEntries(Object.entries(of).map(([name, state]) =>
          [name, name === 'dOutputs' ? slice(state, 2, d * hidden, (d + 1) * hidden) : one(state, d)]));
        const alone = callBackward(engine, cell, own(above), x, d === 0 ? parameters : reverse, { ...own(twice), direction, lengths });
        assert.deepEqual((made.dParameters as unknown as Record<string, object>)[direction], alone.dParameters, direction);
        for (const state of states) assert.deepEqual(one(made[state]!, d), alone[state], `${state} of ${direction}`);
        return alone.dX.data;
      });
      assert.deepEqual(made.dX.data, single[0]!.map((value, i) => Math.fround(value + single[1]![i]!)));
    });

    test(`${cell}: a sequence has the same bits alone, in a batch, and whatever lies beyond its length`, () => {
      const dirt = ({ data, shape }: Tensor) => tensor(data.map((value, i) => {
        const row = Math.floor(i / shape[2]!);
        return row % length < lengths[Math.floor(row / length)]! ? value : NaN;
      }), shape);
      for (const direction of ['forward', 'reverse'] as const) {
        const clean = callBackward(engine, cell, loss, x, parameters, { ...start, direction, lengths });
        const together = callBackward(engine, cell, { ...loss, dOutputs: dirt(loss['dOutputs']!) }, dirt(x), parameters, { ...start, direction, lengths });
        assert.deepEqual(together, clean, 'what lies beyond a length changed a gradient');
        for (let b = 0; b < batch; b++) {
          const count = lengths[b]!;
          const own = (of: Record<string, Tensor>) => Object.fromEntries(Object.entries(of).map(([name, value]) =>
            [name, name === 'dOutputs' ? slice(one(value, b), 0, 0, count) : one(value, b)]));
          const alone = callBackward(engine, cell, own(loss), slice(one(x, b), 0, 0, count), parameters, { ...own(start), direction });
          const dX = one(together.dX, b);
          assert.deepEqual(slice(dX, 0, 0, count), alone.dX, `dX of ${b}, ${direction}`);
          assert.ok(slice(dX, 0, count, length).data.every((value) => Object.is(value, 0)), `${b} has a gradient beyond its length`);
          for (const state of states) assert.deepEqual(one(together[state]!, b), alone[state], `${state} of ${b}, ${direction}`);
          if (count === 0) assert.deepEqual(alone.dH0, own(loss)['dH']);
        }
      }
    });

    test(`${cell}: the same bits for any number of threads`, { skip: !threaded && 'this variant has no threads' }, async () => {
      const both = [{ dOutputs: random(61, batch, length, 2 * hidden) }, x, { forward: parameters, reverse }, { direction: 'both', lengths }] as const;
      const expected = callBackward(engine, cell, ...both);
      for (const threads of [1, 2, 3, 8]) {
        const many = await loadVariant({ threads });
        assert.deepEqual(callBackward(many, cell, ...both), expected, `${threads} threads`);
        if (many !== engine) many.dispose();
      }
    });

    test(`${cell}: zero lengths, batches and sizes`, () => {
      const above = withStates(cell, ['dH', 'dC'], 70, hidden) as Record<string, Tensor>;
      const empty = callBackward(engine, cell, above, tensor(new Float32Array(0), [0, inputDim]), parameters);
      assert.deepEqual([empty.dX.shape, empty.dH0, empty.dC0], [[0, inputDim], above['dH'], above['dC']]);
      assert.ok(Object.values(empty.dParameters).every(({ data }) => data.every((gradient) => gradient === 0)));
      assert.deepEqual(callBackward(engine, cell, {}, random(1, 0, 3, inputDim), parameters).dX.shape, [0, 3, inputDim]);
      const stateless = callBackward(engine, cell, {}, random(1, 2, inputDim), { wx: random(1, inputDim, 0), wh: random(1, 0, 0) });
      assert.deepEqual([stateless.dX.toArray(), stateless.dH0.shape], [Array(2).fill(Array(inputDim).fill(0)), [0]]);
      const gates = parameters.wx.shape[1]! / hidden;
      const blind = callBackward(engine, cell, { dH: tensor([1]) }, random(1, 2, 0), { wx: random(1, 0, gates), wh: random(1, 1, gates) });
      assert.deepEqual([blind.dX.shape, blind.dParameters['wx']!.shape, Number.isFinite(blind.dH0.data[0])], [[2, 0], [0, gates], true]);
    });
  }

  test('arguments are not written to, and results share no memory', () => {
    const { x, parameters, start, loss } = problem('lstm', [2, 5, 3, 4]);
    const before = JSON.stringify([x, parameters, start, loss]);
    const made = callBackward(engine, 'lstm', loss, x, parameters, start);
    made.dX.data.fill(1);
    assert.deepEqual(callBackward(engine, 'lstm', loss, x, parameters, start).dH0, made.dH0);
    assert.equal(JSON.stringify([x, parameters, start, loss]), before);
  });
});
