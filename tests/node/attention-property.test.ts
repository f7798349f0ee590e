// Random shapes, forms and options: what has to hold for all of them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { type AttentionCase, expectNear, type Extras, leadingAxes, run, truthOf } from './support/attention-case.js';
import { attention, type AttentionRules } from './support/attention-reference.js';
import { loadVariant, variant } from './support/engine.js';
import { gather, partOf } from './support/gather.js';
import { observedDropout } from './support/observed-dropout.js';
import { Choices, type RandomCase, randomCases, type Rule } from './support/random-case.js';
import { allowedError, largestError, toDouble } from './support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const POSITIONS: readonly Rule[] = ['positions', 'sequences', 'alibi'];
const STAGES = ['raw', 'capped', 'biased'] as const;
const BITS = ['output', 'weights', 'logSumExp'] as const;
const ALL = { weights: 'heads', logSumExp: true } as const;
const dropoutOf = ({ dropout }: RandomCase): Extras => (dropout ? { dropout } : {});
const hasWeights = ({ sizes }: AttentionCase) => sizes.batch * sizes.queryLen * sizes.keyLen > 0;

type Made = ReturnType<typeof run>;
function expectSameBits(made: Made, expected: Made, what: string, of: readonly (typeof BITS)[number][] = BITS): void {
  for (const name of of) assert.deepEqual(made[name], expected[name], `${name}: ${what}`);
}

