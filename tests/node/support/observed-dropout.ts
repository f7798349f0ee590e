// Which weights a call drops, seen from outside.
import type { Engine } from 'qkv';

import { type AttentionCase, run } from './attention-case.js';
import type { Kept } from './attention-reference.js';

/** What dropout lets through: where each key's value stands for itself, its weight is its output. */
export function observedDropout(engine: Engine, one: AttentionCase, dropout: { p: number; seed: number }): Kept & { weights: Float32Array } {
  const { batch, kvHeads, heads, queryLen, keyLen } = one.sizes;
  const value = Float32Array.from({ length: batch * kvHeads * keyLen * keyLen }, (_, at) => Number(at % keyLen === Math.floor(at / keyLen) % keyLen));
  const { output } = run(engine, { ...one, value, sizes: { ...one.sizes, valueDim: keyLen } }, { dropout });
  return { p: dropout.p, weights: output, kept: (b, h, i, j) => output[((b * heads + h) * queryLen + i) * keyLen + j] !== 0 };
}
