// The smallest problems, whose numbers can be worked out by hand: one dimension, scale 1.
import assert from 'node:assert/strict';

import { type AttentionOptions, type Engine, tensor } from 'qkv';

export const column = (values: readonly number[]) => tensor(Float32Array.from(values), [values.length, 1]);

/** One query of 1, so that the keys are the scores. */
export function row(engine: Engine, scores: readonly number[], values: readonly number[], options: AttentionOptions = {}) {
  const all: AttentionOptions = { scale: 1, weights: 'heads', logSumExp: true, ...options };
  const { output, weights, logSumExp } = engine.attention([[1]], column(scores), column(values), all);
  return { output: output.data[0]!, weights: Array.from(weights!.data), logSumExp: logSumExp!.data[0]! };
}

/** Queries of 0, so that every visible key is equally likely: each row is the mean of its values. */
export function means(engine: Engine, queryLen: number, values: readonly number[], options: AttentionOptions = {}): number[] {
  const zeros = column(Array<number>(queryLen).fill(0));
  return Array.from(engine.attention(zeros, column(values.map(() => 0)), column(values), options).output.data);
}

/** Numbers of the bug log, which are given to six digits. */
export function expectClose(made: readonly number[] | number, expected: readonly number[] | number, tolerance = 1e-6): void {
  const [all, wanted] = [[made].flat(), [expected].flat()];
  const near = all.length === wanted.length && wanted.every((x, i) => Object.is(all[i], x) || Math.abs(all[i]! - x) <= tolerance);
  assert.ok(near, `got [${all.join(', ')}], expected [${wanted.join(', ')}] within ${tolerance}`);
}
