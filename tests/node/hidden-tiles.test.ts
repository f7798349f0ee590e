// Tiles that a rule hides wholly are not computed: hiding seven of eight keys saves most of the time.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type AttentionOptions, type Engine, tensor } from 'qkv';

import { loadVariant, variant } from './support/engine.js';
import { randomFloats } from './support/reference.js';

const LENGTH = 2048;
const BLOCK = 256;

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const sameBlock = (i: number) => Math.floor(i / LENGTH / BLOCK) === Math.floor((i % LENGTH) / BLOCK);
const mask = tensor(new Uint8Array(LENGTH * LENGTH).map((_, i) => Number(sameBlock(i))), [LENGTH, LENGTH]);
const bias = tensor(Float32Array.from(mask.data, (seen) => (seen ? 0 : -Infinity)), mask.shape);
const offsets = Array.from({ length: LENGTH / BLOCK + 1 }, (_, i) => i * BLOCK);

// The share of tiles that is left, and the most of the whole time that may be taken: what mask and bias
// cost to copy and to look at is in it.
const CASES: readonly [string, AttentionOptions, number][] = [
  ['mask', { mask }, 0.6],
  ['bias of -Infinity', { bias }, 0.6],
  ['causal', { causal: true }, 0.8],
  ['window', { window: [BLOCK / 2, BLOCK / 2] }, 0.5],
  ['keyLengths', { keyLengths: [BLOCK] }, 0.4],
  ['sequences', { sequences: { query: offsets, key: offsets } }, 0.4],
];

describe(`hidden tiles, ${variant}`, () => {
  const x = tensor(randomFloats(LENGTH * 64, 1), [LENGTH, 64]);
  const time = (options: AttentionOptions) => {
    const start = performance.now();
    engine.attention(x, x, x, options);
    return performance.now() - start;
  };
  const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

  for (const [name, options, most] of CASES) {
    test(`cost no time: ${name}`, () => {
      const ratios: number[] = [];
      for (let round = 0; round < 9; round++) ratios.push(time(options) / time({}));
      const ratio = median(ratios);
      console.log(`${name}: ${ratio.toFixed(2)} of the time without`);
      assert.ok(ratio <= most, `${name} took ${ratio.toFixed(2)} of the time without it, expected at most ${most}`);
    });
  }

  test('give what computing them would give', () => {
    const plain = engine.attention(x, x, x, { sequences: { query: offsets, key: offsets } }).output.data;
    for (const options of [{ mask }, { bias }]) assert.deepEqual(engine.attention(x, x, x, options).output.data, plain);
  });
});
