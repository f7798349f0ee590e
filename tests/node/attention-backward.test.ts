// attentionBackward() against plain loops that are checked by finite differences, and what has to hold for all of them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, tensor } from 'qkv';

import { type AttentionCase, FORMS, makeCase, show } from './support/attention-case.js';
import { attentionGradients, GRADIENTS, gradientFaults, outputGradient, runBackward } from './support/attention-gradients.js';
import { attention, type AttentionRules } from './support/attention-reference.js';
import { loadVariant, threaded, variant } from './support/engine.js';
import { expectGradient, weightedSum } from './support/finite-differences.js';
import { gather, partOf } from './support/gather.js';
import { observedDropout } from './support/observed-dropout.js';
import { type RandomCase, randomCases } from './support/random-case.js';
import { randomFloats, toDouble } from './support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const dropoutOf = ({ dropout }: RandomCase) => (dropout ? { dropout } : {});

function expectRight(one: AttentionCase, again = show(one)): void {
  const dOutput = outputGradient(one);
  const { dropout, ...rest } = one as RandomCase;
  const made = runBackward(engine, one, dOutput, dropout ? { dropout } : {});
  assert.deepEqual(gradientFaults(made, one, dOutput, dropout && observedDropout(engine, rest, dropout)), [], again);
}

const ALL_RULES: AttentionRules = {
  scale: 0.4, softcap: 1.5, alibi: [0.1, 0.2, 0.3, 0.4], sinks: [0.5, -1, 0, 2], causal: { offset: 2 }, window: [5, 0],
  bias: { data: randomFloats(4 * 9, 5), shape: [4, 1, 9] },
};

