// Rotary positions as plain loops, in double precision or rounded to float32 after every operation.
import type { RotaryOptions } from 'qkv';

import type { Rounding } from './reference.js';

/** Of the angle of a row and a pair. */
export type AngleOf = (row: number, pair: number) => { cos: number; sin: number };

/** Pair i of each row turned by the angles that its position gives. */
export function turned(
  { data, shape }: { readonly data: ArrayLike<number>; readonly shape: readonly number[] },
  pairing: RotaryOptions['pairing'],
  dims: number,
  angleOf: AngleOf,
  round: Rounding,
): Float64Array<ArrayBuffer> {
  const [length, dim] = shape.slice(-2) as [number, number];
  const out = Float64Array.from(data);
  for (let row = 0; row < data.length / dim; row++) {
    for (let i = 0; i < dims / 2; i++) {
      const [a, b] = pairing === 'halves' ? [i, dims / 2 + i] : [2 * i, 2 * i + 1];
      const [p, q] = [data[row * dim + a]!, data[row * dim + b]!];
      const angle = angleOf(row % length, i);
      const [cos, sin] = [round(angle.cos), round(angle.sin)];
      out[row * dim + a] = round(round(p * cos) - round(q * sin));
      out[row * dim + b] = round(round(p * sin) + round(q * cos));
    }
  }
  return out;
}

export const angles = (positions: readonly number[], dims: number, base = 10000): AngleOf => (row, pair) => {
  const angle = positions[row]! * base ** ((-2 * pair) / dims);
  return { cos: Math.cos(angle), sin: Math.sin(angle) };
};
