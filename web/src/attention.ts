import { booleans, expectOptions, expectShape, finite, flag, numbers, type Numbers, oneOf } from './arguments.js';
import { QkvError } from './errors.js';
import type { EngineMemory } from './memory.js';
import type { Calls } from './module.js';
import { describe, type MaskLike, showShape, sizeOf, type Tensor, type TensorLike } from './tensor.js';

/**
 * Which keys a query may see by position: query i sees key j where j <= i + offset.
 * - `false` (default): all.
 * - `'top-left'`: offset 0, the first query is lined up with the first key.
 * - `'bottom-right'`: offset keyLength - queryLength, the last query with the last key.
 * - `{ offset }`: any whole number.
 * - `true`: only where both lengths are equal, since libraries disagree elsewhere.
 */
export type Causal = boolean | 'top-left' | 'bottom-right' | { readonly offset: number };

export interface AttentionOptions {
  /** Multiplies query . key. Default 1 / sqrt(head dim of the query); 0 is 0. */
  scale?: number | undefined;
  /** Default false. */
  causal?: Causal | undefined;
  /**
   * true = may attend; a score of -Infinity (from infinite inputs) hides its key as false does. Broadcasts, aligned right, to (batch, heads, queryLength, keyLength). A rank-3
   * mask of rank-4 attention is (heads, queryLength, keyLength); for one a batch give
   * (batch, 1, queryLength, keyLength).
   */
  mask?: MaskLike | undefined;
  /** Axes of rank-4 arguments: (batch, heads, length, dim) by default, or (batch, length, heads, dim). */
  layout?: 'bhld' | 'blhd' | undefined;
  /**
   * `'heads'`: the weights of each head, (batch?, heads?, queryLength, keyLength). Rows sum to 1; a row
   * that sees no key is 0; a weight below 2^-100 of its row's largest is 0.
   */
  weights?: 'heads' | undefined;
  /**
   * Natural log of each row's sum of exponentials, (batch?, heads?, queryLength); -Infinity for a row
   * that sees no key.
   */
  logSumExp?: boolean | undefined;
}

/** What was computed: `weights` and `logSumExp` where the options asked for them. */
export type AttentionResult<Options extends AttentionOptions = AttentionOptions> = {
  /**
   * The query's shape with the value's dim. A row that sees no key is 0. Weights are applied before
   * they are divided by their sum, so a row's values may not sum to more than a float holds.
   */
  output: Tensor;
} & Wanted<Options, 'weights', 'heads'> & Wanted<Options, 'logSumExp', true>;

/** An extra that is there or may be there, by what the options say. */
type Wanted<Options, Name extends 'weights' | 'logSumExp', Yes> = Options extends Record<Name, Yes>
  ? Record<Name, Tensor>
  : Partial<Record<Name, Tensor>>;

const OPTIONS = ['scale', 'causal', 'mask', 'layout', 'weights', 'logSumExp'] as const;

interface Sizes {
  batch: number;
  numHeads: number;
  numKvHeads: number;
  queryLen: number;
  keyLen: number;
  headDim: number;
  valueDim: number;
}

/** The axes of one argument, whatever its rank and layout. */
function axesOf({ shape }: Numbers, lengthFirst: boolean) {
  const [dim, inner, outer, batch] = [...shape].reverse() as [number, number, number?, number?];
  return lengthFirst
    ? { batch: batch ?? 1, heads: inner, length: outer ?? 1, dim }
    : { batch: batch ?? 1, heads: outer ?? 1, length: inner, dim };
}

function sizesOf(query: Numbers, key: Numbers, value: Numbers, lengthFirst: boolean): Sizes {
  const q = axesOf(query, lengthFirst);
  const k = axesOf(key, lengthFirst);
  const rank = query.shape.length;
  const axes = (batch: number, heads: number, length: number | null, dim: number | null) =>
    (lengthFirst ? [batch, length, heads, dim] : [batch, heads, length, dim]).slice(4 - rank);
  expectShape(key, 'key', axes(q.batch, k.heads, null, q.dim), "its rank, batch and dim are the query's");
  expectShape(value, 'value', axes(q.batch, k.heads, k.length, null), "all but its dim are the key's");
  if (k.heads === 0 ? q.heads !== 0 : q.heads % k.heads !== 0) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `query has ${q.heads} heads and key has ${k.heads}, expected a multiple of the key's heads.`,
    );
  }
  return {
    batch: q.batch,
    numHeads: q.heads,
    numKvHeads: k.heads,
    queryLen: q.length,
    keyLen: k.length,
    headDim: q.dim,
    valueDim: axesOf(value, lengthFirst).dim,
  };
}

