// Seeded numbers: the same seed gives the same matrices on every machine.

/** Numbers in [0, 1) from a 32-bit state (the "mulberry32" generator). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Uniform numbers with mean 0 and the given standard deviation. */
export function uniform(length: number, deviation: number, next: () => number): Float32Array {
  const limit = deviation * Math.sqrt(3);
  return Float32Array.from({ length }, () => (2 * next() - 1) * limit);
}

/** Weights (dims, dims) that keep the size of a vector: entries of variance 1 / dims. */
export const squareWeights = (dims: number, next: () => number): Float32Array => uniform(dims * dims, 1 / Math.sqrt(dims), next);

export function identity(dims: number): Float32Array {
  const matrix = new Float32Array(dims * dims);
  for (let i = 0; i < dims; i++) matrix[i * dims + i] = 1;
  return matrix;
}
