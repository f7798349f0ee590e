// Attention as plain loops, with every option and the options' public meanings: in double precision
// it is the truth, rounded to float32 after every operation it is how well a plain float program does.
import type { Rounding } from './reference.js';

type Numbers = ArrayLike<number>;

export interface AttentionSizes {
  /** Default 1. */
  batch?: number;
  heads: number;
  kvHeads: number;
  queryLen: number;
  keyLen: number;
  dim: number;
  valueDim: number;
}

/** Row-major numbers that broadcast, aligned right, to (batch, heads, queryLen, keyLen). */
interface Broadcast<Data extends Numbers> {
  data: Data;
  shape: readonly number[];
}

/** One number for all, or one a batch; one a sequence where they are packed. */
type PerSequence = number | readonly number[];

/** Those of attention()'s options that decide its numbers. */
export interface AttentionRules {
  scale?: number;
  softcap?: number;
  bias?: Broadcast<Float32Array>;
  alibi?: true | readonly number[];
  sinks?: readonly number[];
  mask?: Broadcast<Uint8Array>;
  causal?: boolean | 'top-left' | 'bottom-right' | { offset: PerSequence };
  window?: readonly [number, number];
  queryOffset?: PerSequence;
  keyLengths?: readonly number[];
  sequences?: { query: readonly number[]; key: readonly number[] };
}

/** The weights that dropout let through. */
export interface Kept {
  p: number;
  kept: (batch: number, head: number, query: number, key: number) => boolean;
}

/** How the sums are made: rounded after every operation, from the first term on or from the last. */
export interface Arithmetic {
  round: Rounding;
  backwards?: boolean | undefined;
}

/** Everything is (batch, heads, length, dim) and contiguous. */
export function attention(
  query: Numbers,
  key: Numbers,
  value: Numbers,
  sizes: AttentionSizes,
  { round, backwards = false }: Arithmetic,
  rules: AttentionRules = {},
  dropout?: Kept,
) {
  const { batch = 1, heads, kvHeads, queryLen, keyLen, dim, valueDim } = sizes;
  const rows = batch * heads * queryLen;
  const output = new Float64Array(rows * valueDim);
  const weights = new Float64Array(rows * keyLen);
  const logSumExp = new Float64Array(rows);
  const scores = scoresOf(rows * keyLen);
  const score = scoring(sizes, rules, round);
  const step = backwards ? -1 : 1;
  const first = (count: number) => (backwards ? count - 1 : 0);
  for (let row = 0; row < rows; row++) {
    const i = row % queryLen;
    const h = Math.floor(row / queryLen) % heads;
    const b = Math.floor(row / queryLen / heads);
    const kvRows = (b * kvHeads + Math.floor(h / (heads / kvHeads))) * keyLen;
    for (let j = 0; j < keyLen; j++) {
      let product = 0;
      for (let n = 0, d = first(dim); n < dim; n++, d += step) {
        product = round(product + round(query[row * dim + d]! * key[(kvRows + j) * dim + d]!));
      }
      score(product, b, h, i, j, scores, row * keyLen + j);
    }
    const w = weights.subarray(row * keyLen, (row + 1) * keyLen);
    w.set(scores.biased.subarray(row * keyLen, (row + 1) * keyLen));
    logSumExp[row] = softmax(w, rules.sinks?.[h], round, backwards);
    for (let n = 0, j = first(keyLen); n < keyLen; n++, j += step) {
      if (scores.biased[row * keyLen + j] === -Infinity || dropout?.kept(b, h, i, j) === false) continue;
      const weight = dropout ? round(w[j]! / round(1 - round(dropout.p))) : w[j]!;
      for (let d = 0; d < valueDim; d++) {
        const at = row * valueDim + d;
        output[at] = round(output[at]! + round(weight * value[(kvRows + j) * valueDim + d]!));
      }
    }
  }
  return { output, weights, logSumExp, scores };
}

const scoresOf = (count: number) => ({
  raw: new Float64Array(count),
  capped: new Float64Array(count),
  biased: new Float64Array(count),
});

/** In place, with the sink as one more score of the row. Returns the log of the sum of exponentials. */
function softmax(w: Float64Array, sink: number | undefined, round: Rounding, backwards: boolean): number {
  const seen = w.some((score) => score !== -Infinity);
  if (!seen) {
    w.fill(0);
    return -Infinity;
  }
  const largest = w.reduce((a, b) => Math.max(a, b), sink === undefined ? -Infinity : round(sink));
  const exp = (score: number) => (score === -Infinity ? 0 : round(Math.exp(round(score - largest))));
  let sum = sink === undefined ? 0 : exp(round(sink));
  for (let n = 0; n < w.length; n++) {
    const j = backwards ? w.length - 1 - n : n;
    w[j] = exp(w[j]!);
    sum = round(sum + w[j]!);
  }
  for (let j = 0; j < w.length; j++) w[j] = round(w[j]! / sum);
  return round(largest + round(Math.log(sum)));
}

