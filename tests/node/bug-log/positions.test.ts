// Faults that other libraries had with causal alignment, windows and offsets; the ids are those of our
// bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type AttentionOptions, type Engine, tensor } from 'qkv';

import { expectRight, makeCase, run } from '../support/attention-case.js';
import type { AttentionRules } from '../support/attention-reference.js';
import { loadVariant, threaded, variant } from '../support/engine.js';
import { column, expectClose, means } from '../support/single-row.js';
import { tokenByToken } from '../support/token-by-token.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
const ALIGNMENTS = ['top-left', 'bottom-right'] as const;

/** The mean of the values 1 to keyLen that each query sees. */
const expectedMeans = (queryLen: number, keyLen: number, offset: number, left = Infinity, right = 0) =>
  Array.from({ length: queryLen }, (_, i) => {
    const first = Math.max(0, i + offset - left);
    const last = Math.min(keyLen - 1, i + offset + right);
    return last < first ? 0 : (first + last) / 2 + 1;
  });

describe(`bug log, positions, ${variant}`, () => {
  test('B05 causal alignment where the lengths differ', () => {
    assert.deepEqual(means(engine, 2, [1, 2, 3, 4, 5], { causal: 'top-left' }), [1, 1.5]);
    assert.deepEqual(means(engine, 2, [1, 2, 3, 4, 5], { causal: 'bottom-right' }), [2.5, 3]);
    assert.deepEqual(means(engine, 5, [1, 2], { causal: 'top-left' }), [1, 1.5, 1.5, 1.5, 1.5]);
    assert.deepEqual(means(engine, 5, [1, 2], { causal: 'bottom-right' }), [0, 0, 0, 1, 1.5]);
  });

  test('B05 both alignments around the edges of tiles, for heads and batches', () => {
    for (const [queryLen, keyLen] of [[1, 130], [3, 5], [64, 128], [65, 129], [130, 63], [129, 1]] as const) {
      for (const causal of ALIGNMENTS) {
        expectRight(engine, makeCase({ batch: 2, heads: 2, kvHeads: 1, queryLen, keyLen, dim: 5, valueDim: 6 }, 5, { causal }));
        const offset = causal === 'top-left' ? 0 : keyLen - queryLen;
        expectClose(means(engine, queryLen, upTo(keyLen), { causal }), expectedMeans(queryLen, keyLen, offset), 1e-6 * keyLen);
      }
    }
  });

  test('B06 bottom-right with more queries than keys leaves nothing of what was in out', () => {
    for (const [queryLen, keyLen, first] of [[5, 2, 3], [130, 67, 63], [129, 65, 64], [257, 1, 256]] as const) {
      const data = new Float32Array(queryLen).fill(NaN);
      const values = column(upTo(keyLen));
      const { output, weights, logSumExp } = engine.attention(column(Array<number>(queryLen).fill(0)), values, values, {
        causal: 'bottom-right', weights: 'heads', logSumExp: true, out: tensor(data, [queryLen, 1]),
      });
      assert.equal(output.data, data, 'out is not what was written to');
      expectClose([...data], expectedMeans(queryLen, keyLen, keyLen - queryLen), 1e-6 * keyLen);
      assert.ok(data.subarray(0, first).every((x) => x === 0));
      assert.ok(weights!.data.subarray(0, first * keyLen).every((x) => x === 0));
      assert.ok(logSumExp!.data.subarray(0, first).every((x) => x === -Infinity));
      assert.ok(logSumExp!.data.subarray(first).every((x) => Number.isFinite(x)));
    }
  });

  test('B07 every path means the same by causal', async () => {
    const others = threaded ? [await loadVariant({ threads: 1 }), await loadVariant({ threads: 4 })] : [];
    for (const queryLen of [1, 3, 4, 5, 17]) {
      for (const keyLen of [5, 2, 17, 130]) {
        for (const causal of ALIGNMENTS) {
          const offset = causal === 'top-left' ? 0 : keyLen - queryLen;
          const expected = expectedMeans(queryLen, keyLen, offset);
          const paths: AttentionOptions[] = [
            { causal }, { causal, weights: 'heads' }, { causal, scores: 'biased', logSumExp: true }, { causal: { offset } },
            { causal, softcap: 5 }, { causal, window: [keyLen + queryLen, 0] }, { causal: false, queryOffset: offset, window: [Infinity, 0] },
            { causal, mask: tensor(new Uint8Array(keyLen).fill(1)) }, { causal, bias: column([0]) },
          ];
          const outputs = paths.map((options) => means(engine, queryLen, upTo(keyLen), options));
          outputs.push(...others.map((other) => means(other, queryLen, upTo(keyLen), { causal })));
          expectClose(outputs[0]!, expected, 1e-6 * keyLen);
          outputs.forEach((output, path) => assert.deepEqual(output, outputs[0], `path ${path} differs for ${causal}, ${queryLen} queries, ${keyLen} keys`));
          // One query a call, and over a cache.
          expected.forEach((mean, i) => expectClose(means(engine, 1, upTo(keyLen), { causal: { offset: i + offset } }), [mean], 1e-6 * keyLen));
          const cache = engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: keyLen });
          cache.append([upTo(keyLen).map(() => [0])], [upTo(keyLen).map((value) => [value])]);
          assert.deepEqual([...cache.attend([upTo(queryLen).map(() => [0])], { causal }).output.data], outputs[0], `a cache differs for ${causal}`);
          cache.dispose();
        }
      }
    }
    for (const other of others) other.dispose();
  });

  test('B08 each sequence of a padded cache has its own offset', () => {
    const padded = (valid: number[]) => {
      const zeros = (length: number) => tensor(new Float32Array(2 * length), [2, 1, length, 1]);
      const values = tensor(Float32Array.from([1, 2, 3, 4, 1, 2, 3, 4]), [2, 1, 4, 1]);
      return [...engine.attention(zeros(2), zeros(4), values, { keyLengths: valid, causal: { offset: valid.map((n) => n - 2) } }).output.data];
    };
    expectClose(padded([4, 2]), [2, 2.5, 1, 1.5]);
    expectClose(padded([4, 1]), [2, 2.5, 0, 1]);
    const valid = [130, 64, 1];
    for (const offsets of [{ causal: { offset: valid.map((n) => n - 17) } }, { causal: true, queryOffset: [3, -2, 70], window: [5, 5] }] satisfies AttentionRules[]) {
      // true is for equal lengths.
      const keyLen = offsets.causal === true ? 17 : 130;
      const keyLengths = valid.map((n) => Math.min(n, keyLen));
      for (const form of ['rank 4', 'blhd', 'joined batch'] as const) {
        expectRight(engine, makeCase({ batch: 3, heads: 2, kvHeads: 1, queryLen: 17, keyLen, dim: 6, valueDim: 5 }, 8, { ...offsets, keyLengths }, { form }));
      }
    }
  });

  test('B10 a window needs no mask to count', () => {
    assert.deepEqual(means(engine, 4, [1, 2, 3, 4], { window: [1, 0] }), [1, 1.5, 2.5, 3.5]);
    for (const window of [[0, 0], [1, 0], [63, 0], [64, 64], [3, 130]] as const) {
      const sizes = { heads: 2, kvHeads: 2, queryLen: 131, keyLen: 131, dim: 4, valueDim: 3 };
      const bare = expectRight(engine, makeCase(sizes, 10, { window }));
      const masked = run(engine, makeCase(sizes, 10, { window, mask: { data: new Uint8Array(131).fill(1), shape: [131] } }));
      assert.deepEqual(masked.output, bare.output, `a mask that hides nothing changes window [${window}]`);
      expectClose(means(engine, 131, upTo(131), { window }), expectedMeans(131, 131, 0, ...window), 1e-4);
    }
  });

  test('B11 a window counts the keys beside the query, which is always seen itself', () => {
    assert.equal(means(engine, 4, [1, 2, 3, 4], { causal: true, window: [1, Infinity] })[3], 3.5);
    assert.equal(means(engine, 4, [1, 2, 3, 4], { causal: true, window: [0, Infinity] })[3], 4);
    assert.equal(means(engine, 4, [1, 2, 3, 4], { window: [Infinity, 1] })[0], 1.5);
    // The mask that says the same gives the same bits.
    for (const [length, left, right] of [[65, 1, 0], [130, 63, 0], [130, 64, 1], [257, 127, 128], [200, 5, 130]] as const) {
      const allowed = Uint8Array.from({ length: length * length }, (_, at) => {
        const [i, j] = [Math.floor(at / length), at % length];
        return Number(j >= i - left && j <= i + right);
      });
      const sizes = { heads: 2, kvHeads: 1, queryLen: length, keyLen: length, dim: 3, valueDim: 4 };
      const extras = { weights: 'heads', logSumExp: true } as const;
      const windowed = run(engine, makeCase(sizes, 11, { window: [left, right] }), extras);
      const masked = run(engine, makeCase(sizes, 11, { mask: { data: allowed, shape: [length, length] } }), extras);
      for (const name of ['output', 'weights', 'logSumExp'] as const) assert.deepEqual(windowed[name], masked[name], `${name} of window [${left}, ${right}]`);
    }
  });

  test('B12 a window counts from the absolute position', () => {
    expectClose(means(engine, 1, [1, 2, 3, 4], { window: [1, Infinity], queryOffset: 3 }), [3.5]);
    expectClose(means(engine, 1, [1, 2, 3, 4], { window: [1, 0], causal: 'bottom-right' }), [3.5]);
    // Three keys in the cache, one new.
    const cache = engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 4 });
    for (const value of upTo(4)) cache.append([[[0]]], [[[value]]]);
    for (const window of [[1, Infinity], [1, 0]] as const) expectClose([...cache.attend([[[0]]], { window }).output.data], [3.5]);
    cache.dispose();
    for (const window of [[5, 0], [64, Infinity], [0, 0]] as const) {
      const whole = makeCase({ heads: 2, kvHeads: 1, queryLen: 140, keyLen: 140, dim: 8, valueDim: 4 }, 12, { causal: true, window });
      expectClose([...tokenByToken(engine, whole, { window })], [...expectRight(engine, whole).output]);
    }
  });
});
