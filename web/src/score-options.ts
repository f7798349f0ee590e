import type { List } from './arguments.js';
import type { MaskLike, TensorLike } from './tensor.js';

/**
 * Which keys a query may see by position: query i sees key j where `j <= i + offset` (Vaswani et al., 2017,
 * section 3.2.3).
 * - `false` (default): all.
 * - `'top-left'`: offset 0, the first query is lined up with the first key, as in PyTorch's is_causal.
 * - `'bottom-right'`: offset keyLength - queryLength, the last query with the last key, as in FlashAttention
 *   from 2.1 on (Dao, 2023); of the whole key axis, whatever `keyLengths` says.
 * - `{ offset }`: a whole number from -2^30 to 2^30, or one per batch (per sequence when packed).
 * - `true`: offset 0 or `queryOffset`, only where both lengths are equal, since libraries disagree
 *   elsewhere.
 */
export type Causal = boolean | 'top-left' | 'bottom-right' | {
  /**
   * Position of the first query among the keys: one whole number, or one per batch or packed sequence, these
   * from -2^30 to 2^30.
   */
  readonly offset: number | List;
};

/** Rows of weights: those of some heads, of some queries, or both. What is left out is all of them. */
export interface WeightRows {
  /** Which heads, from 0 below numHeads, in any order. Default all. */
  readonly heads?: List | undefined;
  /** Which queries, from 0 below queryLength, in any order. Default all. */
  readonly queries?: List | undefined;
}

/**
 * What is done with the scores. A score goes through, in this order:
 *
 *     scaled = scale * query . key
 *     capped = softcap * tanh(scaled / softcap)
 *     biased = capped + bias - slope * |position - key's index|
 *     -Infinity where mask, causal, window, key lengths or packing hide the key
 *     weights = exp(biased) / (sum of exp(biased) over the row + exp(sink))
 *     output = dropout(weights) . value
 *
 * A query's position is its index plus its offset. A row that sees no key gives output 0, weights 0
 * and logSumExp -Infinity. NaN or Infinity in a hidden key or value has no effect. Asking for weights,
 * scores or logSumExp changes no bit of the output, and neither does the number of threads.
 */
