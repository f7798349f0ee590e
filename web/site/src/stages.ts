// The five matrix stages of self-attention, as one call to the engine returns them.
import { sinusoidal, tensor, type Tensor } from 'qkv';
import type { RemoteEngine } from 'qkv/worker';
import { identity, seeded, squareWeights } from './random.js';
import type { Settings, StageName } from './url-state.js';
import type { Sentence } from './words.js';

/** A role has a colour in tokens.css and a letter. */
export const letters = { query: 'Q', key: 'K', value: 'V', weights: 'A', output: 'O' } as const;
export type Role = keyof typeof letters;

export interface Projections {
  readonly wq: Float32Array;
  readonly wk: Float32Array;
  readonly wv: Float32Array;
}

export interface Trace {
  readonly words: readonly string[];
  readonly dims: number;
  readonly causal: boolean;
  /** What went in, (words, dims). */
  readonly x: Float32Array;
  readonly projections: Projections;
  readonly query: Float32Array;
  readonly key: Float32Array;
  readonly value: Float32Array;
  readonly scores: Float32Array;
  readonly scaled: Float32Array;
  readonly weights: Float32Array;
  readonly output: Float32Array;
}

export type MatrixName = 'query' | 'key' | 'value' | 'scores' | 'scaled' | 'weights' | 'output';

export interface Stage {
  readonly name: StageName;
  readonly does: string;
  /** What the stage makes for all words at once. */
  readonly makes: readonly MatrixName[];
}

export const stages: readonly Stage[] = [
  { name: 'project', does: 'a query, a key and a value for each word', makes: ['query', 'key', 'value'] },
  { name: 'score', does: 'each query times each key', makes: ['scores'] },
  { name: 'scale', does: 'each score divided by √d', makes: ['scaled'] },
  { name: 'softmax', does: 'each row of scores becomes weights that sum to 1', makes: ['weights'] },
  { name: 'mix', does: 'the values, mixed by the weights', makes: ['output'] },
];

/** Whether a matrix is (words, words) or (words, dims). */
export const isSquare = (name: MatrixName): boolean => name === 'scores' || name === 'scaled' || name === 'weights';

export function makeProjections(kind: Settings['projection'], dims: number, seed: number): Projections {
  if (kind === 'identity') return { wq: identity(dims), wk: identity(dims), wv: identity(dims) };
  const next = seeded(seed);
  return { wq: squareWeights(dims, next), wk: squareWeights(dims, next), wv: squareWeights(dims, next) };
}

/** The sentence's vectors times a factor, with positions added where asked for. */
export function makeInput({ vectors, words, dims }: Sentence, times: number, positions: boolean): Float32Array {
  const added = positions ? sinusoidal(words.length, dims).data : undefined;
  return vectors.map((value, i) => times * value + (added?.[i] ?? 0));
}

export async function runStages(engine: RemoteEngine, words: readonly string[], x: Float32Array, projections: Projections, causal = false): Promise<Trace> {
  const dims = x.length / words.length;
  const square = (data: Float32Array): Tensor<Float32Array> => tensor(data, [dims, dims]);
  const { wq, wk, wv } = projections;
  const steps = await engine.explain(tensor(x, [words.length, dims]), { wq: square(wq), wk: square(wk), wv: square(wv), causal });
  const { query, key, value, scores, scaled, weights, output } = steps;
  return {
    words, dims, causal, x, projections,
    query: query.data, key: key.data, value: value.data,
    scores: scores.data, scaled: scaled.data, weights: weights.data, output: output.data,
  };
}
