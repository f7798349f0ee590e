// Faults that other libraries had with masks and biases; the ids are those of our bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type AttentionOptions, type Engine, tensor } from 'qkv';

import { type AttentionCase, expectRight, makeCase, run } from '../support/attention-case.js';
import type { AttentionRules } from '../support/attention-reference.js';
import { errorOf, loadVariant, variant } from '../support/engine.js';
import { randomFloats } from '../support/reference.js';
import { column, expectClose, means, row } from '../support/single-row.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const LOWEST = -3.4028234663852886e38;
const pattern = (count: number, from: (i: number) => boolean) => Uint8Array.from({ length: count }, (_, i) => Number(from(i)));
const bothKinds = (allowed: Uint8Array, shape: readonly number[]): AttentionRules[] => [
  { mask: { data: allowed, shape } },
  { bias: { data: Float32Array.from(allowed, (seen) => (seen ? 0 : -Infinity)), shape } },
];

function expectBlankRows(made: ReturnType<typeof expectRight>, one: AttentionCase, blank: (query: number) => boolean): void {
  const { heads, queryLen, keyLen, valueDim } = one.sizes;
  for (let at = 0; at < heads * queryLen; at++) {
    const seesNothing = blank(at % queryLen);
    assert.equal(made.logSumExp[at] === -Infinity, seesNothing, `row ${at} sees ${seesNothing ? 'nothing' : 'keys'}, its logSumExp is ${made.logSumExp[at]}`);
    if (!seesNothing) continue;
    assert.ok(made.output.subarray(at * valueDim, (at + 1) * valueDim).every((x) => x === 0), `row ${at} of the output is not 0`);
    assert.ok(made.weights.subarray(at * keyLen, (at + 1) * keyLen).every((x) => x === 0), `row ${at} of the weights is not 0`);
  }
}

