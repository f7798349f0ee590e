import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type AttentionOptions, type Engine, type List, load, tensor } from 'qkv';

import { attention, type AttentionSizes } from './support/attention-reference.js';
import { loadVariant, threaded, variant } from './support/engine.js';
import { allowedError, largestError, randomFloats, toDouble, toFloat } from './support/reference.js';

const LENGTHS = [1, 2, 3, 5, 16, 17, 63, 64, 65, 130, 257];
const DIMS = [1, 3, 4, 5, 20, 64, 65, 80, 128];

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const inputsOf = ({ heads, kvHeads, queryLen, keyLen, dim, valueDim }: AttentionSizes, seed: number) => ({
  query: tensor(randomFloats(heads * queryLen * dim, seed), [heads, queryLen, dim]),
  key: tensor(randomFloats(kvHeads * keyLen * dim, seed + 1), [kvHeads, keyLen, dim]),
  value: tensor(randomFloats(kvHeads * keyLen * valueDim, seed + 2), [kvHeads, keyLen, valueDim]),
});

describe(`attention, ${variant}`, () => {
  test('is as exact as a plain float program, over all lengths and dims', () => {
    let worst = 0;
    LENGTHS.forEach((queryLen, i) => {
      DIMS.forEach((dim, k) => {
        const keyLen = LENGTHS[(i + k) % LENGTHS.length]!;
        const valueDim = DIMS[(k + 1 + (i % (DIMS.length - 1))) % DIMS.length]!;
        // Of a handful of numbers a plain loop may be right by luck.
        const heads = queryLen * valueDim < 64 ? 16 : 2;
        const sizes = { heads, kvHeads: heads / 2, queryLen, keyLen, dim, valueDim };
        const { query, key, value } = inputsOf(sizes, queryLen * 1000 + dim);
        const made = engine.attention(query, key, value, { weights: 'heads', logSumExp: true });
        const exact = attention(query.data, key.data, value.data, sizes, { round: toDouble });
        const plain = attention(query.data, key.data, value.data, sizes, { round: toFloat });
        for (const name of ['output', 'weights', 'logSumExp'] as const) {
          const error = largestError(made[name]!.data, exact[name]);
          const allowed = allowedError(plain[name], exact[name]);
          assert.ok(error <= allowed, `${name} is off by ${error}, allowed are ${allowed}, for ${JSON.stringify(sizes)}`);
          if (name === 'output' && largestError(plain.output, exact.output) > 0) {
            worst = Math.max(worst, error / largestError(plain.output, exact.output));
          }
        }
        const alone = engine.attention(query, key, value).output;
        assert.deepEqual(alone.data, made.output.data, 'asking for extras changed the output');
      });
    });
    console.log(`largest output error over that of the plain float program, worst of all cases: ${worst.toFixed(2)}`);
  });

  test('has the shapes of the query, with the dim of the value', () => {
    const ones = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b)).fill(1), shape);
    const all = { weights: 'heads', logSumExp: true } as const;
    const shapes = (r: ReturnType<Engine['attention']>) => [r.output.shape, r.weights!.shape, r.logSumExp!.shape];
    assert.deepEqual(shapes(engine.attention(ones(3, 4), ones(5, 4), ones(5, 6), all)), [[3, 6], [3, 5], [3]]);
    assert.deepEqual(shapes(engine.attention(ones(2, 3, 4), ones(1, 5, 4), ones(1, 5, 6), all)), [[2, 3, 6], [2, 3, 5], [2, 3]]);
    assert.deepEqual(shapes(engine.attention(ones(7, 2, 3, 4), ones(7, 2, 5, 4), ones(7, 2, 5, 6), all)), [[7, 2, 3, 6], [7, 2, 3, 5], [7, 2, 3]]);
    assert.deepEqual(
      shapes(engine.attention(ones(7, 3, 2, 4), ones(7, 5, 2, 4), ones(7, 5, 2, 6), { ...all, layout: 'blhd' })),
      [[7, 3, 2, 6], [7, 2, 3, 5], [7, 2, 3]],
    );
  });

  test("layout 'blhd' is 'bhld' with its axes swapped", () => {
    const [batch, heads, length, dim] = [2, 3, 5, 4] as const;
    const swap = (data: Float32Array, outer: number, inner: number) => {
      const swapped = new Float32Array(data.length);
      for (let i = 0; i < data.length; i++) {
        const [d, n, m, b] = [i % dim, Math.floor(i / dim) % inner, Math.floor(i / dim / inner) % outer, Math.floor(i / dim / inner / outer)];
        swapped[((b * inner + n) * outer + m) * dim + d] = data[i]!;
      }
      return swapped;
    };
    const x = randomFloats(batch * heads * length * dim, 1);
    const headsFirst = tensor(x, [batch, heads, length, dim]);
    const lengthFirst = tensor(swap(x, heads, length), [batch, length, heads, dim]);
    const options = { weights: 'heads', causal: true } as const;
    const expected = engine.attention(headsFirst, headsFirst, headsFirst, options);
    const made = engine.attention(lengthFirst, lengthFirst, lengthFirst, { ...options, layout: 'blhd' });
    assert.deepEqual(swap(made.output.data, length, heads), expected.output.data);
    assert.deepEqual(made.weights!.data, expected.weights!.data);
  });

  test('causal means what its alignment says', () => {
    const means = (queryLen: number, values: number[], options: AttentionOptions) =>
      Array.from(engine.attention(tensor(new Float32Array(queryLen), [queryLen, 1]), values.map(() => [1]), values.map((v) => [v]), options).output.data);
    assert.deepEqual(means(2, [1, 2, 3, 4, 5], { causal: 'top-left' }), [1, 1.5]);
    assert.deepEqual(means(2, [1, 2, 3, 4, 5], { causal: 'bottom-right' }), [2.5, 3]);
    assert.deepEqual(means(2, [1, 2, 3, 4, 5], { causal: { offset: 1 } }), [1.5, 2]);
    assert.deepEqual(means(5, [1, 2], { causal: 'bottom-right' }), [0, 0, 0, 1, 1.5]);
    assert.deepEqual(means(2, [1, 2], { causal: true }), [1, 1.5]);
    assert.deepEqual(means(2, [1, 2], { causal: { offset: -(2 ** 30) } }), [0, 0]);
    assert.deepEqual(means(2, [1, 2], { causal: { offset: 2 ** 30 } }), [1.5, 1.5]);
    assert.deepEqual(means(2, [1, 2], { causal: false }), [1.5, 1.5]);
  });

  test('a mask broadcasts, aligned right', () => {
    const [batch, heads, queryLen, keyLen, dim] = [2, 3, 4, 5, 6] as const;
    const sizes = { batch, heads, kvHeads: heads, queryLen, keyLen, dim, valueDim: dim };
    const { query, key, value } = inputsOf({ ...sizes, heads: batch * heads, kvHeads: batch * heads }, 5);
    const rank4 = (x: { data: Float32Array }, length: number) => tensor(x.data, [batch, heads, length, dim]);
    const pattern = Uint8Array.from({ length: 120 }, (_, i) => Number((i * 7) % 3 !== 0));
    for (const shape of [[5], [4, 5], [1, 5], [3, 4, 5], [1, 4, 1], [2, 1, 4, 5], [2, 3, 4, 5], [1, 3, 1, 5]]) {
      const mask = tensor(pattern.slice(0, shape.reduce((a, b) => a * b)), shape);
      const made = engine.attention(rank4(query, queryLen), rank4(key, keyLen), rank4(value, keyLen), { mask, weights: 'heads' });
      const run = (round: typeof toDouble) => attention(query.data, key.data, value.data, sizes, { round }, { mask });
      for (const name of ['output', 'weights'] as const) {
        const exact = run(toDouble)[name];
        assert.ok(
          largestError(made[name]!.data, exact) <= allowedError(run(toFloat)[name], exact),
          `${name} is wrong with a mask of shape ${shape}`,
        );
      }
    }
    assert.deepEqual(engine.attention([[0]], [[0], [0]], [[1], [9]], { mask: [true, false] }).output.toArray(), [[1]]);
  });

  test('a row that sees nothing gives zeros, and forbidden NaN leaves no trace', () => {
    const { output, weights, logSumExp } = engine.attention([[1, 0], [0, 1]], [[1, 0], [0, NaN]], [[1, 2], [NaN, 4]], {
      mask: [[true, false], [false, false]], weights: 'heads', logSumExp: true, scale: 1,
    });
    assert.deepEqual(output.toArray(), [[1, 2], [0, 0]]);
    assert.deepEqual(weights!.toArray(), [[1, 0], [0, 0]]);
    assert.deepEqual(logSumExp!.toArray(), [1, -Infinity]);
  });

  test('scale: 0 is 0, and the default is 1 / sqrt(head dim)', () => {
    const weightsOf = (options: AttentionOptions) =>
      engine.attention([[1, 1, 1, 1]], [[1, 1, 1, 1], [0, 0, 0, 0]], [[1], [0]], options).output.data[0]!;
    assert.equal(weightsOf({ scale: 0 }), 0.5);
    assert.ok(Math.abs(weightsOf({}) - 0.880797) < 1e-6);
  });

  test('axes of length 0 give empty or zero results', () => {
    const none = engine.attention(tensor(new Float32Array(6), [2, 3]), tensor(new Float32Array(0), [0, 3]), tensor(new Float32Array(0), [0, 4]), { logSumExp: true, weights: 'heads' });
    assert.deepEqual(none.output.toArray(), [[0, 0, 0, 0], [0, 0, 0, 0]]);
    assert.deepEqual(none.logSumExp!.toArray(), [-Infinity, -Infinity]);
    assert.deepEqual(none.weights!.shape, [2, 0]);
    assert.deepEqual(engine.attention(tensor(new Float32Array(0), [0, 3]), [[1, 2, 3]], [[1]]).output.shape, [0, 1]);
    for (const queryLength of [1, 3, 30]) {
      const { output, weights } = engine.attention(tensor(new Float32Array(0), [0, queryLength, 4]), tensor(new Float32Array(24), [2, 3, 4]), tensor(new Float32Array(24), [2, 3, 4]), { weights: 'heads' });
      assert.deepEqual([output.shape, weights!.shape], [[0, queryLength, 4], [0, queryLength, 3]]);
    }
  });

  test('any kind of data is taken, and never written to', () => {
    const expected = engine.attention([[1, 2]], [[1, 0], [0, 1]], [[3], [4]]).output.data;
    const padded = new Float32Array([99, 99, 1, 2, 77]).subarray(2, 4);
    const shared = new Float32Array(new SharedArrayBuffer(8));
    shared.set([1, 2]);
    for (const data of [padded, shared, new Float64Array([1, 2]), new Int8Array([1, 2]), new BigInt64Array([1n, 2n]), new Uint16Array([1, 2])]) {
      const before = Array.from(data as ArrayLike<number>);
      assert.deepEqual(engine.attention({ data, shape: [1, 2] }, [[1, 0], [0, 1]], [[3], [4]]).output.data, expected);
      assert.deepEqual(Array.from(data as ArrayLike<number>), before);
    }
  });

  test('lists are of any kind', () => {
    const x = tensor(randomFloats(2 * 3 * 4 * 2, 7), [2, 3, 4, 2]);
    const attend = (list: (entries: number[]) => List) => [
      engine.attention(x, x, x, { sinks: list([1, 2, 3]) }),
      engine.attention(x, x, x, { alibi: list([1, 2, 3]) }),
      engine.attention(x, x, x, { keyLengths: list([1, 3]), causal: { offset: list([-1, 2]) } }),
      engine.attention(x, x, x, { queryOffset: list([-1, 2]), window: [1, 1], weights: { heads: list([2, 0]), queries: list([3]) } }),
    ];
    const expected = attend((entries) => entries);
    const bigints = (entries: number[]) => BigInt64Array.from(entries.map(BigInt));
    const kinds: ((entries: number[]) => List)[] = [bigints, (entries) => ({ data: bigints(entries), shape: [entries.length] }), (entries) => tensor(entries), (entries) => Int8Array.from(entries)];
    for (const list of kinds) assert.deepEqual(attend(list), expected, String(list));
  });

  test('results are plain memory of the caller', () => {
    const first = engine.attention([[1]], [[1]], [[5]]).output;
    engine.attention([[1]], [[1]], [[6]]);
    assert.equal(first.data[0], 5);
    assert.ok(first.data.buffer instanceof ArrayBuffer);
    assert.deepEqual(structuredClone(first.data), first.data);
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const sizes = { heads: 4, kvHeads: 2, queryLen: 257, keyLen: 190, dim: 40, valueDim: 24 };
    const { query, key, value } = inputsOf(sizes, 9);
    const options = { causal: 'bottom-right', weights: 'heads', logSumExp: true } as const;
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = single.attention(query, key, value, options);
    single.dispose();
    for (const threads of [1, 2, 3, 8]) {
      const many = await loadVariant({ threads });
      assert.equal(many.info().threads, threads);
      for (let repeat = 0; repeat < 20; repeat++) assert.deepEqual(many.attention(query, key, value, options), expected);
      many.dispose();
    }
  });
});
