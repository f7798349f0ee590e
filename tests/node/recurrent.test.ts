// The recurrent cells: against plain loops, and against themselves where two calls have to agree to the bit.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { call, callStep, CELLS, flipped, one, parametersOf, random, reordered, slice } from './support/recurrent-case.js';
import { plainRun } from './support/recurrent-reference.js';
import { allowedError, largestError, type Rounding, toDouble, toFloat } from './support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const [batch, length, inputDim, hidden] = [11, 9, 5, 13] as const;
const lengths = Array.from({ length: batch }, (_, b) => (b * 4 + 3) % (length + 1));
const statesOf = (cell: string, ...shape: number[]) => ({ h0: random(6, ...shape), ...(cell === 'lstm' && { c0: random(7, ...shape) }) });

describe(`recurrent cells, ${variant}`, () => {
  for (const cell of CELLS) {
    const parameters = parametersOf(cell, inputDim, hidden);
    const states = statesOf(cell, batch, hidden);
    const x = random(5, batch, length, inputDim);
    const reverse = parametersOf(cell, inputDim, hidden, 20);

    test(`${cell} is as exact as a plain float program`, () => {
      for (const size of [1, 4, 21, 64, 70]) {
        for (const rules of [{}, { resetAfter: false, relu: true }]) {
          const given = parametersOf(cell, 6, size);
          const [from, { h0, c0 }] = [random(8, 12, 6), statesOf(cell, size)];
          const options = cell === 'rnn' ? { activation: 'relu' in rules ? 'relu' : 'tanh' } : cell === 'gru' ? { resetAfter: !('resetAfter' in rules) } : {};
          const made = call(engine, cell, from, given, { h0, ...(c0 && { c0 }), ...options });
          const plain = Object.fromEntries(Object.entries(given).map(([name, { data }]) => [name, data])) as { wx: Float32Array; wh: Float32Array };
          const start = { h: Float64Array.from(h0.data), c: Float64Array.from(c0?.data ?? []) };
          const run = (round: Rounding) => plainRun(cell, from.data, 6, plain, start, { round, ...rules });
          const [float, exact] = [run(toFloat), run(toDouble)];
          for (const name of cell === 'lstm' ? (['outputs', 'h', 'c'] as const) : (['outputs', 'h'] as const)) {
            const error = largestError(made[name].data, exact[name]);
            assert.ok(error <= allowedError(float[name], exact[name]), `${name} is off by ${error} with hidden ${size}, ${JSON.stringify(rules)}`);
          }
          assert.deepEqual(made.h.data, made.outputs.data.slice(-size));
          assert.deepEqual([made.outputs.shape, made.h.shape], [[12, size], [size]]);
        }
      }
    });

    test(`${cell}: steps have the bits of the whole sequence, alone and in a batch`, () => {
      for (const size of [13, 32]) {
        const given = parametersOf(cell, inputDim, size);
        const { h0, c0 } = statesOf(cell, batch, size);
        const whole = call(engine, cell, x, given, { h0, ...(c0 && { c0 }) });
        let together: object = { h: h0, ...(c0 && { c: c0 }) };
        let alone: object = { h: one(h0, 3), ...(c0 && { c: one(c0, 3) }) };
        for (let t = 0; t < length; t++) {
          const after = callStep(engine, cell, one(x, t, 1), together, given);
          assert.deepEqual(after.h, one(whole.outputs, t, 1), `step ${t} of the batch`);
          const afterAlone = callStep(engine, cell, one(one(x, t, 1), 3), alone, given);
          assert.deepEqual(afterAlone.h, one(after.h, 3), `step ${t} alone`);
          [together, alone] = [after, afterAlone];
        }
        assert.deepEqual(together, { h: whole.h, ...(whole.c && { c: whole.c }) });
      }
    });

    test(`${cell}: a sequence in two parts has the bits of the whole`, () => {
      const whole = call(engine, cell, x, parameters, states);
      const first = call(engine, cell, slice(x, 1, 0, 4), parameters, states);
      const second = call(engine, cell, slice(x, 1, 4, length), parameters, { h0: first.h, ...(first.c && { c0: first.c }) });
      assert.deepEqual(first.outputs, slice(whole.outputs, 1, 0, 4));
      assert.deepEqual(second.outputs, slice(whole.outputs, 1, 4, length));
      assert.deepEqual([second.h, second.c], [whole.h, whole.c]);
    });

    test(`${cell}: reverse is forward over the turned input`, () => {
      const turned = call(engine, cell, flipped(x, 1), parameters, states);
      const made = call(engine, cell, x, parameters, { ...states, direction: 'reverse' });
      assert.deepEqual(made, { ...turned, outputs: flipped(turned.outputs, 1) });
    });

    test(`${cell}: both is one run in each direction`, () => {
      const twice = statesOf(cell, 2, batch, hidden);
      const made = call(engine, cell, x, { forward: parameters, reverse }, { ...twice, direction: 'both', lengths });
      assert.deepEqual([made.outputs.shape, made.h.shape], [[batch, length, 2 * hidden], [2, batch, hidden]]);
      (['forward', 'reverse'] as const).forEach((direction, d) => {
        const own = Object.fromEntries(Object.entries(twice).map(([name, state]) => [name, one(state as typeof x, d)]));
        const single = call(engine, cell, x, d === 0 ? parameters : reverse, { ...own, direction, lengths });
        assert.deepEqual(slice(made.outputs, 2, d * hidden, (d + 1) * hidden), single.outputs, direction);
        assert.deepEqual([one(made.h, d), made.c && one(made.c, d)], [single.h, single.c], direction);
      });
    });

    test(`${cell}: a sequence has the same bits alone, in a batch, and whatever lies beyond its length`, () => {
      for (const direction of ['forward', 'reverse'] as const) {
        const dirty = tensor(x.data.map((value, i) => (Math.floor(i / inputDim) % length < lengths[Math.floor(i / inputDim / length)]! ? value : NaN)), x.shape);
        const together = call(engine, cell, dirty, parameters, { ...states, direction, lengths });
        for (let b = 0; b < batch; b++) {
          const own = Object.fromEntries(Object.entries(states).map(([name, state]) => [name, one(state as typeof x, b)]));
          const count = lengths[b]!;
          const alone = call(engine, cell, slice(one(x, b), 0, 0, count), parameters, { ...own, direction });
          const outputs = one(together.outputs, b);
          assert.deepEqual(slice(outputs, 0, 0, count), alone.outputs, `outputs of ${b}, ${direction}`);
          assert.ok(slice(outputs, 0, count, length).data.every((value) => Object.is(value, 0)), `${b} has outputs beyond its length`);
          assert.deepEqual([one(together.h, b), together.c && one(together.c, b)], [alone.h, alone.c], `states of ${b}, ${direction}`);
          if (count === 0) assert.deepEqual(one(together.h, b), own['h0']);
        }
      }
    });

    test(`${cell}: gates in another order`, { skip: cell === 'rnn' && 'it has one gate' }, () => {
      const [gateOrder, places] = cell === 'lstm' ? (['iofg', [0, 3, 1, 2]] as const) : (['zrn', [1, 0, 2]] as const);
      const theirs = reordered(parameters, places, hidden);
      const options = cell === 'gru' ? { ...states, resetAfter: false } : states;
      assert.deepEqual(call(engine, cell, x, theirs, { ...options, gateOrder }), call(engine, cell, x, parameters, options));
    });

    test(`${cell}: the same bits for any number of threads`, { skip: !threaded && 'this variant has no threads' }, async () => {
      const both = { forward: parameters, reverse };
      const expected = call(engine, cell, x, both, { direction: 'both', lengths });
      for (const threads of [1, 2, 3, 8]) {
        const many = await loadVariant({ threads });
        assert.deepEqual(call(many, cell, x, both, { direction: 'both', lengths }), expected, `${threads} threads`);
        if (many !== engine) many.dispose();
      }
    });

    test(`${cell}: zero lengths, batches and sizes`, () => {
      const empty = tensor(new Float32Array(0), [0, inputDim]);
      const start = statesOf(cell, hidden);
      const made = call(engine, cell, empty, parameters, start);
      assert.deepEqual([made.outputs.shape, made.h], [[0, hidden], start.h0]);
      assert.deepEqual(call(engine, cell, random(1, 0, 3, inputDim), parameters).outputs.shape, [0, 3, hidden]);
      const gates = parameters.wx.shape[1]! / hidden;
      assert.deepEqual(call(engine, cell, random(1, 2, inputDim), { wx: random(1, inputDim, 0), wh: random(1, 0, 0) }).outputs.shape, [2, 0]);
      const blind = call(engine, cell, random(1, 2, 0), { wx: random(1, 0, gates), wh: random(1, 1, gates) });
      assert.deepEqual([blind.outputs.toArray(), blind.h.toArray()], [[[0], [0]], [0]]);
    });
  }

  test('arguments are not written to, and results share no memory', () => {
    const parameters = parametersOf('lstm', 3, 4);
    const x = random(1, 5, 3);
    const before = JSON.stringify([parameters, x]);
    const { outputs, h, c } = engine.lstm(x, parameters);
    outputs.data.fill(1);
    assert.ok(!h.data.includes(1) && !c.data.includes(1));
    assert.equal(JSON.stringify([parameters, x]), before);
  });
});
