// One cell of one stage written out: its factors, its sum in double precision, and the engine's number beside it.
import { largestDifference, product, softmax } from './reference.js';
import type { MatrixName, Trace } from './stages.js';

export interface Term {
  /** Which column, dimension or word the term belongs to. */
  readonly name: string;
  readonly left: number;
  readonly right: number;
  readonly value: number;
}

export interface Arithmetic {
  /** A sum of products, one division, or an exponential over the sum of its row's. */
  readonly kind: 'sum' | 'quotient' | 'softmax';
  readonly terms: readonly Term[];
  readonly result: number;
  readonly engine: number;
}

export function cellArithmetic(trace: Trace, matrix: MatrixName, row: number, column: number): Arithmetic {
  const { words, dims } = trace;
  const n = words.length;
  const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i + 1));
  const finish = (kind: Arithmetic['kind'], terms: Term[], result: number): Arithmetic =>
    ({ kind, terms, result, engine: trace[matrix][row * (matrix in squares ? n : dims) + column]! });
  const dot = (names: readonly string[], left: (k: number) => number, right: (k: number) => number): Arithmetic => {
    const terms = names.map((name, k) => ({ name, left: left(k), right: right(k), value: left(k) * right(k) }));
    return finish('sum', terms, terms.reduce((sum, { value }) => sum + value, 0));
  };
  switch (matrix) {
    case 'query':
    case 'key':
    case 'value': {
      const weight = trace.projections[({ query: 'wq', key: 'wk', value: 'wv' } as const)[matrix]];
      return dot(numbers(dims), (k) => trace.x[row * dims + k]!, (k) => weight[k * dims + column]!);
    }
    case 'scores':
      return dot(numbers(dims), (k) => trace.query[row * dims + k]!, (k) => trace.key[column * dims + k]!);
    case 'scaled': {
      const left = trace.scores[row * n + column]!;
      const right = Math.sqrt(dims);
      return finish('quotient', [{ name: '', left, right, value: left / right }], left / right);
    }
    case 'weights':
      return softmaxArithmetic(trace, row, column, finish);
    case 'output':
      return dot(words, (k) => trace.weights[row * n + k]!, (k) => trace.value[k * dims + column]!);
  }
}

const squares = { scores: true, scaled: true, weights: true };

function softmaxArithmetic({ words, causal, scaled }: Trace, row: number, column: number,
  finish: (kind: 'softmax', terms: Term[], result: number) => Arithmetic): Arithmetic {
  const n = words.length;
  const visible = causal ? row + 1 : n;
  const scores = scaled.subarray(row * n, row * n + visible);
  const largest = Math.max(...scores);
  const terms = words.slice(0, visible).map((name, k) => {
    const left = scores[k]!;
    return { name, left, right: largest, value: Math.exp(left - largest) };
  });
  const sum = terms.reduce((total, { value }) => total + value, 0);
  return finish('softmax', terms, column < visible ? terms[column]!.value / sum : 0);
}

/**
 * The largest difference over every cell of every stage, as a part of the largest number in its matrix. Each stage is
 * computed in double precision from what the engine made of the stage before.
 */
export function largestStageDifference(trace: Trace): number {
  const { x, projections: { wq, wk, wv }, dims, causal, words: { length: n } } = trace;
  const keyColumns = Float64Array.from({ length: n * dims }, (_, i) => trace.key[(i % n) * dims + Math.floor(i / n)]!);
  const weights = Array.from({ length: n }, (_, i) => [...softmax(trace.scaled.subarray(i * n, (i + 1) * n), causal ? i + 1 : n)]);
  const expected: Record<MatrixName, ArrayLike<number>> = {
    query: product(x, wq, n, dims, dims),
    key: product(x, wk, n, dims, dims),
    value: product(x, wv, n, dims, dims),
    scores: product(trace.query, keyColumns, n, dims, n),
    scaled: Float64Array.from(trace.scores, (score) => score / Math.sqrt(dims)),
    weights: weights.flat(),
    output: product(trace.weights, trace.value, n, n, dims),
  };
  const parts = (Object.keys(expected) as MatrixName[]).map((name) =>
    largestDifference(expected[name], trace[name]) / (largestDifference(trace[name], new Float32Array(trace[name].length)) || 1));
  return Math.max(...parts);
}

/** Entropy of a row of weights in nats: 0 when all weight is on one word, ln n when it is spread evenly. */
export const entropy = (weights: Float32Array): number =>
  weights.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log(weight) : sum), 0);
