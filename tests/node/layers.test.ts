// The building blocks that work on rows: linear, softmax, the norms, gelu, silu, embedding.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { alibiSlopes, type Engine, load, tensor, type Tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { allowedError, largestError, randomFloats, type Rounding, toDouble, toFloat } from './support/reference.js';
import { byRows, gelu, geluTanh, layerNormRow, rmsNormRow, silu, softmaxRow } from './support/rows.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const LENGTHS = [1, 2, 3, 4, 5, 63, 64, 65, 257, 1000];
const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b), seed), shape);
const empty = (...shape: number[]) => tensor(new Float32Array(0), shape);

function isNear(made: Tensor, run: (round: Rounding) => Float64Array, what: string): void {
  const [exact, plain] = [run(toDouble), run(toFloat)];
  const [error, allowed] = [largestError(made.data, exact), allowedError(plain, exact)];
  assert.ok(error <= allowed, `${what} is off by ${error}, allowed are ${allowed}`);
}

describe(`layers, ${variant}`, () => {
  test('linear: x . weight + bias, whatever the axes before the last', () => {
    for (const [inDim, outDim] of [[1, 1], [3, 5], [64, 65], [130, 20]] as const) {
      const [x, weight, bias] = [random(1, 2, 3, inDim), random(2, inDim, outDim), random(3, outDim)];
      const run = (withBias: boolean) => (round: Rounding) => {
        const out = new Float64Array(6 * outDim);
        for (let i = 0; i < out.length; i++) {
          const [r, j] = [Math.floor(i / outDim), i % outDim];
          for (let k = 0; k < inDim; k++) out[i] = round(out[i]! + round(x.data[r * inDim + k]! * weight.data[k * outDim + j]!));
          if (withBias) out[i] = round(out[i]! + bias.data[j]!);
        }
        return out;
      };
      const made = engine.linear(x, weight, bias);
      assert.deepEqual(made.shape, [2, 3, outDim]);
      isNear(made, run(true), `linear ${inDim} to ${outDim} with a bias`);
      isNear(engine.linear(x, weight), run(false), `linear ${inDim} to ${outDim}`);
    }
    assert.deepEqual(engine.linear([1, 2], [[1, 0, 1], [0, 1, 1]], [10, 20, 30]).toArray(), [11, 22, 33]);
    assert.deepEqual(engine.linear(empty(2, 0), empty(0, 3), [1, 2, 3]).toArray(), [[1, 2, 3], [1, 2, 3]]);
    assert.deepEqual(engine.linear(empty(0, 2), [[1], [1]]).shape, [0, 1]);
  });

  test('softmax, layerNorm and rmsNorm are as exact as a plain float program, at every length', () => {
    for (const columns of LENGTHS) {
      const x = tensor(random(columns, 2, 3, columns).data.map((value) => 4 * value), [2, 3, columns]);
      const [gamma, beta] = [random(1, columns), random(2, columns)];
      const eps = Math.fround(1e-3);
      const rows = (row: (values: Float64Array, round: Rounding) => Float64Array) => (round: Rounding) =>
        byRows(x.data, columns, (values) => row(values, round));
      isNear(engine.softmax(x), rows(softmaxRow), `softmax of ${columns}`);
      isNear(engine.layerNorm(x), rows((v, round) => layerNormRow(v, round, 1e-5, undefined, undefined)), `layerNorm of ${columns}`);
      isNear(engine.layerNorm(x, { gamma, beta, eps }), rows((v, round) => layerNormRow(v, round, eps, gamma.data, beta.data)), `layerNorm with gamma and beta of ${columns}`);
      isNear(engine.layerNorm(x, { beta }), rows((v, round) => layerNormRow(v, round, 1e-5, undefined, beta.data)), `layerNorm with beta of ${columns}`);
      isNear(engine.rmsNorm(x), rows((v, round) => rmsNormRow(v, round, 1e-5, undefined)), `rmsNorm of ${columns}`);
      isNear(engine.rmsNorm(x, { gamma, eps }), rows((v, round) => rmsNormRow(v, round, eps, gamma.data)), `rmsNorm with gamma of ${columns}`);
      for (const made of [engine.softmax(x), engine.layerNorm(x), engine.rmsNorm(x)]) assert.deepEqual(made.shape, [2, 3, columns]);
    }
  });

  test('softmax of nothing but -Infinity is zeros', () => {
    assert.deepEqual(engine.softmax([[-Infinity, -Infinity], [1000, 1000], [-Infinity, 5]]).toArray(), [[0, 0], [0.5, 0.5], [0, 1]]);
  });

  test('layerNorm keeps its digits beside a large mean', () => {
    const x = random(1, 4, 300).data.map((value) => value + 1000);
    const exact = byRows(x, 300, (values) => layerNormRow(values, toDouble, 1e-5, undefined, undefined));
    const error = largestError(engine.layerNorm(tensor(x, [4, 300])).data, exact);
    assert.ok(error < 5e-7, `layerNorm is off by ${error} where the mean is 1000`);
  });

  test('gelu and silu keep their digits on both sides', () => {
    const x = Float32Array.from({ length: 4001 }, (_, i) => (i - 2000) / 200);
    const relative = (made: Tensor, exact: (x: number) => number, from: number) => {
      let [worst, at] = [0, 0];
      made.data.forEach((value, i) => {
        if (x[i]! < from || x[i] === 0) return;
        const error = Math.abs(value / exact(x[i]!) - 1);
        if (error > worst) [worst, at] = [error, x[i]!];
      });
      return { worst: worst / 2 ** -23, at };
    };
    const found = [
      relative(engine.gelu(tensor(x)), gelu, -10),
      relative(engine.silu(tensor(x)), silu, -10),
      // Its cubic polynomial reaches 20, and a last place of it is as much of the result.
      relative(engine.gelu(tensor(x), { approximate: 'tanh' }), geluTanh, -5),
    ];
    found.forEach(({ worst, at }, i) => {
      const [name, allowed] = [['gelu', 4], ['silu', 4], ['gelu tanh', 16]][i]!;
      assert.ok(worst <= (allowed as number), `${name} is off by ${worst} units of 2^-23 of the result at ${at}, at most ${allowed} are expected`);
    });
  });

  test('gelu and silu at known and at extreme numbers', () => {
    const near = (made: Tensor, expected: number[]) => assert.ok(largestError(made.data, expected) < 3e-7, `${made.toArray()} came, ${expected} expected`);
    near(engine.gelu([[-1, 1], [3, 0]]), [-0.15865525, 0.84134475, 2.99595031, 0]);
    near(engine.gelu([-1, 1, 3], { approximate: 'none' }), [-0.15865525, 0.84134475, 2.99595031]);
    near(engine.gelu([-1, 1, 3], { approximate: 'tanh' }), [-0.15880801, 0.84119199, 2.99636261]);
    near(engine.silu([-1, 1, 3]), [-0.26894142, 0.73105858, 2.85772238]);
    for (const activation of [engine.silu, engine.gelu, (x: Tensor) => engine.gelu(x, { approximate: 'tanh' })]) {
      const made = Array.from(activation.call(engine, tensor([-Infinity, Infinity, NaN, -3e38])).data, Math.abs);
      assert.deepEqual(made, [0, Infinity, NaN, 0]);
    }
  });

  test('embedding gives the rows that are named', () => {
    const table = tensor([[0, 1], [10, 11], [20, 21]]);
    assert.deepEqual(engine.embedding(table, [2, 0, 2]).toArray(), [[20, 21], [0, 1], [20, 21]]);
    assert.deepEqual(engine.embedding(table, [[1, 2], [0, 0]]).toArray(), [[[10, 11], [20, 21]], [[0, 1], [0, 1]]]);
    for (const indices of [new Int32Array([1, 1]), new BigInt64Array([1n, 1n]), tensor([1, 1]), { data: new Uint8Array([1, 1]), shape: [2] }]) {
      assert.deepEqual(engine.embedding(table, indices).toArray(), [[10, 11], [10, 11]]);
    }
    assert.deepEqual(engine.embedding(table, []).shape, [0, 2]);
    assert.deepEqual(engine.embedding(empty(0, 4), new Int32Array(0)).shape, [0, 4]);
    assert.deepEqual(engine.embedding(table, tensor(new Float32Array([2]), [1, 1])).toArray(), [[[20, 21]]]);
  });

  test('axes of length 0 give empty results', () => {
    for (const shape of [[0], [0, 3], [3, 0], [2, 0, 4]]) {
      const x = empty(...shape);
      for (const made of [engine.softmax(x), engine.layerNorm(x), engine.rmsNorm(x), engine.gelu(x), engine.silu(x)]) {
        assert.deepEqual(made.shape, shape);
      }
    }
  });

  test('arguments are never written to', () => {
    const x = random(1, 5, 7);
    const [gamma, beta, table] = [random(2, 7), random(3, 7), random(4, 5, 7)];
    const before = [x, gamma, beta, table].map(({ data }) => data.slice());
    engine.softmax(x);
    engine.layerNorm(x, { gamma, beta });
    engine.rmsNorm(x, { gamma });
    engine.gelu(x);
    engine.silu(x);
    engine.embedding(table, [1]).data.fill(9);
    engine.linear(x, random(5, 7, 2));
    assert.deepEqual([x, gamma, beta, table].map(({ data }) => data), before);
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const x = random(1, 90, 301);
    const all = (on: Engine) => [on.softmax(x), on.layerNorm(x), on.rmsNorm(x), on.gelu(x), on.silu(x), on.linear(x, random(2, 301, 600))].map(({ data }) => data);
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = all(single);
    single.dispose();
    assert.deepEqual(all(engine), expected, `${engine.info().threads} threads gave other bits`);
    for (const threads of [1, 3]) {
      const many = await loadVariant({ threads });
      assert.deepEqual(all(many), expected, `${threads} threads gave other bits`);
      many.dispose();
    }
  });
});

test('alibiSlopes: halving powers, and every other slope of twice as many heads where they are no power of two', () => {
  assert.deepEqual(alibiSlopes(1).toArray(), [2 ** -8]);
  assert.deepEqual(alibiSlopes(6).toArray(), [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]);
  assert.deepEqual(alibiSlopes(8).toArray(), [1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** -i));
  const twelve = [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5].map((i) => Math.fround(2 ** -i));
  assert.deepEqual(alibiSlopes(12).toArray(), twelve);
  assert.deepEqual(alibiSlopes(12).shape, [12]);
  assert.deepEqual(alibiSlopes(0).shape, [0]);
});
