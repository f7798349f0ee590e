// Calls that the engine's memory does not hold: the bytes are named, nothing is lost, and what just fits
// still fits after a thousand of them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, type KvCache, type MultiHeadAttention, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from '../support/engine.js';

const MIB = 2 ** 20;
const LIMIT = 12 * MIB;
const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);

let engine: Engine;
let layer: MultiHeadAttention;
let cache: KvCache;
before(async () => {
  engine = await loadVariant({ maxMemory: LIMIT });
  layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 2 });
  cache = engine.kvCache({ numKvHeads: 1, headDim: 4, capacity: 4 });
  cache.append(zeros(1, 4, 4), zeros(1, 4, 4));
});
after(() => engine.dispose());

const long = zeros(2048, 4);
const square = zeros(4, 4);
const tall = zeros(2 ** 20, 4);
const many = zeros(2 ** 20, 1, 4);
const out = tensor(new Float32Array(2048 * 4).fill(7), [2048, 4]);
const scores = 2048 * 2048 * 4;

/** What is called, the call, the name in its sentence, and the bytes of its inputs and results. */
const TOO_LARGE: [name: string, call: () => unknown, named: string, bytes: number][] = [
  ['attention', () => engine.attention(tall, tall, tall), 'attention', 16 * 2 * MIB],
  ['attention with weights', () => engine.attention(long, long, long, { weights: 'heads', out }), 'attention', scores + 2 * 32768],
  ['attention with a mask', () => engine.attention(long, long, long, { mask: { data: new Uint8Array(2048 * 2048), shape: [2048, 2048] }, scores: 'raw', out }), 'attention', scores * 1.25 + 2 * 32768],
  ['explain', () => engine.explain(long, { wq: square, wk: square, wv: square }), 'explain', 3 * scores + 5 * 32768],
  ['multiHeadAttention', () => layer.forward(long, { weights: 'heads', out }), 'forward', 2 * scores + 6 * 32768],
  ['kvCache', () => engine.kvCache({ numKvHeads: 1, headDim: 512, valueDim: 1536, capacity: 2048 }), 'kvCache', 16 * MIB],
  ['kvCache, attend', () => cache.attend(many), 'attend', 32 * MIB],
  ['resident', () => engine.resident(tall), 'resident', 16 * MIB],
  ['linear', () => engine.linear(tall, square), 'linear', 32 * MIB],
  ['softmax', () => engine.softmax(tall), 'softmax', 32 * MIB],
  ['layerNorm', () => engine.layerNorm(tall), 'layerNorm', 32 * MIB],
  ['gelu', () => engine.gelu(tall, { approximate: 'tanh' }), 'gelu', 32 * MIB],
  ['rotary', () => engine.rotary(tall, { pairing: 'halves' }), 'rotary', 32 * MIB + 3 * 8 * MIB],
  ['rnn', () => engine.rnn(tall, { wx: square, wh: square }), 'rnn', 32 * MIB],
  ['rnnStep', () => engine.rnnStep(tall, { h: tall }, { wx: square, wh: square }), 'rnnStep', 3 * 16 * MIB],
];

/** Elements whose softmax takes two pages of memory: where a limit lies to the byte depends on the calls before. */
const STEP = (2 * 65536) / 8;

/** The most elements, in steps, whose softmax fits into a new engine. */
async function mostElements(maxMemory: number): Promise<number> {
  const fresh = await loadVariant({ maxMemory });
  let [fits, fails] = [0, maxMemory / 8 / STEP];
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    try {
      fresh.softmax(zeros(1, middle * STEP));
      fits = middle;
    } catch {
      fails = middle;
    }
  }
  fresh.dispose();
  return fits * STEP;
}

function expectGood(): void {
  assert.deepEqual(engine.attention([[0, 0]], [[1, 2], [3, 4]], [[1, 2], [3, 6]]).output.toArray(), [[2, 4]]);
  assert.deepEqual([cache.length, ...cache.attend([[[1, 2, 3, 4]]]).output.data], [4, 0, 0, 0, 0]);
}

describe(`out of memory, ${variant}`, () => {
  for (const [name, call, named, bytes] of TOO_LARGE) {
    test(name, async () => {
      const { used } = engine.info().memory;
      const error = await errorOf(call);
      assert.equal(error.code, 'OUT_OF_MEMORY', error.message);
      const [, by, wanted, limit] = /^(\w+) needs (\d+) bytes.*, but the engine may use at most (\d+) bytes; .+\.$/.exec(error.message) ?? assert.fail(error.message);
      assert.equal(by, named);
      // Beside what it takes in and gives there is scratch, which does not grow with it.
      assert.ok(Number(wanted) >= bytes && Number(wanted) < bytes + 2 * MIB, `it asks for ${wanted} bytes, and takes in and gives ${bytes}`);
      assert.equal(Number(limit), LIMIT);
      assert.ok(out.data.every((element) => element === 7), 'out was written to');
      assert.equal(engine.info().memory.used, used, 'the memory grew');
      expectGood();
    });
  }

  test('no number is named that the core cannot count to', async () => {
    const none = (...shape: number[]) => tensor(new Float32Array(0), shape);
    const longest = 2 ** 31 - 1;
    const calls = [
      () => engine.attention(none(0, 4), none(0, 4), none(0, longest)),
      () => engine.attentionBackward(none(0, longest), none(0, 4), none(0, 4), none(0, longest)),
      () => engine.rnn(none(0, longest), { wx: none(longest, 0), wh: none(0, 0) }),
    ];
    for (const call of calls) {
      const error = await errorOf(call);
      assert.equal(error.code, 'OUT_OF_MEMORY', error.message);
      assert.match(error.message, new RegExp(`^\\w+ needs more than ${LIMIT} bytes for its inputs, outputs and scratch, but the engine may use at most ${LIMIT} bytes; `));
    }
  });

  test('after 1,000 of them the memory has not grown, and what just fits still does', async () => {
    const most = await mostElements(10 * MIB);
    const [fits, fails] = [zeros(1, most - STEP), zeros(1, most + STEP)];
    const other = await loadVariant({ maxMemory: 10 * MIB });
    const [first] = [engine, (engine = other)];
    try {
      const stateless = TOO_LARGE.filter(([, , named]) => !['forward', 'attend'].includes(named));
      let used = 0;
      for (let failed = 0; failed < 1000; failed += stateless.length) {
        for (const [, call] of stateless) assert.equal((await errorOf(call)).code, 'OUT_OF_MEMORY');
        if (failed === 0) used = engine.info().memory.used;
      }
      assert.equal(engine.info().memory.used, used, 'failing calls let the memory grow');
      const shares = engine.softmax(fits).data;
      assert.ok(shares.every((share) => share === shares[0] && share > 0), 'the largest call that fits went wrong');
      assert.equal((await errorOf(() => engine.softmax(fails))).code, 'OUT_OF_MEMORY', 'a larger call fits than in a new engine, so this one is not the largest');
      // A cache takes the place of what the last call used, and gives it back.
      const held = engine.kvCache({ numKvHeads: 1, headDim: 4, capacity: MIB / 8 });
      assert.equal((await errorOf(() => engine.softmax(fits))).code, 'OUT_OF_MEMORY', 'what a cache holds was used');
      held.dispose();
      engine.softmax(fits);
    } finally {
      engine = first;
      other.dispose();
    }
  });
});