function causalOffset(causal: Causal, { queryLen, keyLen }: Sizes): number | undefined {
  if (causal === false) return undefined;
  if (causal === 'top-left') return 0;
  if (causal === 'bottom-right') return keyLen - queryLen;
  if (causal === true) {
    if (queryLen === keyLen) return 0;
    throw new QkvError(
      'INVALID_ARGUMENT',
      `causal is true with ${queryLen} queries and ${keyLen} keys, expected 'top-left', 'bottom-right' or { offset } where the lengths differ.`,
    );
  }
  if (typeof causal === 'object' && causal !== null && Number.isSafeInteger(causal.offset)) {
    // Beyond the lengths nothing changes, and the core counts in 32 bits.
    return Math.max(-queryLen, Math.min(keyLen, causal.offset));
  }
  const came = typeof causal === 'object' && causal !== null ? `{ offset: ${describe(causal.offset)} }` : describe(causal);
  throw new QkvError(
    'INVALID_ARGUMENT',
    `causal is ${came}, expected true, false, 'top-left', 'bottom-right' or { offset } with a whole number.`,
  );
}

/** The mask's shape with all four axes; 1 broadcasts. */
function maskShape(shape: readonly number[], sizes: Sizes, rank: number): number[] {
  const { batch, numHeads, queryLen, keyLen } = sizes;
  const full = [batch, numHeads, queryLen, keyLen];
  const padded = [...Array<number>(Math.max(0, 4 - shape.length)).fill(1), ...shape];
  const fits = padded.length === 4 && padded.every((n, axis) => n === 1 || n === full[axis]);
  // One mask a batch, or one a head? Where both counts are equal nobody can tell what was meant.
  const ambiguous = shape.length === 3 && rank === 4 && batch > 1 && batch === numHeads && shape[0] === batch;
  if (fits && !ambiguous) return padded;
  throw new QkvError(
    'SHAPE_MISMATCH',
    `mask has shape ${showShape(shape)}, ${ambiguous ? `which could be one a batch or one a head; expected (${batch}, 1, ${queryLen}, ${keyLen}) or (1, ${numHeads}, ${queryLen}, ${keyLen})` : `expected one that broadcasts, aligned right, to (batch, heads, queryLength, keyLength) = ${showShape(full)}`}.`,
  );
}

/** What of a call the options decide, for {@link attention} and explain() alike. */
export function maskingOf(options: AttentionOptions, sizes: Sizes, rank: number) {
  const { causal = false, scale = sizes.headDim === 0 ? 1 : 1 / Math.sqrt(sizes.headDim) } = options;
  const offset = causalOffset(causal, sizes);
  const mask = options.mask === undefined ? undefined : booleans(options.mask, 'mask');
  const [maskBatch, maskHeads, maskQueryLen, maskKeyLen] =
    mask === undefined ? [1, 1, 1, 1] : (maskShape(mask.shape, sizes, rank) as [number, number, number, number]);
  return {
    mask: mask?.data,
    fields: {
      scale: finite(scale, 'scale'),
      causal: offset !== undefined,
      causalOffset: offset ?? 0,
      maskBatch,
      maskHeads,
      maskQueryLen,
      maskKeyLen,
    } satisfies Partial<Calls['attention']>,
  };
}

export function attention(
  memory: EngineMemory,
  queryLike: TensorLike,
  keyLike: TensorLike,
  valueLike: TensorLike,
  options: AttentionOptions = {},
): AttentionResult {
  expectOptions('attention', options, OPTIONS);
  const query = numbers(queryLike, 'query', 2, 3, 4);
  const key = numbers(keyLike, 'key', query.shape.length);
  const value = numbers(valueLike, 'value', query.shape.length);
  const rank = query.shape.length;
  const { layout = 'bhld' } = options;
  const lengthFirst = oneOf(layout, 'layout', ['bhld', 'blhd']) === 'blhd';
  if (lengthFirst && rank !== 4) {
    throw new QkvError('INVALID_ARGUMENT', `layout is 'blhd' with rank ${rank}, expected rank 4.`);
  }
  const sizes = sizesOf(query, key, value, lengthFirst);
  const { mask, fields } = maskingOf(options, sizes, rank);
  if (options.weights !== undefined) oneOf(options.weights, 'weights', ['heads']);

  const outputShape = [...query.shape.slice(0, -1), sizes.valueDim];
  const rowsShape = [sizes.batch, sizes.numHeads, sizes.queryLen].slice(4 - rank);
  const weightsShape = [...rowsShape, sizes.keyLen];
  const frame = memory.frame();
  const blocks = {
    query: frame.input(query.data),
    key: frame.input(key.data),
    value: frame.input(value.data),
    mask: frame.input(mask),
    out: frame.output(outputShape),
    weights: frame.output(weightsShape, options.weights !== undefined),
    logSumExp: frame.output(rowsShape, flag(options.logSumExp, 'logSumExp')),
    ...frame.workspace(
      memory.module.attentionWorkspaceBytes(
        sizes.headDim,
        sizes.valueDim,
        options.weights === undefined ? 0 : sizeOf(rowsShape),
      ),
    ),
  };
  frame.run('attention', 'attention', { ...sizes, ...fields, ...blocks, lengthFirst });
  const result: { output: Tensor; weights?: Tensor; logSumExp?: Tensor } = { output: frame.read(blocks.out, outputShape) };
  if (options.weights !== undefined) result.weights = frame.read(blocks.weights, weightsShape);
  if (options.logSumExp) result.logSumExp = frame.read(blocks.logSumExp, rowsShape);
  return result;
}
