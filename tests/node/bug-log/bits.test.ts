// Faults that other libraries had with threads, relaxed SIMD and half floats; the ids are those of our
// bug log. The library computes in float32 and takes half floats as what they are, small float32
// numbers: its own conversions to halves, their rounding and overflow (the rest of B43 and B44), and sums
// kept in half precision (the rest of B25) are not there to go wrong.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, tensor } from 'qkv';

import { type AttentionCase, makeCase, run } from '../support/attention-case.js';
import { loadVariant, threaded, variant } from '../support/engine.js';
import { bfloat16ToNumber, float16ToNumber } from '../support/half.js';
import { column, expectClose, row } from '../support/single-row.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const ALL = { weights: 'heads', scores: 'biased', logSumExp: true } as const;
const EXTRAS = ['output', 'weights', 'scores', 'logSumExp'] as const;

/** One batch of a case. */
function alone(one: AttentionCase, b: number): AttentionCase {
  const part = (data: Float32Array) => data.subarray((b * data.length) / one.sizes.batch, ((b + 1) * data.length) / one.sizes.batch);
  return { ...one, sizes: { ...one.sizes, batch: 1 }, query: part(one.query), key: part(one.key), value: part(one.value) };
}

describe(`bug log, bits, ${variant}`, () => {
  test('B41 the same bits for any number of threads, in 50 runs, in a batch and alone', async () => {
    const whole = makeCase({ batch: 3, heads: 4, kvHeads: 2, queryLen: 257, keyLen: 257, dim: 40, valueDim: 40 }, 41, { causal: true });
    const expected = run(engine, whole, ALL);
    for (let b = 0; b < 3; b++) {
      const made = run(engine, alone(whole, b), ALL);
      for (const name of EXTRAS) {
        const size = expected[name]!.length / 3;
        assert.deepEqual(made[name], expected[name]!.subarray(b * size, (b + 1) * size), `${name} of batch ${b} differs from that of it alone`);
      }
    }
    for (const threads of threaded ? [1, 2, 3, 8] : [1]) {
      const many = await loadVariant({ threads });
      assert.equal(many.info().threads, threads);
      for (let repeat = 0; repeat < 50; repeat++) {
        assert.deepEqual(run(many, whole).output, expected.output, `run ${repeat} with ${threads} threads`);
      }
      const [made, single] = [run(many, whole, ALL), run(many, alone(whole, 2), ALL)];
      for (const name of EXTRAS) {
        assert.deepEqual(made[name], expected[name], `${name} with ${threads} threads`);
        assert.deepEqual(single[name], expected[name]!.subarray((expected[name]!.length / 3) * 2), `${name} of batch 2 alone with ${threads} threads`);
      }
      if (many !== engine) many.dispose();
    }
  });

  test('B41 threads do not matter to shapes that they do not divide', { skip: !threaded && 'this variant has no threads' }, async () => {
    const cases = [
      makeCase({ batch: 1, heads: 1, kvHeads: 1, queryLen: 1, keyLen: 1000, dim: 65, valueDim: 3 }, 1),
      makeCase({ batch: 1, heads: 3, kvHeads: 1, queryLen: 65, keyLen: 129, dim: 7, valueDim: 9 }, 2, { window: [60, 3], sinks: [0, 1, 2] }),
      makeCase({ batch: 5, heads: 1, kvHeads: 1, queryLen: 3, keyLen: 64, dim: 4, valueDim: 5 }, 3, { keyLengths: [64, 0, 1, 63, 33], alibi: true }),
      makeCase({ batch: 1, heads: 2, kvHeads: 2, queryLen: 130, keyLen: 130, dim: 8, valueDim: 8 }, 4, { sequences: { query: [0, 1, 65, 130], key: [0, 64, 65, 130] } }),
    ];
    const single = await loadVariant({ threads: 1 });
    for (const threads of [2, 3, 8]) {
      const many = await loadVariant({ threads });
      for (const one of cases) {
        for (const extras of [{}, ALL, { weights: 'mean' }, { dropout: { p: 0.4, seed: 9 } }] as const) {
          const [made, expected] = [run(many, one, extras), run(single, one, extras)];
          for (const name of EXTRAS) assert.deepEqual(made[name], expected[name], `${name} with ${threads} threads`);
        }
      }
      if (many !== engine) many.dispose();
    }
    single.dispose();
  });

  test('B42 multiply-add is fused in no variant but the relaxed ones, which say so', async () => {
    const a = 1 + 2 ** -12;
    const [plain, fused] = [4.8828125e-4, Math.fround(4.883408546447754e-4)];
    const squareLessOne = (of: Engine) => of.attention([[1, a]], [[-1, a]], [[0]], { scale: 1, scores: 'raw' }).scores!.data[0]!;
    const relaxed = variant.startsWith('relaxed');
    assert.equal(engine.info().variant, variant);
    assert.ok(squareLessOne(engine) === plain || (relaxed && squareLessOne(engine) === fused), `a * a - 1 is ${squareLessOne(engine)}`);
    const deterministic = await load({ deterministic: true, threads: threaded ? 2 : 1 });
    assert.match(deterministic.info().variant, /^simd/);
    assert.equal(squareLessOne(deterministic), plain);
    // Both builds without relaxed SIMD have the same bits.
    const simd = await load({ variant: 'simd' });
    for (const sizes of [{ batch: 2, heads: 3, kvHeads: 1, queryLen: 65, keyLen: 131, dim: 20, valueDim: 7 }, { heads: 1, kvHeads: 1, queryLen: 1, keyLen: 257, dim: 65, valueDim: 80 }]) {
      const one = makeCase(sizes, 42, { causal: 'bottom-right', softcap: 3, alibi: true });
      const expected = run(simd, one, ALL);
      for (const name of EXTRAS) {
        assert.deepEqual(run(deterministic, one, ALL)[name], expected[name], `${name} of a deterministic engine`);
        if (!relaxed) assert.deepEqual(run(engine, one, ALL)[name], expected[name], `${name} of ${variant}`);
      }
    }
    deterministic.dispose();
    simd.dispose();
  });

  test('B25 equal weights of rows as long as sticks a sum in half precision', () => {
    for (const keyLen of [256, 257, 2048, 2049, 4096, 8192]) {
      const { output, weights } = row(engine, Array<number>(keyLen).fill(0), Array<number>(keyLen).fill(float16ToNumber(0x3c00)));
      // Powers of two, and sums of them: exact.
      if (Math.log2(keyLen) % 1 === 0) assert.ok(weights.every((weight) => weight === 1 / keyLen), `the weights of ${keyLen} equal keys begin ${weights.slice(0, 3)}`);
      expectClose(weights[keyLen - 1]!, 1 / keyLen, 2 ** -23 / keyLen);
      expectClose(output, 1);
    }
  });

  test('B43 every half float and bfloat comes through unchanged, subnormals and NaN too', () => {
    for (const convert of [float16ToNumber, bfloat16ToNumber]) {
      const value = Float32Array.from({ length: 65536 }, (_, bits) => convert(bits));
      // 256 heads of one key, whose weight is 1.
      const { output } = engine.attention(tensor(new Float32Array(256), [256, 1, 1]), tensor(new Float32Array(256), [256, 1, 1]), tensor(value, [256, 1, 256]));
      // -0 is added to 0.
      output.data.forEach((x, bits) => assert.ok(Object.is(x, value[bits]! + 0), `${convert.name}(${bits}) is ${value[bits]}, and ${x} came out`));
    }
  });

  test('B43 doubles are rounded once', () => {
    for (const x of [0.1, 0.499994, 2.980232238769532e-8, 1 + 2 ** -24, 1 + 2 ** -24 + 2 ** -50, 65519.99, 7.9999999, 2 ** -149, 1e39]) {
      const value = { data: Float64Array.of(x), shape: [1, 1] };
      assert.equal(engine.attention([[0]], [[0]], value).output.data[0], Math.fround(x));
      assert.equal(engine.attention([[0]], [[0]], [[x]]).output.data[0], Math.fround(x));
    }
  });

  test('B43 a Float16Array is taken for its numbers', { skip: !('Float16Array' in globalThis) && 'this host has no Float16Array' }, () => {
    const { Float16Array } = globalThis as unknown as { Float16Array: new (numbers: number[]) => Float32Array };
    const numbers = [0.1, -2, 65504].map((x) => new Float16Array([x])[0]!);
    const data = new Float16Array(numbers);
    assert.deepEqual(engine.attention([[0]], [[0]], { data, shape: [1, 3] }).output.data, Float32Array.from(numbers));
  });

  test('B44 products beyond a half float are no overflow', () => {
    for (const dim of [64, 65, 256]) {
      const big = float16ToNumber(0x5000);
      assert.equal(big, 32);
      const rows = (count: number) => tensor(new Float32Array(count * dim).fill(big, 0, dim), [count, dim]);
      const { output, weights, scores } = engine.attention(rows(1), rows(2), column([1, 2]), { scale: 1 / 8, weights: 'heads', scores: 'raw' });
      assert.deepEqual([...scores!.data], [dim * 128, 0]);
      assert.deepEqual([...weights!.data], [1, 0]);
      assert.deepEqual([...output.data], [1]);
    }
  });
});
