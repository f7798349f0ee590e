// Faults that other libraries had with rotary positions and ALiBi; the ids are those of our bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { alibiSlopes, type Engine, tensor } from 'qkv';

import { expectRight, makeCase, run } from '../support/attention-case.js';
import { standardSlopes } from '../support/attention-reference.js';
import { errorOf, loadVariant, variant } from '../support/engine.js';
import { randomFloats } from '../support/reference.js';
import { column, expectClose, row } from '../support/single-row.js';
import { tokenByToken } from '../support/token-by-token.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b), seed), shape);

describe(`bug log, rotary positions and ALiBi, ${variant}`, () => {
  test('B37 new queries are rotated at their own position', () => {
    const key = engine.rotary([[1, 0], [1, 0], [1, 0]], { offset: 0, pairing: 'halves' });
    const attend = (position: number) => {
      const query = engine.rotary([[1, 0]], { positions: [position], pairing: 'halves' });
      return engine.attention(query, key, [[1], [2], [3]], { scale: 1, weights: 'heads' });
    };
    const { output, weights } = attend(2);
    expectClose([...weights!.data], [0.129472, 0.336944, 0.533583]);
    expectClose([...output.data], [2.404111]);
    expectClose([...attend(0).output.data], [1.595889]);
  });

  test('B37 token by token through a cache equals one causal call', () => {
    const [heads, length, dim] = [2, 70, 8] as const;
    for (const pairing of ['halves', 'neighbours'] as const) {
      const plain = makeCase({ heads, kvHeads: 1, queryLen: length, keyLen: length, dim, valueDim: 5 }, 37, { causal: true });
      const rotate = (data: Float32Array, count: number) => engine.rotary(tensor(data, [count, length, dim]), { pairing }).data;
      const whole = { ...plain, query: rotate(plain.query, heads), key: rotate(plain.key, 1) };
      expectClose([...tokenByToken(engine, whole)], [...run(engine, whole).output]);
      // Rotated at its own position when it comes, each token has the bits that it has in the whole.
      for (let t = 0; t < length; t++) {
        const token = tensor(plain.key.subarray(t * dim, (t + 1) * dim), [1, 1, dim]);
        assert.deepEqual(engine.rotary(token, { offset: t, pairing }).data, Float32Array.from(whole.key.subarray(t * dim, (t + 1) * dim)), `token ${t}`);
      }
    }
  });

  test('B37 scores depend on the distance alone', () => {
    const [query, key] = [random(4, 2, 65, 64), random(5, 2, 65, 64)];
    const scoresFrom = (offset: number) =>
      engine.attention(engine.rotary(query, { offset, pairing: 'halves' }), engine.rotary(key, { offset, pairing: 'halves' }), key, { scores: 'raw' }).scores!.data;
    const [near, far] = [scoresFrom(0), scoresFrom(100)];
    // 64 products over 8, each off by at most eight half units in the last place, on both sides.
    near.forEach((score, at) => assert.ok(Math.abs(score - far[at]!) < (64 / 8) * 8 * 2 * 2 ** -24, `score ${at} is ${score} at 0 and ${far[at]} at 100`));
  });

  test('B38 pairs are neighbours or halves, and have to be named', async () => {
    const x = [[1, 2, 3, 4]];
    expectClose([...engine.rotary(x, { positions: [1], base: 10000, pairing: 'neighbours' }).data], [-1.14264, 1.922076, 2.959851, 4.0298]);
    expectClose([...engine.rotary(x, { positions: [1], base: 10000, pairing: 'halves' }).data], [-1.984111, 1.959901, 2.462378, 4.0198]);
    const error = await errorOf(() => engine.rotary(x, { offset: 1 } as never));
    assert.equal(error.code, 'INVALID_ARGUMENT');
    assert.match(error.message, /^pairing is undefined/);
  });

  test('B38 both pairings, of all dims or some, around SIMD widths', () => {
    for (const [dim, dims] of [[2, 2], [6, 6], [10, 6], [64, 64], [66, 34], [130, 130]] as const) {
      const x = random(dim, 3, 5, dim);
      for (const pairing of ['neighbours', 'halves'] as const) {
        const { data } = engine.rotary(x, { offset: 7, base: 500, pairing, dims });
        const expected = rotated(x.data, 5, dim, dims, pairing, (i) => 7 + i, 500);
        // Two products and a sum of numbers below 2.
        expectClose([...data], [...expected], 4 * 2 ** -23);
        for (let at = 0; at < data.length; at++) if (at % dim >= dims) assert.equal(data[at], x.data[at], 'a dim beyond dims was turned');
      }
    }
  });

  test('B39 slopes of a head count that is no power of two', () => {
    const slopes = (heads: number) => [...alibiSlopes(heads).data];
    assert.deepEqual(slopes(6), [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]);
    assert.deepEqual(slopes(8), [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]);
    for (const heads of [1, 2, 3, 5, 7, 12, 16, 20, 33]) assert.deepEqual(slopes(heads), standardSlopes(heads).map(Math.fround), `slopes of ${heads} heads`);
  });

  test("B39 ALiBi counts from the query's own position", () => {
    const alibi = [0.5];
    const { weights, output } = row(engine, [0, 0, 0], [1, 2, 3], { alibi, queryOffset: 2 });
    expectClose(weights, [0.186324, 0.307196, 0.50648]);
    expectClose(output, 2.320157);
    expectClose(row(engine, [0, 0, 0], [1, 2, 3], { alibi, causal: 'bottom-right' }).output, 2.320157);
    expectClose(row(engine, [0, 0, 0], [1, 2, 3], { alibi }).output, 1.679843);
    assert.deepEqual(engine.attention(column([0]), column([0, 0, 0]), column([1, 2, 3]), { alibi: tensor(Float32Array.from(alibi)), queryOffset: 2 }).output.data[0], output);
  });

  test('B39 the standard slopes, at every alignment, around the edges of tiles', () => {
    for (const [queryLen, keyLen, heads] of [[17, 130, 6], [130, 65, 3], [65, 65, 12]] as const) {
      for (const rules of [{ causal: 'bottom-right' }, { causal: 'top-left' }, { queryOffset: 40 }] as const) {
        const sizes = { heads, kvHeads: heads / 3, queryLen, keyLen, dim: 5, valueDim: 4 };
        const standard = expectRight(engine, makeCase(sizes, 39, { ...rules, alibi: true }));
        const given = expectRight(engine, makeCase(sizes, 39, { ...rules, alibi: standardSlopes(heads) }));
        assert.deepEqual(given.output, standard.output);
      }
    }
  });
});

/** Su et al., "RoFormer" (2021): each pair turned by position / base^(2 pair / dims). */
function rotated(x: Float32Array, length: number, dim: number, dims: number, pairing: 'neighbours' | 'halves', position: (row: number) => number, base: number) {
  const out = Float64Array.from(x);
  for (let r = 0; r * dim < x.length; r++) {
    for (let pair = 0; pair < dims / 2; pair++) {
      const angle = position(r % length) / base ** ((2 * pair) / dims);
      const [a, b] = pairing === 'neighbours' ? [2 * pair, 2 * pair + 1] : [pair, pair + dims / 2];
      const [left, right] = [x[r * dim + a]!, x[r * dim + b]!];
      out[r * dim + a] = left * Math.cos(angle) - right * Math.sin(angle);
      out[r * dim + b] = left * Math.sin(angle) + right * Math.cos(angle);
    }
  }
  return out;
}
