// The plain loops of attention and RNN, once in double precision and once rounded to float32 after
// every operation: the first is the truth, the second is how well a plain float program would do.
export type Rounding = (x: number) => number;
export const toDouble: Rounding = (x) => x;
export const toFloat: Rounding = Math.fround;

export interface AttentionSizes {
  heads: number;
  kvHeads: number;
  queryLen: number;
  keyLen: number;
  dim: number;
  valueDim: number;
}

type Numbers = ArrayLike<number>;

export function attention(
  query: Numbers,
  key: Numbers,
  value: Numbers,
  sizes: AttentionSizes,
  round: Rounding,
  visible: (head: number, query: number, key: number) => boolean = () => true,
  scale = 1 / Math.sqrt(sizes.dim),
) {
  const { heads, kvHeads, queryLen, keyLen, dim, valueDim } = sizes;
  const output = new Float64Array(heads * queryLen * valueDim);
  const weights = new Float64Array(heads * queryLen * keyLen);
  const logSumExp = new Float64Array(heads * queryLen);
  for (let row = 0; row < heads * queryLen; row++) {
    const head = Math.floor(row / queryLen);
    const kvHead = Math.floor(head / (heads / kvHeads));
    const w = weights.subarray(row * keyLen, (row + 1) * keyLen);
    for (let j = 0; j < keyLen; j++) {
      let score = 0;
      for (let d = 0; d < dim; d++) {
        score = round(score + round(query[row * dim + d]! * key[(kvHead * keyLen + j) * dim + d]!));
      }
      w[j] = visible(head, row % queryLen, j) ? round(score * round(scale)) : -Infinity;
    }
    const largest = w.reduce((a, b) => Math.max(a, b), -Infinity);
    let sum = 0;
    for (let j = 0; j < keyLen; j++) {
      w[j] = w[j] === -Infinity ? 0 : round(Math.exp(round(w[j]! - largest)));
      sum = round(sum + w[j]!);
    }
    logSumExp[row] = sum === 0 ? -Infinity : round(largest + round(Math.log(sum)));
    for (let j = 0; j < keyLen; j++) {
      if (w[j] === 0) continue;
      w[j] = round(w[j]! / sum);
      for (let d = 0; d < valueDim; d++) {
        const at = row * valueDim + d;
        output[at] = round(output[at]! + round(w[j]! * value[(kvHead * keyLen + j) * valueDim + d]!));
      }
    }
  }
  return { output, weights, logSumExp };
}

/** x: (length, inputDim) -> (length, hidden) */
export function rnn(x: Numbers, wx: Numbers, wh: Numbers, bias: Numbers, hidden: number, round: Rounding) {
  const inputDim = wx.length / hidden;
  const length = x.length / inputDim;
  const outputs = new Float64Array(length * hidden);
  for (let t = 0; t < length; t++) {
    for (let j = 0; j < hidden; j++) {
      let sum = bias[j]!;
      for (let k = 0; k < inputDim; k++) sum = round(sum + round(x[t * inputDim + k]! * wx[k * hidden + j]!));
      for (let k = 0; t > 0 && k < hidden; k++) {
        sum = round(sum + round(outputs[(t - 1) * hidden + k]! * wh[k * hidden + j]!));
      }
      outputs[t * hidden + j] = round(Math.tanh(sum));
    }
  }
  return outputs;
}

/** Seeded numbers in [-1, 1), the same on every machine (mulberry32). */
export function randomFloats(count: number, seed: number): Float32Array<ArrayBuffer> {
  let state = seed >>> 0;
  return Float32Array.from({ length: count }, () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 31 - 1;
  });
}

/** Infinite where one is finite and the other is not. */
export function largestError(result: Numbers, exact: Numbers): number {
  if (result.length !== exact.length) return Infinity;
  let largest = 0;
  for (let i = 0; i < exact.length; i++) {
    if (Object.is(result[i], exact[i])) continue;
    const error = Math.abs(result[i]! - exact[i]!);
    largest = Number.isFinite(error) ? Math.max(largest, error) : Infinity;
  }
  return largest;
}

/**
 * Twice the plain float program's largest error, plus two units in the last place of the largest
 * value, because where there is next to nothing to add up the plain program may be right by luck.
 */
export function allowedError(plain: Numbers, exact: Numbers): number {
  const magnitude = Array.from(exact).reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0);
  return 2 * largestError(plain, exact) + 2 * 2 ** -23 * magnitude;
}