describe(`attention of random options, ${variant}`, () => {
  test('is as exact as a plain float program, with the same bits whatever else is asked for', () => {
    for (const one of randomCases(300)) {
      const truth = truthOf(one, one.dropout && observedDropout(engine, one, one.dropout));
      const bare = run(engine, one, dropoutOf(one));
      for (const stage of STAGES) {
        const made = run(engine, one, { ...dropoutOf(one), ...ALL, scores: stage });
        expectSameBits(made, bare, `asking for extras changed it, for ${one.again}`, ['output']);
        expectNear(`scores '${stage}'`, made.scores!, truth, ({ scores }) => scores[stage], one.again);
        for (const name of BITS) expectNear(name, made[name]!, truth, (numbers) => numbers[name], one.again);
      }
      const data = new Float32Array(bare.output.length).fill(NaN);
      const { output } = run(engine, one, { ...dropoutOf(one), out: tensor(data, bare.made.output.shape) }).made;
      assert.equal(output.data, data, `out is not the result's memory, for ${one.again}`);
      assert.deepEqual(data, bare.made.output.data, `out has other bits, for ${one.again}`);
    }
  });

  test('weights of a row sum to 1 less the share of its sink, or are all 0', () => {
    for (const one of randomCases(300, [], hasWeights)) {
      const { weights, logSumExp } = run(engine, one, ALL);
      const { heads, queryLen, keyLen } = one.sizes;
      logSumExp!.forEach((lse, row) => {
        const sink = one.rules.sinks?.[Math.floor(row / queryLen) % heads];
        const expected = lse === -Infinity ? 0 : sink === undefined ? 1 : 1 - Math.exp(Math.fround(sink) - lse);
        const sum = weights!.subarray(row * keyLen, (row + 1) * keyLen).reduce((a, b) => a + b, 0);
        // Half a unit in the last place for each weight and for each step of the sum, and of exp and logSumExp.
        const allowed = lse === -Infinity ? 0 : (keyLen + 8 + (sink === undefined ? 0 : Math.abs(lse))) * 2 ** -24;
        assert.ok(Math.abs(sum - expected) <= allowed, `row ${row} sums to ${sum}, expected ${expected}, for ${one.again}`);
      });
    }
  });

  test('chosen rows have the bits of all, the mean is that of the heads', () => {
    for (const one of randomCases(200, ['scale'], hasWeights)) {
      const { batch, heads, queryLen, keyLen } = one.sizes;
      const all = run(engine, one, ALL);
      const choices = new Choices(one.seed);
      const chosenHeads = one.form === 'rank 2' || choices.oneIn(3) ? undefined : choices.some(1 + choices.below(heads), heads);
      const chosenQueries = choices.oneIn(3) ? undefined : choices.some(1 + choices.below(queryLen), queryLen);
      const made = run(engine, one, { ...dropoutOf(one), weights: { heads: chosenHeads, queries: chosenQueries } });
      const [hs, qs] = [chosenHeads ?? upTo(heads), chosenQueries ?? upTo(queryLen)];
      const expected = gather(gather(all.weights!, [batch, heads, queryLen, keyLen], 1, hs), [batch, hs.length, queryLen, keyLen], 2, qs);
      const asked = `heads ${chosenHeads ?? 'all'}, queries ${chosenQueries ?? 'all'}, for ${one.again}`;
      assert.deepEqual([...made.made.weights!.shape], [...leadingAxes(one, hs.length), qs.length, keyLen], asked);
      assert.deepEqual(made.weights, expected, asked);

      const mean = run(engine, one, { weights: 'mean' });
      assert.deepEqual([...mean.made.weights!.shape], [...leadingAxes(one, 'no heads'), queryLen, keyLen], one.again);
      const exact = meanOverHeads(all.weights!, one, toDouble);
      const allowed = allowedError(meanOverHeads(all.weights!, one, Math.fround), exact);
      const error = largestError(mean.weights!, exact);
      assert.ok(error <= allowed, `the mean is off by ${error}, allowed are ${allowed}, for ${one.again}`);
    }
  });

  test('two halves of the keys, merged by logSumExp, are the whole', () => {
    for (const one of randomCases(100, ['sinks', 'sequences', 'dropout'], ({ sizes }) => sizes.keyLen > 1)) {
      const { keyLen, valueDim } = one.sizes;
      const cut = 1 + new Choices(one.seed).below(keyLen - 1);
      const halfOf = (first: number, end: number) => {
        const half = keysFrom(one, first, end);
        const [made, truth] = [run(engine, half, ALL), truthOf(half)];
        for (const name of BITS) expectNear(`${name} of keys ${first} to ${end}`, made[name]!, truth, (numbers) => numbers[name], one.again);
        return { ...made, allowed: truth.allowed(({ output }) => output), allowedLse: truth.allowed(({ logSumExp }) => logSumExp) };
      };
      const [left, right] = [halfOf(0, cut), halfOf(cut, keyLen)];
      const whole = run(engine, one, ALL);
      const truth = truthOf(one);
      const merged = mergeByLogSumExp(left, right, valueDim);
      // A half's share is known as well as its logSumExp; values are below 1.
      const allowedLse = left.allowedLse + right.allowedLse;
      const most = { output: left.allowed + right.allowed + 2 * allowedLse, logSumExp: allowedLse };
      for (const name of ['output', 'logSumExp'] as const) {
        const error = largestError(whole[name]!, merged[name]);
        const allowed = most[name] + truth.allowed((numbers) => numbers[name]);
        assert.ok(error <= allowed, `the ${name} and the merged one differ by ${error}, allowed are ${allowed}, cut at ${cut}, for ${one.again}`);
      }
    }
  });

  test('permuting keys along with values changes nothing beyond rounding', () => {
    for (const one of randomCases(80, [...POSITIONS, 'keyLengths', 'dropout'], hasWeights)) {
      const { keyLen, batch, heads, queryLen } = one.sizes;
      const order = new Choices(one.seed).some(keyLen, keyLen);
      const permuted = partOf(one, 'key', order);
      const [made, moved] = [run(engine, one, ALL), run(engine, permuted, ALL)];
      const back = gather(moved.weights!, [batch, heads, queryLen, keyLen], 3, upTo(keyLen).map((j) => order.indexOf(j)));
      const [truth, movedTruth] = [truthOf(one), truthOf(permuted)];
      for (const [name, was, is] of [['output', made.output, moved.output], ['weights', made.weights!, back], ['logSumExp', made.logSumExp!, moved.logSumExp!]] as const) {
        const allowed = truth.allowed((numbers) => numbers[name]) + movedTruth.allowed((numbers) => numbers[name]);
        const error = largestError(is, was);
        assert.ok(error <= allowed, `${name} moved by ${error}, allowed are ${allowed}, for ${one.again}`);
      }
    }
  });

  test('permuting queries permutes rows, bit for bit', () => {
    for (const one of randomCases(150, [...POSITIONS, 'dropout'], hasWeights)) {
      const { batch, heads, queryLen, keyLen, valueDim } = one.sizes;
      const order = new Choices(one.seed).some(queryLen, queryLen);
      const [made, moved] = [run(engine, one, ALL), run(engine, partOf(one, 'query', order), ALL)];
      for (const [name, width] of [['output', valueDim], ['weights', keyLen], ['logSumExp', 1]] as const) {
        assert.deepEqual(moved[name], gather(made[name]!, [batch, heads, queryLen, width], 2, order), `${name}, for ${one.again}`);
      }
    }
  });

  test('causal, window, lengths and -Infinity have the bits of the mask that they stand for', () => {
    const hides = ({ rules }: AttentionCase) => Boolean(rules.causal || rules.window || rules.keyLengths || rules.bias);
    for (const one of randomCases(150, ['sequences', 'alibi'], (it) => hasWeights(it) && hides(it))) {
      expectSameBits(run(engine, masked(one), { ...dropoutOf(one), ...ALL }), run(engine, one, { ...dropoutOf(one), ...ALL }), `for ${one.again}`);
    }
  });

  test('packing is the mask that it stands for, within rounding', () => {
    // Tiles begin with each sequence, so that the sums have another order.
    for (const one of randomCases(60, ['alibi', 'dropout'], (it) => hasWeights(it) && it.rules.sequences !== undefined)) {
      const made = run(engine, masked(one), ALL);
      const truth = truthOf(one);
      for (const name of BITS) expectNear(`${name} of the mask`, made[name]!, truth, (numbers) => numbers[name], one.again);
    }
  });

  test('a batch alone has the bits that it has among others', () => {
    for (const one of randomCases(100, ['dropout'], ({ sizes }) => sizes.batch > 1)) {
      const whole = run(engine, one, ALL);
      for (const b of upTo(one.sizes.batch)) {
        const alone = run(engine, partOf(one, 'batch', [b]), ALL);
        for (const name of BITS) assert.deepEqual(alone[name], gather(whole[name]!, [one.sizes.batch, alone[name]!.length], 0, [b]), `${name} of batch ${b}, for ${one.again}`);
      }
    }
  });

  test('dropout drops its share, by its seed alone, and scales what it keeps', () => {
    const shares: { p: number; dropped: number; count: number }[] = [];
    for (const one of randomCases(150, [], (it) => hasWeights(it) && it.dropout !== undefined)) {
      const { p, seed } = one.dropout!;
      const { weights } = run(engine, one, ALL);
      const { weights: kept } = observedDropout(engine, one, one.dropout!);
      const share = { p, dropped: 0, count: 0 };
      weights!.forEach((weight, at) => {
        // What is far below its row's largest is 0 among the weights, but may count before that is known.
        if (weight === 0) return assert.ok(kept[at]! * (1 - p) <= 2 ** -99, `a weight of 0 became ${kept[at]}, for ${one.again}`);
        share.count++;
        if (kept[at] === 0) share.dropped++;
        // One exponential, divided by one sum; its exponent, of the size of the logarithm, is rounded in
        // two ways on either side.
        const allowed = weight * (8 + 4 * Math.abs(Math.log(weight))) * 2 ** -24;
        if (kept[at] !== 0) assert.ok(Math.abs(kept[at]! * (1 - p) - weight) <= allowed, `${weight} became ${kept[at]}, for ${one.again}`);
      });
      expectShare(share, one.again);
      shares.push(share);
      const [first, second] = [run(engine, one, { dropout: { p, seed } }), run(engine, one, { ...ALL, dropout: { p, seed } })];
      expectSameBits(second, first, `the same seed gave other bits, for ${one.again}`, ['output']);
    }
    for (const p of [0, 0.1, 0.5, 0.9]) {
      const all = shares.filter((share) => share.p === p);
      expectShare({ p, dropped: all.reduce((sum, { dropped }) => sum + dropped, 0), count: all.reduce((sum, { count }) => sum + count, 0) }, `all cases of p = ${p}`);
    }
  });
});

