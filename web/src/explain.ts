import { expectOptions, expectShape, numbers, wholeNumber } from './arguments.js';
import { AttentionCall } from './attention.js';
import { SCORE_OPTIONS, type ScoreOptions } from './score-options.js';
import { attentionHeads, expectDivisible, type HeadLayout } from './heads.js';
import { LinearCall } from './linear.js';
import type { EngineMemory } from './memory.js';
import { LONGEST_AXIS, type Tensor, type TensorLike } from './tensor.js';

/**
 * The projections, and what is done with the scores: `layout`, `out` and the extras have no meaning here, since
 * every step is given back anyway.
 */
export interface ExplainOptions
  extends Omit<ScoreOptions, 'weights' | 'scores' | 'logSumExp'>,
    Pick<HeadLayout, 'numHeads' | 'numKvHeads'> {
  /** (embedDim, headDim), or (embedDim, numHeads * headDim) with numHeads: query = x . wq */
  wq: TensorLike;
  /** (embedDim, headDim), or (embedDim, numKvHeads * headDim): key = x . wk */
  wk: TensorLike;
  /** (embedDim, valueDim), or (embedDim, numKvHeads * valueDim): value = x . wv */
  wv: TensorLike;
}

/**
 * Every step of self-attention over x (length, embedDim), in order. Scores, scaled and weights have a
 * heads axis first where numHeads was given.
 */
export interface Explanation {
  /** Step 1, project: x . wq, (length, headDim), or (length, numHeads * headDim). */
  query: Tensor;
  /** Step 1, project: x . wk, (length, headDim), or (length, numKvHeads * headDim). */
  key: Tensor;
  /** Step 1, project: x . wv, (length, valueDim), or (length, numKvHeads * valueDim). */
  value: Tensor;
  /** Step 2, score: query . key^T, (heads?, length, length), before any rule. */
  scores: Tensor;
  /** Step 3, scale: scores * scale, (heads?, length, length). */
  scaled: Tensor;
  /** Step 4, softmax over the visible keys of each row, after every rule: (heads?, length, length). */
  weights: Tensor;
  /** Step 5, mix: weights . value, (length, valueDim), or (length, numHeads * valueDim). */
  output: Tensor;
}

const EXTRAS: readonly string[] = ['weights', 'scores', 'logSumExp'];
const OPTIONS = [...SCORE_OPTIONS.filter((name) => !EXTRAS.includes(name)), 'numHeads', 'numKvHeads', 'wq', 'wk', 'wv'];

export function explain(memory: EngineMemory, xLike: TensorLike, options: ExplainOptions): Explanation {
  expectOptions('explain', options, OPTIONS);
  const x = numbers(xLike, 'x', 2);
  const [length, embedDim] = x.shape as [number, number];
  const { numHeads = 1, numKvHeads = numHeads } = options;
  wholeNumber(numHeads, 'numHeads', 1, LONGEST_AXIS);
  wholeNumber(numKvHeads, 'numKvHeads', 1, LONGEST_AXIS);
  const weight = (name: 'wq' | 'wk' | 'wv', columns: number | null, heads: number, counted: string) => {
    const given = numbers(options[name], name, 2);
    expectShape(given, name, [embedDim, columns], `its rows are x's dims, its columns ${counted} * dim`);
    expectDivisible(given, name, heads, counted);
    return given;
  };
  const wq = weight('wq', null, numHeads, 'numHeads');
  const wk = weight('wk', (wq.shape[1]! / numHeads) * numKvHeads, numKvHeads, 'numKvHeads');
  const wv = weight('wv', null, numKvHeads, 'numKvHeads');
  const frame = memory.frame();
  const [query, key, value] = [wq, wk, wv].map((w) => new LinearCall(memory, frame, length, w)) as [LinearCall, LinearCall, LinearCall];
  const heads = attentionHeads(query, key, value, options);
  const attention = new AttentionCall(memory, frame, heads, { ...options, weights: 'heads', scores: 'raw' });
  const output = frame.output(heads.outputShape);
  const scoresShape = [...heads.rowsShape, length];
  const scores = frame.output(scoresShape);
  const xBlock = frame.input(x);

  for (const call of [query, key, value]) call.run('explain', xBlock);
  const projected = [query.out, key.out, value.out] as const;
  attention.run('explain', ...projected, output);
  // Scores that are not scaled, and nothing else.
  attention.run('explain', ...projected, output, { scale: 1, scores, out: 0, weights: 0 });
  const { scores: scaled, weights } = attention.extras() as { scores: Tensor; weights: Tensor };
  return {
    query: frame.read(query.out, query.shape),
    key: frame.read(key.out, key.shape),
    value: frame.read(value.out, value.shape),
    scores: frame.read(scores, scoresShape),
    scaled,
    weights,
    output: frame.read(output, heads.outputShape),
  };
}
