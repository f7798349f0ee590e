// The 16-bit floats: IEEE binary16 and bfloat16. Reading one is exact; writing rounds once, to nearest even.
const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

export function float16ToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

export function bfloat16ToNumber(bits: number): number {
  word[0] = bits << 16;
  return float[0]!;
}

/** The nearest number with so many fraction bits; below 2^minExponent they are spaced evenly. */
function round(x: number, fractionBits: number, minExponent: number, largest: number): number {
  float[0] = x;
  if (!Number.isFinite(x) || x === 0) return x;
  const exponent = Math.max(((word[0]! >>> 23) & 255) - 127, minExponent);
  // A double has 52 fraction bits: next to this number its spacing is that of the narrow type.
  const big = 1.5 * 2 ** (exponent - fractionBits + 52);
  const rounded = x + big - big;
  return Math.abs(rounded) > largest ? Math.sign(x) * Infinity : rounded;
}

/** `x` is a float32. */
export const roundToFloat16 = (x: number): number => round(x, 10, -14, 65504);

/** `x` is a float32. */
export const roundToBfloat16 = (x: number): number => round(x, 7, -126, (2 - 2 ** -7) * 2 ** 127);