// Six standard deviations of so many throws, and one throw.
function expectShare({ p, dropped, count }: { p: number; dropped: number; count: number }, of: string): void {
  const off = Math.abs(dropped - p * count);
  assert.ok(off <= 6 * Math.sqrt(count * p * (1 - p)) + 1 && (p > 0 || dropped === 0), `${dropped} of ${count} weights were dropped with p = ${p}, for ${of}`);
}

function meanOverHeads(weights: Float32Array, { sizes: { batch, heads, queryLen, keyLen } }: AttentionCase, round: (x: number) => number): Float64Array {
  const size = queryLen * keyLen;
  return Float64Array.from({ length: batch * size }, (_, at) => {
    const first = Math.floor(at / size) * heads * size + (at % size);
    return round(upTo(heads).reduce((sum, h) => round(sum + weights[first + h * size]!), 0) / heads);
  });
}

/** All rules that hide keys, as one mask. */
function masked(one: AttentionCase): AttentionCase {
  const { batch, heads, queryLen, keyLen } = one.sizes;
  const { scores } = attention(one.query, one.key, one.value, one.sizes, { round: toDouble }, one.rules);
  const rules = { ...one.rules };
  for (const hidden of ['causal', 'window', 'queryOffset', 'keyLengths', 'sequences'] as const) delete rules[hidden];
  const data = Uint8Array.from(scores.biased, (score) => Number(score !== -Infinity));
  if (rules.bias) rules.bias = { ...rules.bias, data: rules.bias.data.map((x) => (x === -Infinity ? 0 : x)) };
  return { ...one, rules: { ...rules, mask: { data, shape: [batch, heads, queryLen, keyLen] } } };
}

