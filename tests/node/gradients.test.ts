// The gradients of the building blocks: linear, softmax, the norms, gelu, silu, embedding, rotary, crossEntropy.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, type RotaryOptions, tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { expectGradient, weightedSum } from './support/finite-differences.js';
import { randomFloats, toDouble } from './support/reference.js';
import { byRows, gelu, geluTanh, layerNormRow, rmsNormRow, silu, softmaxRow } from './support/rows.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b), seed), shape);
const empty = (...shape: number[]) => tensor(new Float32Array(0), shape);
type Row = (values: Float64Array) => ArrayLike<number>;

describe(`gradients of the building blocks, ${variant}`, () => {
  test('linearBackward: of x, weight and bias, whatever the axes before the last', () => {
    for (const [inDim, outDim] of [[1, 1], [3, 5], [20, 9]] as const) {
      const [x, weight, bias, dOut] = [random(1, 2, 3, inDim), random(2, inDim, outDim), random(3, outDim), random(4, 2, 3, outDim)];
      const loss = (from: ArrayLike<number>, by: ArrayLike<number>, plus: ArrayLike<number>) =>
        dOut.data.reduce((sum, slope, i) => {
          const [r, j] = [Math.floor(i / outDim), i % outDim];
          let product = plus[j]!;
          for (let k = 0; k < inDim; k++) product += from[r * inDim + k]! * by[k * outDim + j]!;
          return sum + slope * product;
        }, 0);
      const { dX, dWeight, dBias } = engine.linearBackward(dOut, x, weight, bias);
      assert.deepEqual([dX.shape, dWeight.shape, dBias!.shape], [x.shape, weight.shape, bias.shape]);
      expectGradient(dX.data, x.data, (from) => loss(from, weight.data, bias.data), 'dX');
      expectGradient(dWeight.data, weight.data, (by) => loss(x.data, by, bias.data), 'dWeight');
      expectGradient(dBias!.data, bias.data, (plus) => loss(x.data, weight.data, plus), 'dBias');
      const without = engine.linearBackward(dOut, x, weight);
      assert.ok(!('dBias' in without), 'there is a dBias of no bias');
      assert.deepEqual([without.dX, without.dWeight], [dX, dWeight]);
    }
  });

  test('softmaxBackward and the norms’: of x, gamma and beta', () => {
    for (const columns of [2, 3, 5, 64, 67]) {
      const [x, dOut] = [random(columns, 2, 3, columns), random(7, 2, 3, columns)];
      const [gamma, beta] = [random(1, columns), random(2, columns)];
      const eps = Math.fround(1e-2);
      const loss = (from: ArrayLike<number>, row: Row) => weightedSum(byRows(Float64Array.from(from), columns, row), dOut.data);
      const expectX = (dX: { data: Float32Array; shape: readonly number[] }, row: Row, what: string) => {
        assert.deepEqual(dX.shape, x.shape);
        expectGradient(dX.data, x.data, (from) => loss(from, row), `${what} of ${columns}`);
      };
      expectX(engine.softmaxBackward(dOut, x).dX, (v) => softmaxRow(v, toDouble), 'softmax');
      const layer = (g?: ArrayLike<number>, b?: ArrayLike<number>): Row => (v) => layerNormRow(v, toDouble, eps, g, b);
      const both = engine.layerNormBackward(dOut, x, { gamma, beta, eps });
      expectX(both.dX, layer(gamma.data, beta.data), 'layerNorm');
      expectGradient(both.dGamma!.data, gamma.data, (g) => loss(x.data, layer(g, beta.data)), 'dGamma of layerNorm');
      expectGradient(both.dBeta!.data, beta.data, (b) => loss(x.data, layer(gamma.data, b)), 'dBeta of layerNorm');
      expectX(engine.layerNormBackward(dOut, x, { eps }).dX, layer(), 'layerNorm alone');
      const root = (g?: ArrayLike<number>): Row => (v) => rmsNormRow(v, toDouble, eps, g);
      const rms = engine.rmsNormBackward(dOut, x, { gamma, eps });
      expectX(rms.dX, root(gamma.data), 'rmsNorm');
      expectGradient(rms.dGamma!.data, gamma.data, (g) => loss(x.data, root(g)), 'dGamma of rmsNorm');
      assert.deepEqual(Object.keys(engine.layerNormBackward(dOut, x)), ['dX']);
      assert.deepEqual(Object.keys(engine.layerNormBackward(dOut, x, { beta })), ['dX', 'dBeta']);
      assert.deepEqual(Object.keys(engine.rmsNormBackward(dOut, x, { gamma })), ['dX', 'dGamma']);
    }
  });

  test('eps is 1e-5 by default', () => {
    const [x, dOut] = [tensor(random(1, 3, 8).data.map((value) => value / 300), [3, 8]), random(2, 3, 8)];
    assert.deepEqual(engine.layerNormBackward(dOut, x), engine.layerNormBackward(dOut, x, { eps: 1e-5 }));
    assert.deepEqual(engine.rmsNormBackward(dOut, x), engine.rmsNormBackward(dOut, x, { eps: 1e-5 }));
  });

  test('geluBackward and siluBackward: dOut times the slope', () => {
    const x = tensor(random(5, 4, 33).data.map((value) => 5 * value), [4, 33]);
    const dOut = random(6, 4, 33);
    const check = (dX: { data: Float32Array; shape: readonly number[] }, f: (value: number) => number, what: string) => {
      assert.deepEqual(dX.shape, x.shape);
      expectGradient(dX.data, x.data, (from) => weightedSum(from.map(f), dOut.data), what);
    };
    check(engine.geluBackward(dOut, x).dX, gelu, 'gelu');
    check(engine.geluBackward(dOut, x, { approximate: 'none' }).dX, gelu, 'gelu');
    check(engine.geluBackward(dOut, x, { approximate: 'tanh' }).dX, geluTanh, 'gelu tanh');
    check(engine.siluBackward(dOut, x).dX, silu, 'silu');
  });

  test('embeddingBackward: rows that were named several times add up, others are zeros', () => {
    const table = random(1, 4, 2);
    const { dTable } = engine.embeddingBackward([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], table, [[2, 0], [2, 2]]);
    assert.deepEqual(dTable.toArray(), [[3, 4], [0, 0], [13, 16], [0, 0]]);
    for (const indices of [new Int32Array([3]), new BigInt64Array([3n]), tensor([3])]) {
      assert.deepEqual(engine.embeddingBackward([[1, 2]], table, indices).dTable.toArray(), [[0, 0], [0, 0], [0, 0], [1, 2]]);
    }
    assert.deepEqual(engine.embeddingBackward(empty(0, 2), table, []).dTable.data, new Float32Array(8));
  });

  test('rotaryBackward turns back, by positions, tables and some of the dimensions', () => {
    const [cos, sin] = [random(8, 9, 2), random(9, 9, 2)];
    for (const pairing of ['halves', 'neighbours'] as const) {
      for (const options of [{}, { positions: [3, 1, 4] }, { offset: 5, base: 100 }, { dims: 2 }, { cos, sin, positions: [8, 0, 8] }]) {
        const all: RotaryOptions = { pairing, ...options };
        const [x, dOut] = [random(1, 2, 3, 6), random(2, 2, 3, 6)];
        // The forward pass is linear in x, and tested by itself: its own unit steps are the loss's slopes.
        const { dX } = engine.rotaryBackward(dOut, x, all);
        assert.deepEqual(dX.shape, x.shape);
        const exact = x.data.map((_, i) => {
          const unit = tensor(new Float32Array(36), [2, 3, 6]);
          unit.data[i] = 1;
          return weightedSum(engine.rotary(unit, all).data, dOut.data);
        });
        dX.data.forEach((value, i) => assert.ok(Math.abs(value - exact[i]!) < 3e-7, `dX[${i}] is ${value}, expected ${exact[i]}`));
      }
    }
  });

  test('crossEntropy: the mean of -log softmax at the targets, and its gradient', () => {
    const mean = (logits: Float64Array, targets: readonly number[], classes: number) =>
      targets.reduce((sum, target, r) => {
        const row = logits.subarray(r * classes, (r + 1) * classes);
        const largest = Math.max(...row);
        return sum + (largest + Math.log(row.reduce((total, x) => total + Math.exp(x - largest), 0)) - row[target]!) / targets.length;
      }, 0);
    for (const classes of [2, 5, 67]) {
      const logits = tensor(random(classes, 2, 3, classes).data.map((x) => 4 * x), [2, 3, classes]);
      const targets = [0, 1, classes - 1, 1, 0, 0];
      const { loss, dLogits } = engine.crossEntropy(logits, [targets.slice(0, 3), targets.slice(3)]);
      const exact = mean(Float64Array.from(logits.data), targets, classes);
      assert.ok(Math.abs(loss - exact) <= 4 * 2 ** -23 * exact, `the loss is ${loss}, expected ${exact}`);
      assert.deepEqual(dLogits.shape, logits.shape);
      expectGradient(dLogits.data, logits.data, (from) => mean(from, targets, classes), 'dLogits');
      const forms = [Int32Array.from(targets), targets, tensor(targets, [2, 3]), new BigInt64Array(targets.map(BigInt)), { data: Uint8Array.from(targets), shape: [6] }];
      for (const form of forms) assert.deepEqual(engine.crossEntropy(logits, form), { loss, dLogits });
    }
    assert.deepEqual(engine.crossEntropy([0, 0], [1]).dLogits.toArray(), [0.5, -0.5]);
    assert.equal(engine.crossEntropy(empty(0, 3), []).loss, 0);
    assert.deepEqual(engine.crossEntropy([[1e6, 999000]], [1]), { loss: 1000, dLogits: tensor([[1, -1]]) });
  });

  test('what is hidden by -Infinity has gradient 0, whatever comes from above', () => {
    const x = [[-Infinity, -Infinity], [0, -Infinity]];
    for (const poison of [NaN, Infinity]) {
      assert.deepEqual(engine.softmaxBackward([[poison, 1], [5, poison]], x).dX.toArray(), [[0, 0], [0, 0]]);
    }
    assert.deepEqual(engine.crossEntropy(x, [0, 0]), { loss: Infinity, dLogits: tensor([[0, 0], [0, 0]]) });
    assert.deepEqual(engine.crossEntropy([[0, -Infinity, 0]], [1]), { loss: Infinity, dLogits: tensor([[0.5, 0, 0.5]]) });
  });

  test('embeddingBackward keeps its digits where a row is named a hundred thousand times', () => {
    const count = 1e5;
    const { dTable } = engine.embeddingBackward(tensor(new Float32Array(count).fill(0.1), [count, 1]), [[1], [2]], new Int32Array(count).fill(1));
    const off = dTable.at(1, 0) / (count * Math.fround(0.1)) - 1;
    assert.ok(Math.abs(off) < 1e-5, `the sum is off by ${off}, expected less than 1e-5: sum in blocks`);
    assert.equal(dTable.at(0, 0), 0);
  });

  test('axes of length 0 give empty gradients, and zeros where sums have no terms', () => {
    for (const shape of [[0], [0, 3], [3, 0], [2, 0, 4]]) {
      const x = empty(...shape);
      const made = [engine.softmaxBackward(x, x), engine.layerNormBackward(x, x), engine.rmsNormBackward(x, x), engine.geluBackward(x, x), engine.siluBackward(x, x)];
      for (const { dX } of made) assert.deepEqual(dX.shape, shape);
    }
    const { dX, dWeight, dBias } = engine.linearBackward(empty(0, 2), empty(0, 3), random(1, 3, 2), [1, 2]);
    assert.deepEqual([dX.shape, dWeight.data, dBias!.data], [[0, 3], new Float32Array(6), new Float32Array(2)]);
    assert.deepEqual(engine.linearBackward(empty(2, 0), random(1, 2, 3), empty(3, 0)).dX.data, new Float32Array(6));
    assert.deepEqual(engine.layerNormBackward(empty(0, 2), empty(0, 2), { gamma: [1, 2] }).dGamma!.data, new Float32Array(2));
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const [x, dOut, gamma] = [random(1, 190, 301), random(2, 190, 301), random(3, 301)];
    const all = (on: Engine) => [
      on.softmaxBackward(dOut, x), on.layerNormBackward(dOut, x, { gamma, beta: gamma }), on.rmsNormBackward(dOut, x, { gamma }),
      on.geluBackward(dOut, x), on.siluBackward(dOut, x), on.rotaryBackward(dOut, x, { pairing: 'halves', dims: 300 }),
      on.linearBackward(random(4, 190, 70), x, random(5, 301, 70), random(6, 70)),
      on.embeddingBackward(dOut, random(7, 9, 301), Int32Array.from({ length: 190 }, (_, i) => (i * 7) % 9)),
      on.crossEntropy(x, new Int32Array(190)),
    ];
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = all(single);
    single.dispose();
    for (const threads of [1, 2, 3]) {
      const many = await loadVariant({ threads });
      assert.deepEqual(all(many), expected, `${threads} threads gave other bits`);
      if (many !== engine) many.dispose();
    }
  });
});
