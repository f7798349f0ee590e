// The tanh RNN as a plain JavaScript loop on float32 arrays: the third bar of the timing view. Written with the same care
// as one would for use (no allocation per step, rows read in order), but without SIMD: the price of leaving WebAssembly out.
export function plainRnn(x: Float32Array, wx: Float32Array, wh: Float32Array, length: number, dims: number): Float32Array {
  const states = new Float32Array(length * dims);
  const sums = new Float64Array(dims);
  for (let t = 0; t < length; t++) {
    const now = t * dims;
    sums.fill(0);
    addProduct(sums, x, now, wx, dims);
    if (t > 0) addProduct(sums, states, now - dims, wh, dims);
    for (let c = 0; c < dims; c++) states[now + c] = Math.tanh(sums[c]!);
  }
  return states;
}

function addProduct(sums: Float64Array, vector: Float32Array, start: number, weights: Float32Array, dims: number): void {
  for (let k = 0; k < dims; k++) {
    const factor = vector[start + k]!;
    const row = k * dims;
    for (let c = 0; c < dims; c++) sums[c]! += factor * weights[row + c]!;
  }
}
