import { expectOptions, expectShape, numbers } from './arguments.js';
import { type AttentionOptions, maskingOf } from './attention.js';
import type { EngineMemory } from './memory.js';
import type { Tensor, TensorLike } from './tensor.js';

export interface ExplainOptions extends Pick<AttentionOptions, 'scale' | 'causal' | 'mask'> {
  /** (embedDim, headDim): query = x . wq */
  wq: TensorLike;
  /** (embedDim, headDim): key = x . wk */
  wk: TensorLike;
  /** (embedDim, valueDim): value = x . wv */
  wv: TensorLike;
}

/** Every step of self-attention over x (length, embedDim), in order. */
export interface Explanation {
  /** Step 1, project: (length, headDim). */
  query: Tensor;
  /** Step 1, project: (length, headDim). */
  key: Tensor;
  /** Step 1, project: (length, valueDim). */
  value: Tensor;
  /** Step 2, score: query . key^T, (length, length), before any mask. */
  scores: Tensor;
  /** Step 3, scale: scores * scale. */
  scaled: Tensor;
  /** Step 4, softmax over the visible keys of each row: (length, length). */
  weights: Tensor;
  /** Step 5, mix: weights . value, (length, valueDim). */
  output: Tensor;
}

export function explain(
  memory: EngineMemory,
  xLike: TensorLike,
  options: ExplainOptions,
): Explanation {
  expectOptions('explain', options, ['wq', 'wk', 'wv', 'scale', 'causal', 'mask']);
  const x = numbers(xLike, 'x', 2);
  const wq = numbers(options.wq, 'wq', 2);
  const wk = numbers(options.wk, 'wk', 2);
  const wv = numbers(options.wv, 'wv', 2);
  const [length, embedDim] = x.shape as [number, number];
  const headDim = wq.shape[1]!;
  const valueDim = wv.shape[1]!;
  expectShape(wq, 'wq', [embedDim, null], "its rows are x's dims");
  expectShape(wk, 'wk', [embedDim, headDim], "its rows are x's dims, its columns wq's");
  expectShape(wv, 'wv', [embedDim, null], "its rows are x's dims");
  const sizes = {
    batch: 1, numHeads: 1, numKvHeads: 1, queryLen: length, keyLen: length, headDim, valueDim,
  };
  const { mask, fields } = maskingOf(options, sizes, 2);

  const shapes = {
    query: [length, headDim],
    key: [length, headDim],
    value: [length, valueDim],
    scores: [length, length],
    scaled: [length, length],
    weights: [length, length],
    output: [length, valueDim],
  };
  const frame = memory.frame();
  const inputs = {
    x: frame.input(x.data),
    wq: frame.input(wq.data),
    wk: frame.input(wk.data),
    wv: frame.input(wv.data),
    mask: frame.input(mask),
    ...frame.workspace(memory.module.traceWorkspaceBytes(length, embedDim, headDim, valueDim)),
  };
  const steps = mapValues(shapes, (shape) => frame.output(shape));
  frame.run('explain', 'trace', {
    ...sizes, ...fields, ...inputs, ...steps, out: steps.output, logSumExp: 0, lengthFirst: false, embedDim,
  });
  return mapValues(steps, (block, name) => frame.read(block, shapes[name]));
}

function mapValues<Key extends string, In, Out>(
  values: Record<Key, In>,
  map: (value: In, key: Key) => Out,
): Record<Key, Out> {
  const keys = Object.keys(values) as Key[];
  return Object.fromEntries(keys.map((key) => [key, map(values[key], key)])) as Record<Key, Out>;
}
