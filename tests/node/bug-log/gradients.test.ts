// Faults that other libraries had in the backward pass of attention; the ids are those of our bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { makeCase } from '../support/attention-case.js';
import { GRADIENTS, gradientFaults, outputGradient, runBackward } from '../support/attention-gradients.js';
import type { AttentionRules } from '../support/attention-reference.js';
import { loadVariant, threaded, variant } from '../support/engine.js';
import { gather, partOf } from '../support/gather.js';
import { randomFloats } from '../support/reference.js';
import { column, expectClose } from '../support/single-row.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

describe(`bug log, gradients of attention, ${variant}`, () => {
  test('B02 a fully masked row passes no gradient, and poisons no other', () => {
    const identity = [[1, 0], [0, 1]];
    for (const hidden of [{ mask: [[true, true], [false, false]] }, { bias: [[0, 0], [-Infinity, -Infinity]] }]) {
      const { dQuery, dKey, dValue, dBias } = engine.attentionBackward([[1, 0], [1, 0]], identity, identity, [[1, 2], [3, 4]], hidden);
      expectClose([...dQuery.data], [-0.312797, 0.312797, 0, 0]);
      expectClose([...dKey.data], [-0.312797, 0, 0.312797, 0]);
      expectClose([...dValue.data], [0.669762, 0, 0.330238, 0]);
      if (dBias) assert.deepEqual([...dBias.data.subarray(2)], [0, 0]);
    }
  });

  test('B02 rows around a tile edge see nothing by mask, bias, causal, window, lengths, packing and their mixes', () => {
    const [queryLen, keyLen] = [130, 65];
    const rows = Uint8Array.from({ length: queryLen }, (_, i) => Number(![0, 63, 64, 129].includes(i)));
    const mixes: [AttentionRules, (i: number) => boolean][] = [
      [{ mask: { data: rows, shape: [queryLen, 1] }, softcap: 2, sinks: [0, 1] }, (i) => rows[i] === 0],
      [{ bias: { data: Float32Array.from(rows, (sees) => (sees ? 0.5 : -Infinity)), shape: [queryLen, 1] } }, (i) => rows[i] === 0],
      [{ causal: 'bottom-right' }, (i) => i < queryLen - keyLen],
      [{ causal: 'bottom-right', keyLengths: [0] }, () => true],
      [{ window: [3, 0], keyLengths: [20] }, (i) => i > 22],
      [{ sequences: { query: [0, 63, 65, 130], key: [0, 64, 64, 65] }, alibi: true }, (i) => i === 63 || i === 64],
    ];
    for (const [rules, seesNothing] of mixes) {
      const one = makeCase({ heads: 2, kvHeads: 1, queryLen, keyLen, dim: 5, valueDim: 3 }, 2, rules);
      const dOutput = outputGradient(one);
      const made = runBackward(engine, one, dOutput);
      assert.deepEqual(gradientFaults(made, one, dOutput), [], JSON.stringify(Object.keys(rules)));
      for (let at = 0; at < 2 * queryLen; at++) {
        const isBlank = made.dQuery.subarray(at * 5, (at + 1) * 5).every((x) => x === 0);
        // A query that sees one key alone has no gradient either.
        assert.ok(isBlank || !seesNothing(at % queryLen), `row ${at} sees nothing by ${Object.keys(rules)}, and has a gradient`);
      }
    }
  });

  test('B03 NaN or Infinity in a masked key or value: its gradients are 0, all others finite and as without', () => {
    for (const garbage of [NaN, Infinity, -Infinity]) {
      const { dQuery, dKey, dValue } = engine.attentionBackward([[1]], [[1]], [[0], [garbage]], [[7], [garbage]], { mask: [true, false] });
      assert.deepEqual([dQuery.data, dKey.data, dValue.data].map((data) => [...data]), [[0], [0, 0], [1, 0]]);
    }
    for (const valid of [1, 3, 4, 5, 64, 130, 257]) {
      const one = makeCase({ heads: 2, kvHeads: 1, queryLen: 17, keyLen: 260, dim: 5, valueDim: 6 }, valid, { keyLengths: [valid] });
      const clean = runBackward(engine, one, outputGradient(one));
      const dirty = { ...one, key: one.key.slice().fill(NaN, valid * 5), value: one.value.slice().fill(Infinity, valid * 6) };
      assert.deepEqual(runBackward(engine, dirty, outputGradient(one)), clean, `${valid} valid keys`);
      assert.ok([...clean.dKey.subarray(valid * 5), ...clean.dValue.subarray(valid * 6)].every((x) => x === 0), `${valid} valid keys`);
    }
  });

  test('B02 and B03 garbage in rows that a layer hides is in no gradient: as keys alone, and as queries too', () => {
    const layer = engine.multiHeadAttention({ embedDim: 6, numHeads: 2 });
    const rows = (garbage: number, hidden: number) => tensor(randomFloats(7 * 6, 1).fill(garbage, hidden * 6), [7, 6]);
    const dOutput = tensor(randomFloats(7 * 6, 2), [7, 6]);
    // Queries from the fifth on see nothing, and nothing sees the keys.
    const mask = tensor(Array.from({ length: 7 }, (_, i) => Array.from({ length: 7 }, (_, j) => i < 5 && j < 5)));
    const x = rows(0, 7);
    const context = { keyLengths: [5] };
    const [ofContext, ofX] = [layer.backward(dOutput, x, { context: rows(0.5, 5), ...context }), layer.backward(dOutput, rows(0.5, 5), { mask })];
    for (const garbage of [NaN, Infinity, -Infinity]) {
      for (const kept of [rows(garbage, 5), engine.resident(rows(garbage, 5))]) {
        assert.deepEqual(layer.backward(dOutput, x, { context: kept, ...context }), ofContext, `${garbage} in a context`);
        assert.deepEqual(layer.backward(dOutput, kept, { mask }), ofX, `${garbage} in x`);
        assert.deepEqual(kept.data, rows(garbage, 5).data, 'an argument was written to');
      }
      const seen = layer.backward(dOutput, x, { context: rows(garbage, 4), ...context }).dParameters;
      assert.ok(seen.wk.data.some(Number.isNaN) && seen.wv.data.some(Number.isNaN), 'garbage that is seen does not show');
    }
    assert.ok([...ofX.dX.data.subarray(5 * 6), ...ofContext.dContext!.data.subarray(5 * 6)].every((by) => by === 0));
    assert.ok(ofX.dParameters.wq.data.every(Number.isFinite) && ofX.dParameters.wq.data.some((by) => by !== 0));
  });

  test('B29 a key head has the gradients of the query heads that read it, and of no others', () => {
    const sizes = { heads: 4, kvHeads: 2, queryLen: 1, keyLen: 1, dim: 1, valueDim: 1 };
    const one = { ...makeCase(sizes, 29), value: Float32Array.of(10, 20) };
    assert.deepEqual([...runBackward(engine, one, Float32Array.of(1, 1, 1, 1)).dValue], [2, 2]);
    assert.deepEqual([...runBackward(engine, one, Float32Array.of(1, 2, 4, 8)).dValue], [3, 12]);
  });

  test('B32 a sink has its share of the gradient, once a row', () => {
    // Weights 1/3 each, outputs 3, so that a sink's weight of 1/3 falls by 1/3 of what its row gives.
    const { dSinks, dValue, dKey } = engine.attentionBackward([[1]], [[1]], column([0, 0]), column([3, 6]), { scale: 1, sinks: [0] });
    expectClose([...dSinks!.data], [-1]);
    expectClose([...dValue.data], [1 / 3, 1 / 3]);
    expectClose([...dKey.data], [0, 1]);
    assert.deepEqual([...engine.attentionBackward([[1]], [[1]], column([0, 0]), column([3, 6]), { sinks: [0], mask: [false, false] }).dSinks!.data], [0]);
    assert.deepEqual([...engine.attentionBackward([[1]], [[1]], column([0, 0]), column([3, 6]), { sinks: [-Infinity] }).dSinks!.data], [0]);
    for (const keyLen of [5, 129, 257]) {
      const rules = { sinks: [2, -1, 0, 30], softcap: 4, scale: 0.3 };
      const one = makeCase({ batch: 2, heads: 4, kvHeads: 2, queryLen: 65, keyLen, dim: 8, valueDim: 3 }, 32, rules);
      const dOutput = outputGradient(one);
      assert.deepEqual(gradientFaults(runBackward(engine, one, dOutput), one, dOutput), [], `${keyLen} keys`);
    }
  });

  test('B41 the same gradients to the bit for any number of threads, in 50 runs, in a batch and alone', async () => {
    const whole = makeCase({ batch: 3, heads: 4, kvHeads: 2, queryLen: 257, keyLen: 257, dim: 40, valueDim: 40 }, 41, { causal: true });
    const dOutput = outputGradient(whole);
    const expected = runBackward(engine, whole, dOutput);
    const batchOf = (data: Float32Array, b: number) => gather(data, [3, data.length / 3], 0, [b]);
    for (const threads of threaded ? [1, 2, 3, 8] : [1]) {
      const many = await loadVariant({ threads });
      for (let repeat = 0; repeat < 50; repeat++) {
        const made = runBackward(many, whole, dOutput);
        for (const name of GRADIENTS) assert.deepEqual(made[name], expected[name], `${name} of run ${repeat} with ${threads} threads`);
      }
      const single = runBackward(many, partOf(whole, 'batch', [2]), batchOf(dOutput, 2));
      for (const name of ['dQuery', 'dKey', 'dValue'] as const) {
        assert.deepEqual(single[name], batchOf(expected[name], 2), `${name} of batch 2 alone with ${threads} threads`);
      }
      if (many !== engine) many.dispose();
    }
  });
});