/** A function that takes q . k of (batch, head, query, key) to each stage of its score. */
function scoring(sizes: AttentionSizes, rules: AttentionRules, round: Rounding) {
  const { batch = 1, heads, queryLen, keyLen, dim } = sizes;
  const scale = round(rules.scale ?? (dim === 0 ? 1 : 1 / Math.sqrt(dim)));
  const full = [batch, heads, queryLen, keyLen];
  const bias = rules.bias && broadcast(rules.bias, full);
  const mask = rules.mask && broadcast(rules.mask, full);
  const slopes = rules.alibi === true ? standardSlopes(heads) : rules.alibi;
  const place = placing(sizes, rules);
  return (product: number, b: number, h: number, i: number, j: number, to: ReturnType<typeof scoresOf>, at: number) => {
    let score = round(product * scale);
    to.raw[at] = score;
    if (rules.softcap !== undefined) {
      const cap = round(rules.softcap);
      score = round(cap * round(Math.tanh(round(score / cap))));
    }
    to.capped[at] = score;
    const added = bias?.(b, h, i, j) ?? 0;
    const { sameSequence, position, key } = place(b, i, j);
    // What is forbidden stays so when it is NaN.
    const visible = added !== -Infinity && mask?.(b, h, i, j) !== 0 && sameSequence && byPosition(rules, position, key, b);
    score = round(score + added);
    if (slopes) score = round(score - round(round(slopes[h]!) * Math.abs(position - key)));
    to.biased[at] = visible ? score : -Infinity;
  };
}

function byPosition(rules: AttentionRules, position: number, key: number, batch: number): boolean {
  const { causal = false, window: [left, right] = [Infinity, Infinity], keyLengths } = rules;
  return (causal === false || key <= position) && key >= position - left && key <= position + right && key < (keyLengths?.[batch] ?? Infinity);
}

/** Where query i and key j of a batch stand: in one sequence or not, and at which of its positions. */
function placing({ queryLen, keyLen }: AttentionSizes, { sequences, causal, queryOffset }: AttentionRules) {
  const borders = sequences ?? { query: [0, queryLen], key: [0, keyLen] };
  const offsetOf = (number: number, queries: number, keys: number): number => {
    if (causal === 'bottom-right') return keys - queries;
    const offset = (typeof causal === 'object' ? causal.offset : queryOffset) ?? 0;
    return typeof offset === 'number' ? offset : offset[number]!;
  };
  const sequenceOf = (cuts: readonly number[]) => {
    const all: number[] = [];
    for (let s = 0; s + 1 < cuts.length; s++) all.push(...Array<number>(cuts[s + 1]! - cuts[s]!).fill(s));
    return all;
  };
  const [queryIn, keyIn] = [sequenceOf(borders.query), sequenceOf(borders.key)];
  return (batch: number, i: number, j: number) => {
    const s = queryIn[i]!;
    const [query, key] = [borders.query, borders.key];
    const offset = offsetOf(sequences ? s : batch, query[s + 1]! - query[s]!, key[s + 1]! - key[s]!);
    return { sameSequence: s === keyIn[j], position: i - query[s]! + offset, key: j - key[keyIn[j]!]! };
  };
}

/** A function from an element of `full` to the one of `shape` that stands for it. */
export function placeIn(shape: readonly number[], full: readonly number[]) {
  const lengths = [...Array<number>(full.length - shape.length).fill(1), ...shape];
  return (...indices: number[]): number =>
    indices.reduce((at, index, axis) => at * lengths[axis]! + (lengths[axis] === 1 ? 0 : index), 0);
}

function broadcast({ data, shape }: Broadcast<Numbers>, full: readonly number[]) {
  const place = placeIn(shape, full);
  return (...indices: number[]): number => data[place(...indices)]!;
}

/** Press et al., "Train Short, Test Long" (2022): 2^(-8 / n) and its powers; what is above a power of two takes every other slope of twice that many heads. */
export function standardSlopes(heads: number): number[] {
  const powers = (count: number) => Array.from({ length: count }, (_, i) => 2 ** ((-8 * (i + 1)) / count));
  const whole = 2 ** Math.floor(Math.log2(heads));
  const between = powers(2 * whole).filter((_, i) => i % 2 === 0);
  return [...powers(whole), ...between.slice(0, heads - whole)];
}