describe(`gradients of attention, ${variant}`, () => {
  test('the plain loops are right: finite differences in double precision, of all options at once', () => {
    const { query, key, value, sizes, rules } = makeCase({ batch: 2, heads: 4, kvHeads: 2, queryLen: 5, keyLen: 9, dim: 3, valueDim: 2 }, 1, ALL_RULES);
    const kept = (b: number, h: number, i: number, j: number) => (b + h + 2 * i + 3 * j) % 4 !== 0;
    const dropout = { p: 0.25, kept };
    const dOutput = randomFloats(2 * 4 * 5 * 2, 7);
    const made = attentionGradients(dOutput, query, key, value, sizes, { round: toDouble }, rules, dropout);
    type Given = { query?: ArrayLike<number>; key?: ArrayLike<number>; value?: ArrayLike<number>; rules?: AttentionRules };
    const loss = (given: Given) =>
      weightedSum(attention(given.query ?? query, given.key ?? key, given.value ?? value, sizes, { round: toDouble }, given.rules ?? rules, dropout).output, dOutput);
    expectGradient(made.dQuery, query, (x) => loss({ query: x }), 'dQuery');
    expectGradient(made.dKey, key, (x) => loss({ key: x }), 'dKey');
    expectGradient(made.dValue, value, (x) => loss({ value: x }), 'dValue');
    expectGradient(made.dBias, rules.bias!.data, (x) => loss({ rules: { ...rules, bias: { ...rules.bias!, data: x as never } } }), 'dBias');
    expectGradient(made.dSinks, rules.sinks!, (x) => loss({ rules: { ...rules, sinks: [...x] } }), 'dSinks');
  });

  test('every form of the arguments, several tiles of queries and keys', () => {
    for (const form of FORMS) {
      const single = form === 'rank 2';
      const sizes = { batch: form === 'rank 4' || form === 'blhd' || form === 'joined batch' ? 2 : 1, heads: single ? 1 : 4, kvHeads: single ? 1 : 2, queryLen: 131, keyLen: 263, dim: 6, valueDim: 9 };
      expectRight(makeCase(sizes, 2, {}, { form }));
      expectRight(makeCase(sizes, 3, { causal: 'bottom-right' }, { form }));
    }
  });

  test('random shapes, forms and options', () => {
    for (const one of randomCases(250)) expectRight(one, one.again);
  });

  test('twice the gradient by the output is twice each gradient, bit for bit, and 0 is 0', () => {
    for (const one of randomCases(60)) {
      const dOutput = outputGradient(one);
      const [made, twice, none] = [1, 2, 0].map((factor) => runBackward(engine, one, dOutput.map((x) => x * factor), dropoutOf(one)));
      for (const name of GRADIENTS) {
        assert.deepEqual(twice![name], made![name].map((x) => 2 * x), `${name} of twice the gradient, for ${one.again}`);
        assert.ok(none![name].every((x) => x === 0), `${name} of no gradient, for ${one.again}`);
      }
    }
  });

  test('what is hidden from all has a gradient of 0 and changes no bit of another, whatever it holds', () => {
    for (const one of randomCases(120)) {
      const { batch, heads, kvHeads, queryLen, keyLen, dim, valueDim } = one.sizes;
      const { scores } = attention(one.query, one.key, one.value, one.sizes, { round: toDouble }, one.rules);
      const sees = (b: number, h: number, i: number, j: number) => scores.biased[((b * heads + h) * queryLen + i) * keyLen + j] !== -Infinity;
      const group = heads / kvHeads;
      const dOutput = outputGradient(one);
      const clean = runBackward(engine, one, dOutput, dropoutOf(one));
      const [query, key, value, poisoned] = [one.query, one.key, one.value, dOutput].map((data) => data.slice());
      const blank = (data: Float32Array, row: number, columns: number, gradient?: Float32Array) => {
        assert.ok(!gradient || gradient.subarray(row * columns, (row + 1) * columns).every((x) => x === 0), `row ${row} has a gradient, for ${one.again}`);
        data.fill([NaN, Infinity, -Infinity][row % 3]!, row * columns, (row + 1) * columns);
      };
      for (let b = 0; b < batch; b++) {
        for (let h = 0; h < heads; h++) {
          for (let i = 0; i < queryLen; i++) {
            if (upTo(keyLen).some((j) => sees(b, h, i, j))) continue;
            blank(query!, (b * heads + h) * queryLen + i, dim, clean.dQuery);
            blank(poisoned!, (b * heads + h) * queryLen + i, valueDim);
          }
        }
        for (let g = 0; g < kvHeads; g++) {
          for (let j = 0; j < keyLen; j++) {
            if (upTo(group).some((h) => upTo(queryLen).some((i) => sees(b, g * group + h, i, j)))) continue;
            blank(key!, (b * kvHeads + g) * keyLen + j, dim, clean.dKey);
            blank(value!, (b * kvHeads + g) * keyLen + j, valueDim, clean.dValue);
          }
        }
      }
      const dirty = { ...one, query: query!, key: key!, value: value! };
      assert.deepEqual(runBackward(engine, dirty, poisoned!, dropoutOf(one)), clean, `garbage changed a gradient, for ${one.again}`);
    }
  });

  test('dropout drops on the way back what it drops on the way forth', async () => {
    const one = makeCase({ batch: 2, heads: 2, kvHeads: 2, queryLen: 140, keyLen: 270, dim: 3, valueDim: 140 }, 5);
    const dropout = { p: 0.4, seed: 2 ** 33 + 5 };
    const { kept } = observedDropout(engine, one, dropout);
    // Where each query's gradient stands for itself, a value's gradient is the weights that it was given.
    const dOutput = Float32Array.from({ length: 2 * 2 * 140 * 140 }, (_, at) => Number(at % 140 === Math.floor(at / 140) % 140));
    for (const threads of threaded ? [1, 2, 8] : [1]) {
      const many = await loadVariant({ threads });
      runBackward(many, one, dOutput, { dropout }).dValue.forEach((weight, at) => {
        const [i, j, row] = [at % 140, Math.floor(at / 140) % 270, Math.floor(at / 140 / 270)];
        assert.equal(weight !== 0, kept(Math.floor(row / 2), row % 2, i, j), `query ${i}, key ${j} of head ${row} with ${threads} threads`);
      });
      if (many !== engine) many.dispose();
    }
  });

  test('a batch alone has the bits that it has among others', () => {
    for (const one of randomCases(60, ['dropout'], ({ sizes }) => sizes.batch > 1)) {
      const dOutput = outputGradient(one);
      const whole = runBackward(engine, one, dOutput);
      const batchOf = (data: Float32Array, b: number) => gather(data, [one.sizes.batch, data.length / one.sizes.batch], 0, [b]);
      for (const b of upTo(one.sizes.batch)) {
        const alone = runBackward(engine, partOf(one, 'batch', [b]), batchOf(dOutput, b));
        for (const name of ['dQuery', 'dKey', 'dValue'] as const) assert.deepEqual(alone[name], batchOf(whole[name], b), `${name} of batch ${b}, for ${one.again}`);
      }
    }
  });

  test('the options of attention() as they are: what asks for more than the output is passed over', () => {
    const one = makeCase({ heads: 2, kvHeads: 1, queryLen: 3, keyLen: 4, dim: 5, valueDim: 6 }, 4, { causal: 'bottom-right' });
    const dOutput = outputGradient(one);
    const out = tensor(new Float32Array(36).fill(7), [1, 2, 3, 6]);
    const asked = runBackward(engine, one, dOutput, { weights: 'mean', scores: 'raw', logSumExp: true, out });
    assert.deepEqual(asked, runBackward(engine, one, dOutput));
    assert.ok(out.data.every((x) => x === 7));
  });

  test('memory does not grow with queries times keys', async () => {
    const length = 6144;
    // The scores of one head would take 151 MB.
    const small = await loadVariant({ maxMemory: 64 << 20, threads: 1 });
    const x = tensor(randomFloats(length * 2, 1), [length, 2]);
    const { dQuery, dValue } = small.attentionBackward(x, x, x, x, { window: [40, 0] });
    assert.ok(dQuery.data.some((gradient) => gradient !== 0) && dValue.data.every(Number.isFinite));
    assert.ok(small.info().memory.used < 64 << 20, `${small.info().memory.used} bytes are in use`);
    small.dispose();
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const bias = { data: randomFloats(9 * 300, 6), shape: [9, 1, 300] };
    const rules: AttentionRules = { bias, sinks: upTo(9).map((h) => h / 4), alibi: true, causal: { offset: 20 } };
    const all = (on: Engine) => ([[9, 3], [9, 1], [9, 9]] as const).flatMap(([heads, kvHeads]) => {
      const one = makeCase({ batch: 1, heads, kvHeads, queryLen: 280, keyLen: 300, dim: 5, valueDim: 7 }, kvHeads, rules);
      const dropout = { p: 0.3, seed: 2 ** 40 + 1 };
      return [runBackward(on, one, outputGradient(one), { dropout }), runBackward(on, { ...one, rules: { window: [70, 3] } }, outputGradient(one))];
    });
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = all(single);
    single.dispose();
    for (const threads of [1, 2, 3, 8]) {
      const many = await loadVariant({ threads });
      assert.deepEqual(all(many), expected, `${threads} threads gave other bits`);
      if (many !== engine) many.dispose();
    }
  });
});