/** The keys of an interval, seen from the same positions. */
function keysFrom(one: RandomCase, first: number, end: number): RandomCase {
  const { batch, queryLen, keyLen } = one.sizes;
  const { causal = false, queryOffset = 0, keyLengths } = one.rules;
  const given = causal === 'bottom-right' ? keyLen - queryLen : typeof causal === 'object' ? causal.offset : queryOffset;
  const offset = upTo(batch).map((b) => (typeof given === 'number' ? given : given[b]!) - first);
  const half = partOf(one, 'key', upTo(end - first).map((j) => first + j));
  const rules: AttentionRules = { ...half.rules, ...(causal === false ? { queryOffset: offset } : { causal: { offset } }) };
  if (causal !== false) delete rules.queryOffset;
  if (keyLengths) rules.keyLengths = keyLengths.map((length) => Math.min(Math.max(length - first, 0), end - first));
  return { ...half, rules };
}

function mergeByLogSumExp(a: Made, b: Made, valueDim: number) {
  const output = new Float64Array(a.output.length);
  const logSumExp = Float64Array.from(a.logSumExp!, (left, row) => {
    const right = b.logSumExp![row]!;
    const largest = Math.max(left, right);
    if (largest === -Infinity) return -Infinity;
    const total = largest + Math.log(Math.exp(left - largest) + Math.exp(right - largest));
    for (let at = row * valueDim; at < (row + 1) * valueDim; at++) {
      output[at] = a.output[at]! * Math.exp(left - total) + b.output[at]! * Math.exp(right - total);
    }
    return total;
  });
  return { output, logSumExp };
}
