// Plain loops (attention and the recurrent cells have files of their own) run once in double precision and
// once rounded to float32 after every operation: the first is the truth, the second is how well a plain
// float program would do. Here are the two, seeded numbers, and the rule that compares.
export type Rounding = (x: number) => number;
export const toDouble: Rounding = (x) => x;
export const toFloat: Rounding = Math.fround;

type Numbers = ArrayLike<number>;

/** Seeded numbers in [-1, 1), the same on every machine (mulberry32). */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 31 - 1;
  };
}

export const randomFloats = (count: number, seed: number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length: count }, randomSource(seed));

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
  let magnitude = 0;
  for (let i = 0; i < exact.length; i++) if (Number.isFinite(exact[i])) magnitude = Math.max(magnitude, Math.abs(exact[i]!));
  return 2 * largestError(plain, exact) + 2 * 2 ** -23 * magnitude;
}
