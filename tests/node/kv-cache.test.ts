// Decoding with kept keys and values.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, type KvCache, tensor, type Tensor } from 'qkv';

import { errorOf, loadVariant, variant } from './support/engine.js';
import { randomFloats } from './support/reference.js';

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b, 1), seed), shape);

/** Positions [begin, end) of the length axis, the last but one. */
function span({ data, shape }: Tensor, begin: number, end: number): Tensor {
  const [length, dim] = shape.slice(-2) as [number, number];
  const row = (i: number) => Math.floor(i / dim) % length;
  return tensor(data.filter((_, i) => row(i) >= begin && row(i) < end), [...shape.slice(0, -2), end - begin, dim]);
}

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

describe(`kvCache, ${variant}`, () => {
  const [batch, heads, kvHeads, length, dim, valueDim] = [2, 6, 2, 150, 20, 12] as const;
  const query = random(1, batch, heads, length, dim);
  const key = random(2, batch, kvHeads, length, dim);
  const value = random(3, batch, kvHeads, length, valueDim);
  const makeCache = (capacity: number = length) => engine.kvCache({ batch, numKvHeads: kvHeads, headDim: dim, valueDim, capacity });

  /** Outputs of `attend` for chunks of positions that were appended one after another. */
  function feed(cache: KvCache, chunk: number, options: Parameters<KvCache['attend']>[1] = {}): Tensor[] {
    const outputs: Tensor[] = [];
    for (let begin = 0; begin < length; begin += chunk) {
      const end = Math.min(begin + chunk, length);
      cache.append(span(key, begin, end), span(value, begin, end));
      assert.equal(cache.length, end);
      outputs.push(cache.attend(span(query, begin, end), options).output);
    }
    return outputs;
  }

  for (const [what, options] of [
    ['plain', {}],
    ['with a window', { window: [20, 0] }],
    ['with ALiBi, softcap and sinks', { alibi: true, softcap: 3, sinks: [0, 1, -1, 2, 0.5, -0.5] }],
  ] as const) {
    test(`token by token equals one causal call, bit for bit: ${what}`, () => {
      const whole = engine.attention(query, key, value, { ...options, causal: true }).output;
      for (const chunk of [1, 7]) {
        using cache = makeCache();
        feed(cache, chunk, options).forEach((output, i) => {
          const begin = i * chunk;
          assert.deepEqual(output.data, span(whole, begin, Math.min(begin + chunk, length)).data, `chunk of ${chunk} at position ${begin}`);
        });
      }
    });
  }

  test('rotary at absolute positions: rotated by offset, token by token', () => {
    const rotate = (x: Tensor, offset: number) => engine.rotary(x, { pairing: 'neighbours', offset });
    const whole = engine.attention(rotate(query, 0), rotate(key, 0), value, { causal: true }).output;
    using cache = makeCache();
    for (let t = 0; t < 12; t++) {
      cache.append(rotate(span(key, t, t + 1), t), span(value, t, t + 1));
      assert.deepEqual(cache.attend(rotate(span(query, t, t + 1), t)).output.data, span(whole, t, t + 1).data);
    }
  });

  test('options of attention: not causal, own offsets, valid lengths, extras', () => {
    using cache = makeCache();
    cache.append(key, value);
    const some = span(query, 0, 5);
    const same = (options: object, like: object) => assert.deepEqual(
      cache.attend(some, options), engine.attention(some, key, value, like), JSON.stringify(options));
    const extras = { weights: 'heads', logSumExp: true, scores: 'biased' };
    same({ causal: false, ...extras }, extras);
    same({ queryOffset: 3 }, { causal: { offset: 3 } });
    same({ queryOffset: [3, 30], window: [4, 0] }, { causal: { offset: [3, 30] }, window: [4, 0] });
    same({ causal: 'top-left' }, { causal: 'top-left' });
    same({ keyLengths: [9, 150], causal: false }, { keyLengths: [9, 150] });
    const out = tensor(new Float32Array(batch * heads * 5 * valueDim), [batch, heads, 5, valueDim]);
    assert.equal(cache.attend(some, { out }).output, out);
    assert.deepEqual(out.data, cache.attend(some).output.data);
  });

  test('truncate forgets the end, reset all of it', () => {
    using cache = makeCache();
    cache.append(key, value);
    cache.truncate(40);
    assert.equal(cache.length, 40);
    const some = span(query, 0, 3);
    assert.deepEqual(cache.attend(some, { causal: false }).output, engine.attention(some, span(key, 0, 40), span(value, 0, 40)).output);
    cache.append(span(key, 90, 95), span(value, 90, 95));
    assert.equal(cache.length, 45);
    cache.reset();
    assert.equal(cache.length, 0);
    assert.ok(cache.attend(some).output.data.every((x) => x === 0), 'an empty cache shows no key, so outputs are 0');
  });

  test('what does not fit is refused by a sentence, and nothing was appended', async () => {
    using cache = makeCache(10);
    cache.append(span(key, 0, 8), span(value, 0, 8));
    const before = cache.attend(span(query, 7, 8)).output;
    const error = await errorOf(() => cache.append(span(key, 8, 11), span(value, 8, 11)));
    assert.equal(error.code, 'INVALID_ARGUMENT');
    assert.match(error.message, /^key has 3 positions, but the cache holds 8 of at most 10, expected no more than 2\.$/);
    assert.equal(cache.length, 8);
    assert.deepEqual(cache.attend(span(query, 7, 8)).output, before);
    cache.append(span(key, 8, 10), span(value, 8, 10));
    assert.equal(cache.length, cache.capacity);
  });

  test('a batch of one may leave its axis out', () => {
    using cache = engine.kvCache({ numKvHeads: 1, headDim: 2, capacity: 4 });
    cache.append([[[1, 0], [0, 1]]], [[[1, 2], [3, 4]]]);
    cache.append([[[[1, 1]]]], [[[[5, 6]]]]);
    assert.deepEqual(cache.attend([[[0, 0]]]).output.toArray(), [[[3, 4]]]);
    assert.deepEqual(cache.attend([[[[0, 0]], [[0, 0]]]]).output.shape, [1, 2, 1, 2]);
  });

  test('many caches live side by side, and their memory comes back', () => {
    const round = () => {
      const caches = Array.from({ length: 8 }, () => makeCache());
      caches.forEach((cache, i) => cache.append(span(key, i, i + 1), span(value, i, i + 1)));
      const outputs = caches.map((cache) => cache.attend(span(query, 0, 1)).output.data);
      outputs.forEach((output, i) => {
        const expected = engine.attention(span(query, 0, 1), span(key, i, i + 1), span(value, i, i + 1)).output.data;
        assert.deepEqual(output, expected, `cache ${i}`);
      });
      for (const cache of caches) cache.dispose();
    };
    round();
    const { used } = engine.info().memory;
    for (let i = 0; i < 20; i++) round();
    assert.equal(engine.info().memory.used, used, 'disposed caches keep memory');
  });
});
