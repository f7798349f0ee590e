// The operations as plain loops on double-precision numbers: what the engine's results are compared with.

/** (rows, inner) times (inner, columns). */
export function product(a: ArrayLike<number>, b: ArrayLike<number>, rows: number, inner: number, columns: number): Float64Array {
  const result = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < inner; k++) {
      const left = a[i * inner + k]!;
      for (let j = 0; j < columns; j++) result[i * columns + j]! += left * b[k * columns + j]!;
    }
  }
  return result;
}

/** Softmax of one row's first `visible` scores; the rest get 0. */
export function softmax(scores: ArrayLike<number>, visible = scores.length): Float64Array {
  const weights = new Float64Array(scores.length);
  let largest = -Infinity;
  for (let j = 0; j < visible; j++) largest = Math.max(largest, scores[j]!);
  let sum = 0;
  for (let j = 0; j < visible; j++) sum += weights[j] = Math.exp(scores[j]! - largest);
  return weights.map((weight) => weight / sum);
}

/** Self-attention of `x` (length, dims) with itself, for the queries from `first` up to `end`. */
export function attention(x: ArrayLike<number>, length: number, dims: number, first = 0, end = length): Float64Array {
  const output = new Float64Array((end - first) * dims);
  const scores = new Float64Array(length);
  for (let i = first; i < end; i++) {
    for (let j = 0; j < length; j++) {
      let sum = 0;
      for (let c = 0; c < dims; c++) sum += x[i * dims + c]! * x[j * dims + c]!;
      scores[j] = sum / Math.sqrt(dims);
    }
    output.set(product(softmax(scores), x, 1, length, dims), (i - first) * dims);
  }
  return output;
}

/** All states of the tanh RNN: h(t) = tanh(x(t) wx + h(t-1) wh), from a state of zeros. */
export function rnn(x: ArrayLike<number>, wx: ArrayLike<number>, wh: ArrayLike<number>, length: number, dims: number): Float64Array {
  const states = product(x, wx, length, dims, dims);
  for (let t = 0; t < length; t++) {
    const state = states.subarray(t * dims, (t + 1) * dims);
    if (t > 0) {
      const carried = product(states.subarray((t - 1) * dims, t * dims), wh, 1, dims, dims);
      carried.forEach((value, c) => { state[c]! += value; });
    }
    state.forEach((value, c) => { state[c] = Math.tanh(value); });
  }
  return states;
}

export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let largest = 0;
  for (let i = 0; i < a.length; i++) largest = Math.max(largest, Math.abs(a[i]! - b[i]!));
  return largest;
}
