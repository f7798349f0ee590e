// Faults that other libraries had with soft caps, large and lost scores, sums and sinks; the ids are
// those of our bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type AttentionOptions, type Engine, tensor } from 'qkv';

import { expectRight, makeCase, run } from '../support/attention-case.js';
import type { AttentionRules } from '../support/attention-reference.js';
import { loadVariant, variant } from '../support/engine.js';
import { randomFloats } from '../support/reference.js';
import { column, expectClose, row } from '../support/single-row.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
const same = (count: number, value: number) => Array<number>(count).fill(value);

describe(`bug log, softmax, ${variant}`, () => {
  test('B17 the soft cap comes before bias and masks', () => {
    assert.equal(row(engine, [0, 0], [1, 1000], { mask: [true, false], softcap: 2 }).output, 1);
    expectClose(row(engine, [0, 0], [0, 1], { bias: [0, 3], softcap: 2 }).output, 0.952574);
    assert.equal(row(engine, [0, 0], [1, 1000], { bias: [0, -Infinity], softcap: 2 }).output, 1);
    for (const [queryLen, keyLen] of [[17, 65], [64, 131]] as const) {
      const bias = { data: randomFloats(2 * keyLen, 6).map((x) => (x < -0.8 ? -Infinity : 5 * x)), shape: [2, 1, 1, keyLen] };
      const mask = { data: Uint8Array.from({ length: keyLen }, (_, j) => Number(j % 5 !== 2)), shape: [keyLen] };
      for (const rules of [{ bias }, { mask }, { bias, mask, causal: 'bottom-right', alibi: true }] satisfies AttentionRules[]) {
        const sizes = { batch: 2, heads: 4, kvHeads: 2, queryLen, keyLen, dim: 9, valueDim: 5 };
        expectRight(engine, makeCase(sizes, 17, { ...rules, softcap: 2 }, { magnitude: 4 }));
      }
    }
  });

  test('B19 a soft cap of large scores does not overflow', () => {
    for (const score of [100, 1e30, 3e38]) {
      const { weights, output } = row(engine, [score, 0], [1, 2], { softcap: 1 });
      expectClose(weights, [0.731059, 0.268941]);
      expectClose(output, 1.268941);
      expectClose(row(engine, [-score, 0], [1, 2], { softcap: 1 }).output, 1.731059);
    }
    // At every place of a tile, with caps from tiny to huge.
    for (const keyLen of [7, 65, 130]) {
      for (let j = 0; j < keyLen; j++) {
        const scores = same(keyLen, 0).map((_, i) => (i === j ? 1e30 : 0));
        for (const cap of [0.001, 3, 1e30]) {
          const large = 1 / (1 + (keyLen - 1) * Math.exp(-cap));
          expectClose(row(engine, scores, scores.map(Math.sign), { softcap: cap }).output, large);
        }
      }
    }
  });

  test('B20 large scores do not overflow', () => {
    assert.deepEqual(row(engine, [1e6, 999000], [1, 2]), { output: 1, weights: [1, 0], logSumExp: 1000000 });
    assert.deepEqual(row(engine, [-1e6, -999000], [1, 2]), { output: 2, weights: [0, 1], logSumExp: -999000 });
    for (const keyLen of [5, 64, 131, 300]) {
      // Rising, so that every tile has a new largest score; and falling.
      const rising = same(keyLen, 0).map((_, j) => 1e6 + 1000 * j);
      const falling = [...rising].reverse();
      const largest = Math.fround(rising.at(-1)!);
      assert.deepEqual(row(engine, rising, upTo(keyLen)).output, keyLen);
      assert.deepEqual(row(engine, falling, upTo(keyLen)).output, 1);
      for (const scores of [rising, falling]) assert.equal(row(engine, scores, upTo(keyLen)).logSumExp, largest);
      const huge = row(engine, same(keyLen, 3e38), same(keyLen, 7));
      expectClose(huge.output, 7, 7 * 1e-6);
      assert.equal(huge.logSumExp, Math.fround(3e38));
    }
    expectRight(engine, makeCase({ heads: 2, kvHeads: 1, queryLen: 66, keyLen: 140, dim: 20, valueDim: 6 }, 20, {}, { magnitude: 30 }));
  });

  test('B23 +Infinity among the scores gives NaN, -Infinity hides its key', () => {
    assert.ok(Number.isNaN(row(engine, [Infinity, 0], [1, 2]).output));
    assert.deepEqual(row(engine, [-Infinity, 0], [1, 2]), { output: 2, weights: [0, 1], logSumExp: 0 });
    assert.deepEqual(row(engine, [-Infinity, -Infinity], [1, 2]), { output: 0, weights: [0, 0], logSumExp: -Infinity });
    for (const [keyLen, at] of [[5, 4], [64, 63], [130, 128], [257, 0]] as const) {
      // The query of 1 sees Infinity there, that of -1 sees -Infinity.
      const keys = same(keyLen, 0).map((_, j) => (j === at ? Infinity : 0));
      const { output, logSumExp } = engine.attention(column([1, -1]), column(keys), column(upTo(keyLen)), { scale: 1, logSumExp: true });
      assert.ok(Number.isNaN(output.data[0]), `key ${at} of ${keyLen} is infinite, and the output is ${output.data[0]}`);
      const sum = (keyLen * (keyLen + 1)) / 2 - (at + 1);
      expectClose(output.data[1]!, sum / (keyLen - 1), 1e-6 * keyLen);
      expectClose(logSumExp!.data[1]!, Math.log(keyLen - 1));
    }
  });

  test('B24 NaN in a visible query or key shows, in the rows that see it and no other', () => {
    assert.ok(Number.isNaN(row(engine, [NaN, NaN], [1, 2]).output));
    assert.ok(Number.isNaN(row(engine, [0, NaN], [1, 2]).output));
    assert.ok(Number.isNaN(row(engine, [NaN, 0], [1, 2]).output));
    assert.ok(Number.isNaN(row(engine, [0, NaN], [1, 2], { softcap: 2, sinks: [1] }).output));
    for (const [length, query, key] of [[9, 4, 6], [70, 64, 3], [140, 63, 129]] as const) {
      const clean = makeCase({ heads: 2, kvHeads: 2, queryLen: length, keyLen: length, dim: 6, valueDim: 5 }, 24, { causal: true });
      const dirty = { ...clean, query: clean.query.slice(), key: clean.key.slice() };
      dirty.query[query * 6 + 5] = NaN;
      dirty.key[(length + key) * 6 + 2] = NaN;
      const extras = { weights: 'heads', logSumExp: true } as const;
      const [expected, made] = [run(engine, clean, extras), run(engine, dirty, extras)];
      for (let at = 0; at < 2 * length; at++) {
        // One NaN query in head 0, one NaN key in head 1.
        const touched = at < length ? at === query : at - length >= key;
        for (const [name, width] of [['output', 5], ['logSumExp', 1]] as const) {
          const [was, is] = [expected[name]!, made[name]!].map((data) => data.subarray(at * width, (at + 1) * width));
          if (touched) assert.ok(is!.every(Number.isNaN), `${name} row ${at} hides a NaN: ${is}`);
          else assert.deepEqual(is, was, `${name} row ${at} of ${length} sees no NaN, and changed`);
        }
      }
    }
  });

  test('B26 long rows keep their digits', () => {
    for (const keyLen of [65536, 65537, 100003]) {
      const tenth = Math.fround(0.1);
      const { output, weights, logSumExp } = row(engine, same(keyLen, 0), same(keyLen, tenth));
      expectClose(output, tenth, tenth * 1e-5);
      expectClose(weights[keyLen - 1]!, 1 / keyLen, 1e-5 / keyLen);
      expectClose(logSumExp, Math.log(keyLen), 1e-5);
    }
    // Unlike scores and values, and several rows: against double, as exact as equal ones.
    const one = makeCase({ heads: 2, kvHeads: 1, queryLen: 5, keyLen: 40000, dim: 1, valueDim: 2 }, 26);
    one.value = one.value.map((x) => 2 + x);
    const { output, truth } = expectRight(engine, one);
    expectClose([...output], [...truth.exact.output], 2 * 1e-5);
  });

  test('B27 rows sum to 1', () => {
    const { weights, logSumExp } = row(engine, [9.34623, 8.43469, 7.19462, 6.59385, 5.89481, 5.67304], upTo(6));
    expectClose(weights, [0.610101, 0.245202, 0.070953, 0.03891, 0.019341, 0.015494]);
    expectClose(logSumExp, 9.840361);
    const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b);
    expectClose(sum(weights), 1);
    for (const keyLen of [1, 2, 3, 7, 64, 65, 129, 257]) {
      for (const spread of [0.01, 1, 10, 60]) {
        const scores = [...randomFloats(keyLen, keyLen)].map((x) => spread * x);
        const made = row(engine, scores, upTo(keyLen));
        expectClose(sum(made.weights), 1);
        // A few units in the last place, and half of one of the score and of logSumExp. What is below
        // 2^-100 of the largest is 0.
        const exact = scores.map((score) => Math.exp(Math.fround(score) - made.logSumExp));
        made.weights.forEach((weight, j) => expectClose(weight, exact[j]!, exact[j]! * 2 ** -23 * (8 + 2 * spread) + 2 ** -100));
      }
    }
  });

  test('B31 logSumExp is natural, shifted, and -Infinity where nothing is seen', () => {
    expectClose(row(engine, [0, 0], [1, 2]).logSumExp, 0.693147);
    assert.equal(row(engine, [0, 0], [1, 2], { mask: [false, false] }).logSumExp, -Infinity);
    expectClose(row(engine, [1000, 1000], [1, 2]).logSumExp, 1000.693147, 2 ** -14);
    for (const keyLen of [1, 5, 64, 130, 257]) {
      for (const shift of [-1000, -3, 0, 1000]) {
        expectClose(row(engine, same(keyLen, shift), upTo(keyLen)).logSumExp, shift + Math.log(keyLen), shift === 0 ? 1e-6 : 2 ** -14);
      }
    }
    for (const rules of [{}, { softcap: 3 }, { causal: 'top-left', sinks: [1, -2, 0] }, { bias: { data: randomFloats(70, 7), shape: [70] } }] satisfies AttentionRules[]) {
      expectRight(engine, makeCase({ batch: 2, heads: 3, kvHeads: 1, queryLen: 66, keyLen: 70, dim: 7, valueDim: 2 }, 31, rules, { magnitude: 6 }));
    }
  });

  test('B32 a sink counts once a row, in logSumExp too', () => {
    const { output, logSumExp } = row(engine, [0, 0], [3, 6], { sinks: [0] });
    expectClose(output, 3);
    expectClose(logSumExp, 1.098612);
    expectClose(row(engine, [0, 0], [3, 6]).output, 4.5);
    expectClose(row(engine, same(200, 0), same(200, 1), { sinks: [0] }).output, 0.995025);
    const masked: AttentionOptions = { sinks: [0], mask: [false, false] };
    assert.deepEqual(row(engine, [0, 0], [3, 6], masked), { output: 0, weights: [0, 0], logSumExp: -Infinity });
    // The scale is the scores' alone.
    expectClose(row(engine, [0, 0], [3, 6], { sinks: [1], scale: 0.5 }).output, 9 / (2 + Math.E));
    expectClose(row(engine, [0, 0], [3, 6], { sinks: [1000] }).output, 0);
    assert.equal(row(engine, [0, 0], [3, 6], { sinks: [1000] }).logSumExp, 1000);
    for (const keyLen of [5, 64, 129, 257]) {
      const rules = { sinks: [2, -1, 0, 30], softcap: 4, scale: 0.3 };
      expectRight(engine, makeCase({ batch: 2, heads: 4, kvHeads: 2, queryLen: 65, keyLen, dim: 8, valueDim: 3 }, 32, rules));
    }
    // A sink of -Infinity is none.
    const sizes = { heads: 2, kvHeads: 2, queryLen: 17, keyLen: 66, dim: 4, valueDim: 4 };
    assert.deepEqual(run(engine, makeCase(sizes, 1, { sinks: [-Infinity, -Infinity] })).output, run(engine, makeCase(sizes, 1)).output);
  });
});