describe(`bug log, masks, ${variant}`, () => {
  test('B01 a fully masked row gives zeros, not NaN', () => {
    const identity = [[1, 0], [0, 1]];
    const { output, weights, logSumExp } = engine.attention(identity, identity, [[1, 2], [3, 4]], {
      mask: [[true, true], [false, false]], weights: 'heads', logSumExp: true,
    });
    expectClose([...output.data], [1.660477, 2.660477, 0, 0]);
    expectClose([...weights!.data], [0.669762, 0.330238, 0, 0]);
    expectClose([...logSumExp!.data], [1.10794, -Infinity]);
  });

  test('B01 rows around a tile edge see nothing by mask, bias, causal, window and their mixes', () => {
    const [queryLen, keyLen] = [130, 65];
    const sizes = { heads: 2, kvHeads: 1, queryLen, keyLen, dim: 5, valueDim: 3 };
    const blank = (i: number): boolean => i === 0 || i === 63 || i === 64 || i === 129;
    const rows = pattern(queryLen, (i) => !blank(i));
    // The keys up to 40 are hidden: causal and the window have to leave others to be seen.
    const late = pattern(keyLen, (j) => j > 40);
    const mixes: [AttentionRules, (i: number) => boolean][] = [
      ...bothKinds(rows, [queryLen, 1]).map((rules): [AttentionRules, typeof blank] => [rules, blank]),
      [{ mask: { data: rows, shape: [1, 1, queryLen, 1] }, bias: { data: randomFloats(keyLen, 4), shape: [keyLen] }, softcap: 2 }, blank],
      ...bothKinds(late, [keyLen]).map((rules): [AttentionRules, typeof blank] => [{ ...rules, causal: 'top-left' }, (i) => i <= 40]),
      [{ window: [3, 0] }, (i) => i > keyLen + 2],
      [{ window: [3, 0], keyLengths: [20] }, (i) => i > 22],
      [{ causal: 'bottom-right' }, (i) => i < queryLen - keyLen],
      [{ causal: 'bottom-right', keyLengths: [0] }, () => true],
    ];
    for (const [rules, seesNothing] of mixes) {
      const one = makeCase(sizes, 1, rules);
      expectBlankRows(expectRight(engine, one), one, seesNothing);
    }
  });

  test('B03 NaN or Infinity in a masked key or value leaves no trace', () => {
    for (const poison of [NaN, Infinity, -Infinity]) {
      for (const options of [{ mask: [true, false] }, { bias: [0, -Infinity] }, { window: [0, 0] }, { causal: 'top-left' }, { keyLengths: [1] }] satisfies AttentionOptions[]) {
        const { output, weights } = row(engine, [0, poison], [7, poison], options);
        assert.deepEqual([output, weights], [7, [1, 0]], `${poison} came through ${JSON.stringify(options)}`);
      }
    }
  });

  test('B03 padding full of garbage, at every SIMD tail and tile edge', () => {
    for (const [valid, keyLen] of [[1, 2], [3, 4], [3, 5], [5, 7], [63, 66], [64, 65], [127, 131], [129, 257]] as const) {
      const sizes = { heads: 2, kvHeads: 2, queryLen: 9, keyLen, dim: 5, valueDim: 7 };
      const allowed = pattern(keyLen, (j) => j < valid);
      const packed = { query: [0, 9, 9], key: [0, valid, keyLen] };
      const all: AttentionRules[] = [...bothKinds(allowed, [keyLen]), { keyLengths: [valid] }, { window: [Infinity, 0], queryOffset: valid - 9 }, { sequences: packed }];
      for (const rules of all) {
        const clean = makeCase(sizes, valid, rules);
        const dirty = { ...clean, key: clean.key.slice(), value: clean.value.slice() };
        for (let head = 0; head < 2; head++) {
          for (let j = valid; j < keyLen; j++) {
            dirty.key.fill([NaN, Infinity, -Infinity][j % 3]!, (head * keyLen + j) * 5, (head * keyLen + j + 1) * 5);
            dirty.value.fill([Infinity, NaN, -Infinity][j % 3]!, (head * keyLen + j) * 7, (head * keyLen + j + 1) * 7);
          }
        }
        const extras = { weights: 'heads', scores: 'biased', logSumExp: true } as const;
        const [expected, made] = [run(engine, clean, extras), run(engine, dirty, extras)];
        for (const name of ['output', 'weights', 'scores', 'logSumExp'] as const) {
          assert.deepEqual(made[name], expected[name], `${name}: garbage came through ${Object.keys(rules)} with ${valid} of ${keyLen} keys`);
        }
      }
    }
  });

  test('B13 a float key-padding mask of 0 and -Infinity is one', () => {
    expectClose(means(engine, 1, [1, 2, 3], { bias: [0, -Infinity, 0] }), [2]);
    expectClose(means(engine, 1, [1, 2, 3], { mask: [true, false, true] }), [2]);
    for (const keyLen of [5, 64, 131]) {
      const allowed = pattern(3 * keyLen, (j) => j % 3 !== 1);
      const [boolean, float] = bothKinds(allowed, [3, 1, 1, keyLen]).map((rules) =>
        expectRight(engine, makeCase({ batch: 3, heads: 2, kvHeads: 2, queryLen: 65, keyLen, dim: 6, valueDim: 4 }, 2, rules)));
      assert.deepEqual(float!.output, boolean!.output, `the two kinds of mask differ with ${keyLen} keys`);
    }
  });

  test('B14 true may attend; numbers are no mask and booleans no bias', async () => {
    expectClose(means(engine, 1, [1, 9], { mask: [true, false] }), [1]);
    expectClose(means(engine, 1, [1, 9], { mask: tensor(Uint8Array.of(1, 0)) }), [1]);
    // What 0 and 1 mean where they are added.
    expectClose(means(engine, 1, [1, 9], { bias: [1, 0] }), [3.151531]);
    const refused: [string, AttentionOptions][] = [
      ['mask', { mask: [1, 0] as never }],
      ['mask', { mask: tensor(Float32Array.of(1, 0)) as never }],
      ['bias', { bias: [true, false] as never }],
      ['bias', { bias: tensor(Uint8Array.of(1, 0)) as never }],
    ];
    for (const [name, options] of refused) {
      const error = await errorOf(() => means(engine, 1, [1, 9], options));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      assert.match(error.message, new RegExp(`^${name} `));
    }
  });

  test('B15 a mask of rank 3 is one a head, and refused where it could be one a batch', async () => {
    const zeros = (batch: number, heads: number) => tensor(new Float32Array(batch * heads * 2), [batch, heads, 2, 1]);
    const values = (batch: number, heads: number) => tensor(new Float32Array(batch * heads * 2).map((_, i) => 1 + (i % 2)), [batch, heads, 2, 1]);
    const attend = (batch: number, heads: number, mask: AttentionOptions['mask']) =>
      [...engine.attention(zeros(batch, heads), zeros(batch, heads), values(batch, heads), { mask }).output.data];
    const open = [[true, true], [true, true]];
    const first = [[true, false], [true, false]];
    const error = await errorOf(() => attend(2, 2, [open, first]));
    assert.equal(error.code, 'SHAPE_MISMATCH');
    assert.match(error.message, /\(2, 1, 2, 2\).*\(1, 2, 2, 2\)/, 'the message has to name both shapes that could be meant');
    expectClose(attend(2, 2, [[open], [first]]), [1.5, 1.5, 1.5, 1.5, 1, 1, 1, 1]);
    expectClose(attend(2, 2, [[open, first]]), [1.5, 1.5, 1, 1, 1.5, 1.5, 1, 1]);
    // Where the counts differ only heads fit.
    expectClose(attend(3, 2, [open, first]), [1.5, 1.5, 1, 1, 1.5, 1.5, 1, 1, 1.5, 1.5, 1, 1]);
    assert.equal((await errorOf(() => attend(3, 2, [open, first, first]))).code, 'SHAPE_MISMATCH');
    assert.equal((await errorOf(() => attend(3, 3, [open, first, first]))).code, 'SHAPE_MISMATCH');
    const bias = tensor(new Float32Array(8), [2, 2, 2]);
    assert.equal((await errorOf(() => engine.attention(zeros(2, 2), zeros(2, 2), values(2, 2), { bias }))).code, 'SHAPE_MISMATCH');
  });

  test('B16 a bias gives the same bits in every shape that says the same', () => {
    for (const [queryLen, keyLen] of [[5, 5], [65, 131]] as const) {
      const [batch, heads] = [2, 3];
      const one = Float32Array.from({ length: queryLen * keyLen }, (_, at) => 0.1 * Math.floor(at / keyLen) - 0.2 * (at % keyLen));
      const repeated = (count: number) => Float32Array.from({ length: count * one.length }, (_, at) => one[at % one.length]!);
      const shapes = [[queryLen, keyLen], [1, 1, queryLen, keyLen], [1, heads, queryLen, keyLen], [batch, 1, queryLen, keyLen], [batch, heads, queryLen, keyLen]];
      const outputs = shapes.map((shape) => {
        const data = repeated(shape.slice(0, -2).reduce((a, b) => a * b, 1));
        return expectRight(engine, makeCase({ batch, heads, kvHeads: heads, queryLen, keyLen, dim: 4, valueDim: 4 }, 3, { bias: { data, shape } })).output;
      });
      outputs.forEach((output, i) => assert.deepEqual(output, outputs[0], `shape (${shapes[i]}) gives other bits`));
    }
  });

  test('B22 the lowest float as a bias is no mask until a sum with it overflows', () => {
    for (const [score, expected] of [[0, 2.5], [-16, 2.5], [-1e32, 0]] as const) {
      const lowest = Array<number>(4).fill(LOWEST);
      expectClose(row(engine, Array<number>(4).fill(score), [1, 2, 3, 4], { bias: lowest }).output, expected);
    }
    for (const keyLen of [65, 131]) {
      const values = Array.from({ length: keyLen }, (_, i) => i + 1);
      const all = row(engine, values.map(() => 0), values, { bias: values.map(() => LOWEST) });
      expectClose(all.output, (keyLen + 1) / 2, 1e-6 * keyLen);
      assert.equal(all.logSumExp, LOWEST);
      // Beside keys of ordinary scores it hides as -Infinity does.
      const half = row(engine, values.map(() => -16), values, { bias: values.map((_, j) => (j % 2 ? LOWEST : 0)) });
      const odd = values.filter((_, j) => j % 2 === 0);
      expectClose(half.output, odd.reduce((a, b) => a + b) / odd.length, 1e-6 * keyLen);
    }
  });

  test('B22 rows of one call are told apart: those of the lowest float, those that overflow, others', () => {
    const queries = column([0, 1, 0]);
    const bias = tensor(Float32Array.from([LOWEST, LOWEST, LOWEST, LOWEST, 0, LOWEST]), [3, 2]);
    const { output, logSumExp } = engine.attention(queries, column([-1e32, -1e32]), column([1, 3]), { bias, scale: 1, logSumExp: true });
    expectClose([...output.data], [2, 0, 1]);
    expectClose([...logSumExp!.data], [LOWEST, -Infinity, 0]);
  });
});
