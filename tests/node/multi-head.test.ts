// The layer: projections, attention of every head, and the projection back.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, type MultiHeadAttention, tensor, type Tensor } from 'qkv';

import { loadVariant, variant } from './support/engine.js';
import { randomFloats } from './support/reference.js';

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b, 1), seed), shape);

/** (rows, columns) to (columns, rows). */
const transposed = ({ data, shape: [rows, columns] }: Tensor) =>
  tensor(data.map((_, i) => data[(i % rows!) * columns! + Math.floor(i / rows!)]!), [columns!, rows!]);

/** Weights one below the other, or biases in a row. */
const stacked = (...parts: Tensor[]) => tensor(
  Float32Array.from(parts.flatMap(({ data }) => [...data])),
  [parts.reduce((sum, { shape }) => sum + shape[0]!, 0), ...parts[0]!.shape.slice(1)],
);

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

/** The layer step by step, by the engine's other operations. */
function byHand(layer: MultiHeadAttention, x: Tensor, context: Tensor, options: object, turn = (rows: Tensor, _heads: number) => rows) {
  const { wq, wk, wv, wo, bq, bk, bv, bo } = layer.parameters;
  const { numHeads, numKvHeads } = layer;
  const query = turn(engine.linear(x, wq, bq), numHeads);
  const key = turn(engine.linear(context, wk, bk), numKvHeads);
  const made = engine.attention(query, key, engine.linear(context, wv, bv), { ...options, numHeads, numKvHeads });
  return { ...made, output: engine.linear(made.output, wo, bo) };
}

/** Biases that are not 0, so that a lost one shows. */
function withBiases(layer: MultiHeadAttention): MultiHeadAttention {
  Object.values(layer.parameters as unknown as Record<string, Tensor>).forEach(({ data, shape }, i) => {
    if (shape.length === 1) data.set(randomFloats(data.length, 90 + i));
  });
  return layer;
}