describe(`bug log, denormal weights, ${variant}`, () => {
  const tiny = 1.1754943508222875e-38;

  test('B28 no weight is denormal', () => {
    for (const score of [-95, -100, -104]) assert.deepEqual(row(engine, [0, score], [1, 1]).weights, [1, 0]);
    for (const keyLen of [2, 5, 65, 131]) {
      for (let score = -60; score > -110; score -= 0.25) {
        for (const weight of row(engine, same(keyLen, score).fill(0, 0, 1), same(keyLen, 1)).weights) {
          assert.ok(weight === 0 || weight >= tiny, `a score of ${score} beside 0 gives the denormal weight ${weight}`);
        }
      }
    }
  });

  test('B28 scores of -95 take no longer than those of -200', () => {
    const [length, dim] = [512, 64] as const;
    const scoring = (low: number) => {
      const key = new Float32Array(length * dim);
      for (let j = 1; j < length; j += 2) key[j * dim] = low;
      return tensor(key, [length, dim]);
    };
    const query = tensor(Float32Array.from({ length: length * dim }, (_, at) => Number(at % dim === 0)), [length, dim]);
    const keys = [scoring(-95), scoring(-200)];
    const value = tensor(randomFloats(length * dim, 28), [length, dim]);
    const time = (key: (typeof keys)[number]) => {
      const start = performance.now();
      engine.attention(query, key, value, { scale: 1 });
      return performance.now() - start;
    };
    const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
    // Another process may take the processor for a while: the best of some tries counts.
    let ratio = Infinity;
    for (let attempt = 0; attempt < 5 && ratio >= 2; attempt++) {
      const times = Array.from({ length: 15 }, () => keys.map(time));
      ratio = Math.min(ratio, median(times.map(([denormal]) => denormal!)) / median(times.map(([, zero]) => zero!)));
    }
    assert.ok(ratio < 2, `scores of -95 take ${ratio.toFixed(1)} times as long as scores of -200`);
  });
});