export interface ScoreOptions {
  /**
   * `scaled = scale * query . key`. Default 1 / sqrt(head dim of the query) (Vaswani et al., 2017, section
   * 3.2.1); 0 is 0.
   */
  scale?: number | undefined;
  /** Hides key j of query i where `j > i + offset`; see {@link Causal} for the offset. Default false. */
  causal?: Causal | undefined;
  /**
   * `[left, right]`: how many keys before and after its own position a query sees, that one not counted:
   * `position - left <= j <= position + right` (Beltagy et al., "Longformer", 2020). Whole numbers >= 0, or
   * `Infinity` for no limit. Default none.
   */
  window?: readonly [left: number, right: number] | undefined;
  /**
   * Position of the first query among the keys, for causal, window and ALiBi: `position = index + queryOffset`.
   * One whole number, or one per batch (per sequence when packed), as past keys shift it in ONNX's Attention.
   * Default: what a named `causal` says, else 0. Not together with one.
   */
  queryOffset?: number | List | undefined;
  /**
   * Valid keys of each batch, (batch) whole numbers from 0 to keyLength: key j is hidden where
   * `j >= keyLengths[batch]`, as by nonpad_kv_seqlen of ONNX's Attention. Default: all. Not together with
   * `sequences`.
   */
  keyLengths?: List | undefined;
  /**
   * Sequences packed one after another along the length axes of a single batch, each seeing only itself
   * (Krell et al., "Efficient Sequence Packing without Cross-contamination", 2021): where each begins, and the
   * length at the end. Positions count from each sequence's beginning; mask and bias span the packed axes.
   */
  sequences?: {
    /** Of the queries: count + 1 offsets that rise from 0 to queryLength. */
    readonly query: List;
    /** Of the keys: as many, from 0 to keyLength. */
    readonly key: List;
  } | undefined;
  /**
   * true = may attend, as in PyTorch's attn_mask of booleans: `-Infinity` where false (Vaswani et al., 2017,
   * section 3.2.3). Broadcasts, aligned right, to (batch, heads, queryLength, keyLength): a rank-3 mask
   * of rank-4 attention is (heads, queryLength, keyLength); for one a batch give
   * (batch, 1, queryLength, keyLength). Default: all may.
   */
  mask?: MaskLike | undefined;
  /**
   * `capped + bias`, as relative positions are brought in (Raffel et al., "T5", 2020, section 2.1); broadcasts
   * as the mask does. -Infinity forbids. Prefer a mask to a very low number: a row of nothing but those is an
   * average over keys that were meant to be hidden. Default none.
   */
  bias?: TensorLike | undefined;
  /**
   * Attention with linear biases (Press et al., "Train Short, Test Long", 2022): adds
   * `-slope * |position - key's index|`. `true` takes the paper's slopes, as alibiSlopes() gives them; or
   * one slope a head, (numHeads). Default none.
   */
  alibi?: boolean | List | undefined;
  /**
   * `capped = softcap * tanh(scaled / softcap)`, so that no score is above it (Gemma Team, "Gemma 2", 2024,
   * section 2). Above 0. Default none.
   */
  softcap?: number | undefined;
  /**
   * One logit a head, (numHeads), that joins each row's sum, logSumExp included, and weighs no value:
   * `weights = exp(biased) / (sum of exp(biased) + exp(sink))` (Xiao et al., "Efficient Streaming Language
   * Models with Attention Sinks", 2024). -Infinity is none, and the default.
   */
  sinks?: List | undefined;
  /**
   * Sets weights to 0 with probability p and divides the others by 1 - p (Srivastava et al., "Dropout", 2014).
   * The seed, the key and the row, counted over batches, heads and queries, alone say which. Default none.
   */
  dropout?: {
    /** The share that becomes 0, 0 <= p < 1. */
    readonly p: number;
    /** A whole number >= 0: the same seed, the same weights, on every host. */
    readonly seed: number;
  } | undefined;
  /**
   * Weights as they are before dropout, `exp(biased - logSumExp)` (Vaswani et al., 2017, section 3.2.1). Default
   * none.
   * `'heads'`: of each head, (batch?, heads?, queryLength, keyLength).
   * `'mean'`: over the heads, (batch?, queryLength, keyLength). `{ heads, queries }`: of these heads and
   * queries only, (batch?, heads?, queries, keyLength), and no other row takes memory. Rows sum to 1 (less
   * the sink's share); a row that sees no key is 0; a weight below 2^-100 of its row's largest is 0.
   */
  weights?: 'heads' | 'mean' | WeightRows | undefined;
  /**
   * Scores as far as a stage, (batch?, heads?, queryLength, keyLength): `'raw'` scaled, `'capped'` after
   * softcap, `'biased'` after bias, ALiBi and all masks, -Infinity where hidden; as qk_matmul_output of ONNX's
   * Attention. Default none.
   */
  scores?: 'raw' | 'capped' | 'biased' | undefined;
  /**
   * Natural log of each row's sum of exponentials, the sink's included, (batch?, heads?, queryLength):
   * `log(sum of exp(biased) + exp(sink))` (Dao, "FlashAttention-2", 2023, section 3.1); -Infinity for a row
   * that sees no key. Default false.
   */
  logSumExp?: boolean | undefined;
}

export const SCORE_OPTIONS: readonly (keyof ScoreOptions)[] = [
  'scale', 'causal', 'window', 'queryOffset', 'keyLengths', 'sequences', 'mask', 'bias', 'alibi', 'softcap', 'sinks',
  'dropout', 'weights', 'scores', 'logSumExp',
];
