// The lesson's two machines: explain() and the recurrent network.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, sinusoidal, tensor } from 'qkv';

import { loadVariant, variant } from './support/engine.js';
import { allowedError, largestError, randomFloats, rnn, toDouble, toFloat } from './support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b), seed), shape);

describe(`explain, ${variant}`, () => {
  test('every step is what the step before it gives', () => {
    const [n, d, dv] = [9, 6, 5] as const;
    const x = random(1, n, 8);
    const steps = engine.explain(x, { wq: random(2, 8, d), wk: random(3, 8, d), wv: random(4, 8, dv), causal: true });
    assert.deepEqual(
      Object.entries(steps).map(([name, { shape }]) => [name, shape]),
      [['query', [n, d]], ['key', [n, d]], ['value', [n, dv]], ['scores', [n, n]], ['scaled', [n, n]], ['weights', [n, n]], ['output', [n, dv]]],
    );
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        let score = 0;
        for (let k = 0; k < d; k++) score += steps.query.at(i, k) * steps.key.at(j, k);
        assert.ok(Math.abs(steps.scores.at(i, j) - score) < 1e-5);
        assert.equal(steps.scaled.at(i, j), Math.fround(steps.scores.at(i, j) * Math.fround(1 / Math.sqrt(d))));
        if (j > i) assert.equal(steps.weights.at(i, j), 0);
      }
    }
    const whole = engine.attention(steps.query, steps.key, steps.value, { causal: true, weights: 'heads' });
    assert.deepEqual(whole.weights!.data, steps.weights.data);
    assert.deepEqual(whole.output.data, steps.output.data);
  });

  test('takes a scale and a mask', () => {
    const one = [[1]];
    const { scaled, weights } = engine.explain([[1], [2]], { wq: one, wk: one, wv: one, scale: 3, mask: [[true, true], [false, true]] });
    assert.deepEqual(scaled.toArray(), [[3, 6], [6, 12]]);
    assert.deepEqual(weights.toArray()[1], [0, 1]);
  });
});

describe(`rnn, ${variant}`, () => {
  test('is as exact as a plain float program', () => {
    for (const hidden of [1, 4, 21, 64, 70]) {
      const [x, wx, wh, bx, bh] = [random(1, 12, 6), random(2, 6, hidden), random(3, hidden, hidden), random(4, hidden), random(5, hidden)];
      const scaled = tensor(wh.data.map((w) => w / Math.sqrt(hidden)), wh.shape);
      const { outputs, h } = engine.rnn(x, { wx, wh: scaled, bx, bh });
      const run = (round: typeof toDouble) => rnn(x.data, wx.data, scaled.data, bx.data.map((b, j) => b + bh.data[j]!), hidden, round);
      const error = largestError(outputs.data, run(toDouble));
      assert.ok(error <= allowedError(run(toFloat), run(toDouble)), `off by ${error} with hidden ${hidden}`);
      assert.deepEqual(h.data, outputs.data.slice(-hidden));
      assert.deepEqual([outputs.shape, h.shape], [[12, hidden], [hidden]]);
    }
  });

  test('steps have the bits of the whole sequence, alone and in a batch', () => {
    const [batch, length, hidden] = [3, 7, 10] as const;
    const parameters = { wx: random(2, 5, hidden), wh: random(3, hidden, hidden) };
    const x = random(1, batch, length, 5);
    const h0 = random(6, batch, hidden);
    const { outputs, h } = engine.rnn(x, parameters, { h0 });
    assert.deepEqual([outputs.shape, h.shape], [[batch, length, hidden], [batch, hidden]]);
    for (let b = 0; b < batch; b++) {
      let state = tensor(h0.data.slice(b * hidden, (b + 1) * hidden), [hidden]);
      for (let t = 0; t < length; t++) {
        state = engine.rnnStep(tensor(x.data.slice((b * length + t) * 5, (b * length + t + 1) * 5), [5]), { h: state }, parameters).h;
        assert.deepEqual(state.data, outputs.data.slice((b * length + t) * hidden, (b * length + t + 1) * hidden));
      }
      assert.deepEqual(state.data, h.data.slice(b * hidden, (b + 1) * hidden));
    }
    const together = engine.rnnStep(tensor(x.data.filter((_, i) => Math.floor(i / 5) % length === 0), [batch, 5]), { h: h0 }, parameters);
    assert.deepEqual(together.h.shape, [batch, hidden]);
    assert.deepEqual(together.h.data.slice(0, hidden), outputs.data.slice(0, hidden));
  });

  test('a sequence of length 0 keeps its state', () => {
    const { outputs, h } = engine.rnn(tensor(new Float32Array(0), [0, 2]), { wx: [[1], [1]], wh: [[1]] }, { h0: [0.25] });
    assert.deepEqual([outputs.shape, h.toArray()], [[0, 1], [0.25]]);
  });
});

test('sinusoidal: sine in even columns, cosine in odd ones', () => {
  const positions = sinusoidal(5, 5, { base: 100 });
  for (let t = 0; t < 5; t++) {
    for (let column = 0; column < 5; column++) {
      const angle = t / 100 ** ((column - (column % 2)) / 5);
      assert.equal(positions.at(t, column), Math.fround(column % 2 ? Math.cos(angle) : Math.sin(angle)));
    }
  }
  assert.deepEqual(sinusoidal(0, 4).shape, [0, 4]);
});

test('tensor: nested arrays and back, masks as bytes, data not copied', () => {
  assert.deepEqual(tensor([[1, 2], [3, 4]]).toArray(), [[1, 2], [3, 4]]);
  assert.deepEqual(tensor([[[1], [2]], [[3], [4]]]).shape, [2, 2, 1]);
  assert.deepEqual(tensor([[], []]).toArray(), [[], []]);
  assert.deepEqual(tensor([[], []]).shape, [2, 0]);
  assert.ok(tensor([true, false]).data instanceof Uint8Array);
  const data = new Float32Array(6);
  assert.equal(tensor(data, [2, 3]).data, data);
  assert.deepEqual(tensor(new Float64Array([1, 2])).toArray(), [1, 2]);
  assert.deepEqual(tensor(new BigInt64Array([1n, 2n]), [2, 1]).toArray(), [[1], [2]]);
});
