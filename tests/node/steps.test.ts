// The steps of attention, explain(), and what needs no engine.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, sinusoidal, tensor } from 'qkv';

import { loadVariant, variant } from './support/engine.js';
import { randomFloats } from './support/reference.js';

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
