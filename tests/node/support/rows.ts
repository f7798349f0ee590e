// The building blocks as plain loops, in double precision or rounded to float32 after every operation.
import type { Rounding } from './reference.js';

/** The row function applied to each row of `columns` numbers. */
export function byRows(x: Float32Array | Float64Array, columns: number, row: (values: Float64Array) => ArrayLike<number>): Float64Array {
  const out = new Float64Array(x.length);
  for (let at = 0; at < x.length; at += columns) out.set(row(Float64Array.from(x.subarray(at, at + columns))), at);
  return out;
}

const sum = (values: Float64Array, round: Rounding, term: (value: number) => number) =>
  values.reduce((total, value) => round(total + round(term(value))), 0);

export function softmaxRow(values: Float64Array, round: Rounding): Float64Array {
  const largest = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = values.map((value) => round(Math.exp(round(value - largest))));
  const total = sum(powers, round, (power) => power);
  return powers.map((power) => round(power / total));
}

type Columns = ArrayLike<number> | undefined;

export function layerNormRow(values: Float64Array, round: Rounding, eps: number, gamma: Columns, beta: Columns): Float64Array {
  const mean = round(sum(values, round, (value) => value) / values.length);
  const variance = round(sum(values, round, (value) => (value - mean) ** 2) / values.length);
  const root = round(Math.sqrt(round(variance + eps)));
  return values.map((value, j) => round(round(round(round(value - mean) / root) * (gamma?.[j] ?? 1)) + (beta?.[j] ?? 0)));
}

export function rmsNormRow(values: Float64Array, round: Rounding, eps: number, gamma: Columns): Float64Array {
  const root = round(Math.sqrt(round(round(sum(values, round, (value) => value ** 2) / values.length) + eps)));
  return values.map((value, j) => round(round(value / root) * (gamma?.[j] ?? 1)));
}

/** The share of the normal distribution below x: its series near 0, its continued fraction in the tails. */
function normalDistribution(x: number): number {
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  if (Math.abs(x) < 3) {
    let term = x;
    let series = 0;
    for (let n = 1; Math.abs(term) > 1e-20; n += 2) {
      series += term;
      term *= (x * x) / (n + 2);
    }
    return 0.5 + density * series;
  }
  let fraction = Math.abs(x);
  for (let n = 200; n > 0; n--) fraction = Math.abs(x) + n / fraction;
  return x < 0 ? density / fraction : 1 - density / fraction;
}

export const gelu = (x: number) => x * normalDistribution(x);
export const geluTanh = (x: number) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
export const silu = (x: number) => x / (1 + Math.exp(-x));
