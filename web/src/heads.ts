import { expectShape, oneOf, type Shaped, wholeNumber } from './arguments.js';
import { QkvError } from './errors.js';
import { describe, LONGEST_AXIS, showShape } from './tensor.js';

/** How queries, keys and values lie in memory, and how many heads share a key. */
export interface HeadLayout {
  /**
   * Axes of rank-4 arguments and of the output: `'bhld'`, (batch, heads, length, dim), by default, or `'blhd'`,
   * (batch, length, heads, dim). Weights, scores and logSumExp have their heads first in both.
   */
  layout?: 'bhld' | 'blhd' | undefined;
  /**
   * Heads of a query that comes as a projection, as a linear layer leaves it: (length, numHeads * dim) or
   * (batch, length, numHeads * dim); head h is columns h * dim to (h + 1) * dim (Vaswani et al., 2017, section
   * 3.2.2). The output is as the query is. Default: heads are an axis. Not together with `layout`.
   */
  numHeads?: number | undefined;
  /**
   * Heads of the key and value of projections; divides numHeads, which is the default. Query head h reads key
   * head floor(h / (numHeads / numKvHeads)): fewer are grouped heads (Ainslie et al., "GQA", 2023), 1 is one key
   * for all (Shazeer, "Fast Transformer Decoding", 2019).
   */
  numKvHeads?: number | undefined;
}

/** (batch, heads, length, dim) of an argument, with the stride of each axis in elements. */
export interface Heads {
  readonly sizes: readonly [batch: number, heads: number, length: number, dim: number];
  readonly strides: readonly number[];
}

/** The sizes of one attention. */
export interface AttentionSizes {
  readonly batch: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly queryLen: number;
  readonly keyLen: number;
  readonly headDim: number;
  readonly valueDim: number;
}

/** Query, key and value of one attention, and the shapes of what comes out. */
export interface AttentionHeads {
  readonly sizes: AttentionSizes;
  readonly query: Heads;
  readonly key: Heads;
  readonly value: Heads;
  readonly output: Heads;
  /** The query's, with the value's dim. */
  readonly outputShape: readonly number[];
  /** (batch?, heads?, queryLength), the axes of what there is one of for each row. */
  readonly rowsShape: readonly number[];
}

/** Contiguous memory of (batch, heads, length, dim), or (batch, length, heads, dim). */
export function contiguousHeads(sizes: Heads['sizes'], lengthFirst: boolean): Heads {
  const [, heads, length, dim] = sizes;
  const strides = lengthFirst
    ? [length * heads * dim, dim, heads * dim, 1]
    : [heads * length * dim, length * dim, dim, 1];
  return { sizes, strides };
}

/** The heads of a shape; `count` is how many a projection holds. */
function headsOf(shape: readonly number[], lengthFirst: boolean, count: number | undefined): Heads {
  const [dim, inner, outer, batch] = [...shape].reverse() as [number, number, number?, number?];
  if (count !== undefined) {
    return contiguousHeads([outer ?? 1, count, inner, count === 0 ? 0 : dim / count], true);
  }
  return contiguousHeads(
    lengthFirst ? [batch ?? 1, inner, outer ?? 1, dim] : [batch ?? 1, outer ?? 1, inner, dim],
    lengthFirst,
  );
}

export function expectDivisible({ shape }: Shaped, name: string, heads: number, option: string): void {
  const features = shape.at(-1)!;
  if (heads === 0 ? features === 0 : features % heads === 0) return;
  throw new QkvError(
    'SHAPE_MISMATCH',
    `${name} has shape ${showShape(shape)}, expected a last axis that ${option} = ${heads} divides.`,
  );
}

/** `numHeads` of key heads each read by the same number of query heads. `came` says where both are from. */
export function expectGroups(numHeads: number, numKvHeads: number, came: string): void {
  if (numKvHeads === 0 ? numHeads === 0 : numHeads % numKvHeads === 0) return;
  throw new QkvError('SHAPE_MISMATCH', `${came}, expected query heads that are a multiple of the key's heads.`);
}

/** How projections are split into heads: the counts of query and key, or undefined for other layouts. */
function headCounts({ layout, numHeads, numKvHeads = numHeads }: HeadLayout, rank: number): [number, number] | undefined {
  if (numKvHeads === undefined) return undefined;
  if (numHeads === undefined) {
    throw new QkvError('INVALID_ARGUMENT', `numKvHeads is ${describe(numKvHeads)} without numHeads, expected both for projections.`);
  }
  const counts: [number, number] = [wholeNumber(numHeads, 'numHeads', 0, LONGEST_AXIS), wholeNumber(numKvHeads, 'numKvHeads', 0, LONGEST_AXIS)];
  if (layout !== undefined) {
    throw new QkvError('INVALID_ARGUMENT', `layout is '${layout}' together with numHeads, expected one of them: projections are (batch, length, heads * dim).`);
  }
  if (rank > 3) {
    throw new QkvError('SHAPE_MISMATCH', `query has rank ${rank} with numHeads given, expected a projection of rank 2 or 3, (length, heads * dim) or (batch, length, heads * dim).`);
  }
  return counts;
}

/** Checks that query, key and value fit together. */
export function attentionHeads(query: Shaped, key: Shaped, value: Shaped, options: HeadLayout): AttentionHeads {
  const rank = query.shape.length;
  const { layout = 'bhld' } = options;
  const lengthFirst = oneOf(layout, 'layout', ['bhld', 'blhd']) === 'blhd';
  const counts = headCounts(options, rank);
  if (lengthFirst && rank !== 4) {
    throw new QkvError('INVALID_ARGUMENT', `layout is 'blhd' with rank ${rank}, expected rank 4.`);
  }
  if (counts) {
    expectDivisible(query, 'query', counts[0], 'numHeads');
    expectDivisible(key, 'key', counts[1], 'numKvHeads');
    expectDivisible(value, 'value', counts[1], 'numKvHeads');
  }
  const q = headsOf(query.shape, lengthFirst, counts?.[0]);
  const k = headsOf(key.shape, lengthFirst, counts?.[1]);
  const v = headsOf(value.shape, lengthFirst, counts?.[1]);
  const [batch, numHeads, queryLen, headDim] = q.sizes;
  const [, numKvHeads, keyLen] = k.sizes;
  const valueDim = v.sizes[3];
  const axes = (length: number | null, dim: number | null): (number | null)[] => {
    if (counts) return [batch, length, dim === null ? null : dim * numKvHeads].slice(3 - rank);
    return (lengthFirst ? [batch, length, numKvHeads, dim] : [batch, numKvHeads, length, dim]).slice(4 - rank);
  };
  expectShape(key, 'key', axes(null, headDim), "its rank, batch and dim are the query's");
  expectShape(value, 'value', axes(keyLen, null), "all but its dim are the key's");
  expectGroups(numHeads, numKvHeads, `query has ${numHeads} heads and key has ${numKvHeads}`);
  return {
    sizes: { batch, numHeads, numKvHeads, queryLen, keyLen, headDim, valueDim },
    query: q,
    key: k,
    value: v,
    output: contiguousHeads([batch, numHeads, queryLen, valueDim], lengthFirst || counts !== undefined),
    outputShape: [...query.shape.slice(0, -1), counts ? numHeads * valueDim : valueDim],
    rowsShape: [batch, numHeads, queryLen].slice(counts ? 3 - rank : 4 - rank),
  };
}