describe(`multiHeadAttention, ${variant}`, () => {
  const sizes = { embedDim: 24, numHeads: 4, numKvHeads: 2, headDim: 10, seed: 7 };

  for (const bias of [true, false]) {
    test(`is projections, attention and projection, ${bias ? 'with' : 'without'} biases`, () => {
      const layer = withBiases(engine.multiHeadAttention({ ...sizes, bias }));
      const options = { causal: true, weights: 'heads', logSumExp: true, window: [5, 0], softcap: 2 } as const;
      for (const x of [random(1, 9, 24), random(2, 3, 17, 24)]) {
        assert.deepEqual(layer.forward(x, options), byHand(layer, x, x, options));
        assert.deepEqual(layer.forward(x, options).output.shape, x.shape);
      }
      assert.equal(layer.parameters.bq === undefined, !bias);
    });
  }

  test('with a context it is cross-attention', () => {
    const layer = withBiases(engine.multiHeadAttention(sizes));
    const [x, context] = [random(1, 2, 5, 24), random(2, 2, 130, 24)];
    const options = { keyLengths: [130, 3], weights: 'mean' } as const;
    const made = layer.forward(x, { context, ...options });
    assert.deepEqual(made, byHand(layer, x, context, options));
    assert.deepEqual([made.output.shape, made.weights.shape], [[2, 5, 24], [2, 5, 130]]);
  });

  test('rotary turns the queries and keys of every head', () => {
    const layer = withBiases(engine.multiHeadAttention(sizes));
    for (const rotary of [{ pairing: 'halves', offset: 4 }, { pairing: 'neighbours', dims: 6, positions: [3, 1, 4, 1, 5, 9, 2] }] as const) {
      const x = random(1, 2, 7, 24);
      // (batch, length, heads * dim) to (batch, heads, length, dim) and back.
      const swap = ({ data }: Tensor, outer: number, inner: number, dim: number) => data.map((_, i) => {
        const [d, n, m, b] = [i % dim, Math.floor(i / dim) % outer, Math.floor(i / dim / outer) % inner, Math.floor(i / dim / outer / inner)];
        return data[((b * outer + n) * inner + m) * dim + d]!;
      });
      const turn = (rows: Tensor, heads: number) => {
        const turned = engine.rotary(tensor(swap(rows, 7, heads, 10), [2, heads, 7, 10]), rotary);
        return tensor(swap(turned, heads, 7, 10), rows.shape);
      };
      assert.deepEqual(layer.forward(x, { rotary, causal: true }), byHand(layer, x, x, { causal: true }, turn));
    }
    const shifted = (offset: number) => layer.forward(random(1, 7, 24), { rotary: { pairing: 'halves', offset } }).output.data;
    const difference = Math.max(...shifted(0).map((a, i) => Math.abs(a - shifted(100)[i]!)));
    assert.ok(difference < 1e-5, `scores depend on distances alone, but a shift by 100 moved the output by ${difference}`);
  });

  test('starts from the seed, and within the bound of Glorot and Bengio', () => {
    const weights = (seed: number) => engine.multiHeadAttention({ ...sizes, seed }).parameters;
    assert.deepEqual(weights(3), weights(3));
    assert.notDeepEqual(weights(3).wq.data, weights(4).wq.data);
    const { wq, wo, bq } = weights(3);
    for (const { data, shape } of [wq, wo]) {
      const bound = Math.sqrt(6 / (shape[0]! + shape[1]!));
      const deviation = Math.sqrt(data.reduce((sum, w) => sum + w * w, 0) / data.length);
      assert.ok(data.every((w) => Math.abs(w) <= bound), 'a weight is beyond the bound');
      assert.ok(Math.abs(deviation / (bound / Math.sqrt(3)) - 1) < 0.1, `the deviation is ${deviation}, that of the distribution ${bound / Math.sqrt(3)}`);
    }
    assert.ok(bq!.data.every((b) => b === 0));
    assert.deepEqual(engine.multiHeadAttention({ embedDim: 12, numHeads: 3 }).headDim, 4);
  });

  test('the next call knows of changed weights', () => {
    const layer = engine.multiHeadAttention({ embedDim: 2, numHeads: 1, bias: false });
    const { wq, wk, wv, wo } = layer.parameters;
    for (const { data } of [wq, wk, wv, wo]) data.set([1, 0, 0, 1]);
    const x = tensor([[1, 0], [0, 1]]);
    assert.deepEqual(layer.forward(x).output, engine.attention(x, x, x).output);
    wo.data.fill(0);
    assert.deepEqual(layer.forward(x).output.toArray(), [[0, 0], [0, 0]]);
  });

  describe('load', () => {
    const original = () => withBiases(engine.multiHeadAttention({ ...sizes, seed: 1 }));
    const x = random(1, 6, 24);
    function same(parameters: Record<string, Tensor>, from: 'qkv' | 'pytorch' | 'keras' | 'onnx'): void {
      const layer = withBiases(engine.multiHeadAttention({ ...sizes, seed: 2 }));
      layer.load(parameters, { from });
      assert.deepEqual(layer.parameters, original().parameters);
      assert.deepEqual(layer.forward(x), original().forward(x));
    }

    test('our own parameters', () => same({ ...original().parameters } as Record<string, Tensor>, 'qkv'));

    test("PyTorch's packed, separate and modern names, weights (out, in)", () => {
      const { wq, wk, wv, wo, bq, bk, bv, bo } = original().parameters as Required<MultiHeadAttention['parameters']>;
      const [q, k, v, o] = [wq, wk, wv, wo].map(transposed) as [Tensor, Tensor, Tensor, Tensor];
      const out = { 'out_proj.weight': o, 'out_proj.bias': bo };
      same({ in_proj_weight: stacked(q, k, v), in_proj_bias: stacked(bq, bk, bv), ...out }, 'pytorch');
      same({ q_proj_weight: q, k_proj_weight: k, v_proj_weight: v, in_proj_bias: stacked(bq, bk, bv), ...out }, 'pytorch');
      same({
        'q_proj.weight': q, 'k_proj.weight': k, 'v_proj.weight': v, 'o_proj.weight': o,
        'q_proj.bias': bq, 'k_proj.bias': bk, 'v_proj.bias': bv, 'o_proj.bias': bo,
      }, 'pytorch');
      same({ wq: q, wk: k, wv: v, wo: o, bq, bk, bv, bo }, 'pytorch');
    });

    test("Keras's kernels with an axis of heads", () => {
      const { wq, wk, wv, wo, bq, bk, bv, bo } = original().parameters as Required<MultiHeadAttention['parameters']>;
      const split = ({ data }: Tensor, ...shape: number[]) => tensor(data, shape);
      const [q, k, v, o] = [split(wq, 24, 4, 10), split(wk, 24, 2, 10), split(wv, 24, 2, 10), split(wo, 4, 10, 24)] as const;
      const [qb, kb, vb] = [split(bq, 4, 10), split(bk, 2, 10), split(bv, 2, 10)] as const;
      same({
        'query/kernel': q, 'query/bias': qb, 'key/kernel': k, 'key/bias': kb, 'value/kernel': v, 'value/bias': vb,
        'attention_output/kernel': o, 'attention_output/bias': bo,
      }, 'keras');
      same({ wq: q, wk: k, wv: v, wo: o, bq: qb, bk: kb, bv: vb, bo }, 'keras');
    });

    test("ONNX's packed weight, (in, out)", () => {
      const { wq, wk, wv, wo, bq, bk, bv, bo } = original().parameters as Required<MultiHeadAttention['parameters']>;
      const weights = transposed(stacked(transposed(wq), transposed(wk), transposed(wv)));
      same({ weights, bias: stacked(bq, bk, bv), wo, bo }, 'onnx');
      same({ wq, wk, wv, wo, bq, bk, bv, bo }, 'onnx');
    });

    test('biases that are not given become 0', () => {
      const layer = withBiases(engine.multiHeadAttention({ ...sizes, seed: 2 }));
      const { wq, wk, wv, wo } = original().parameters;
      layer.load({ wq, wk, wv, wo });
      assert.ok(layer.parameters.bv!.data.every((b) => b === 0));
    });
  });
});
