// Tensors of the suites as the adapter holds them: every float as a float32, every integer as an int32.
import { bfloat16ToNumber, float16ToNumber, roundToBfloat16, roundToFloat16 } from '../half.js';

export interface Floats {
  readonly data: Float32Array;
  readonly shape: readonly number[];
}

export interface Booleans {
  readonly data: Uint8Array;
  readonly shape: readonly number[];
}

export interface Value {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Float32Array | Int32Array | Uint8Array;
}

/** How a case's file describes a tensor; offset and bytes are those in the data file. */
export interface Description {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly bytes: number;
}

export const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

const READERS: Record<string, { bytes: number; read(buffer: ArrayBuffer): Value['data'] }> = {
  float32: { bytes: 4, read: (buffer) => new Float32Array(buffer) },
  float64: { bytes: 8, read: (buffer) => Float32Array.from(new Float64Array(buffer)) },
  float16: { bytes: 2, read: (buffer) => Float32Array.from(new Uint16Array(buffer), float16ToNumber) },
  bfloat16: { bytes: 2, read: (buffer) => Float32Array.from(new Uint16Array(buffer), bfloat16ToNumber) },
  int64: { bytes: 8, read: (buffer) => Int32Array.from(Array.from(new BigInt64Array(buffer), narrow)) },
  int32: { bytes: 4, read: (buffer) => new Int32Array(buffer) },
  bool: { bytes: 1, read: (buffer) => new Uint8Array(buffer) },
};

function narrow(x: bigint): number {
  if (BigInt.asIntN(32, x) !== x) throw new Error(`the integer ${x} does not fit in 32 bits, which the adapter counts in`);
  return Number(x);
}

export function readValue({ name, dtype, shape, offset, bytes }: Description, file: Uint8Array): Value {
  const reader = READERS[dtype];
  if (!reader) throw new Error(`${name} is of type ${dtype}, expected one of ${Object.keys(READERS).join(', ')}`);
  if (bytes !== sizeOf(shape) * reader.bytes || offset + bytes > file.length) {
    throw new Error(`${name} has ${bytes} bytes at ${offset} of ${file.length}, expected ${sizeOf(shape)} elements of ${reader.bytes} bytes`);
  }
  // A copy, so that no element straddles the alignment of a typed array.
  const data = reader.read(new Uint8Array(file.subarray(offset, offset + bytes)).buffer);
  return { name, dtype, shape, data };
}

export const isHalf = (dtype: string): boolean => dtype === 'float16' || dtype === 'bfloat16';

/** A result as the type that an operator would return it in. */
export function roundTo(dtype: string, data: Float32Array): Float32Array {
  if (dtype === 'float16') return data.map(roundToFloat16);
  return dtype === 'bfloat16' ? data.map(roundToBfloat16) : data;
}

export function floatsOf({ name, dtype, shape, data }: Value): Floats {
  if (!(data instanceof Float32Array)) throw new Error(`${name} is of type ${dtype}, expected floats`);
  return { data, shape };
}

export function integersOf({ name, dtype, data }: Value): number[] {
  if (!(data instanceof Int32Array)) throw new Error(`${name} is of type ${dtype}, expected integers`);
  return Array.from(data);
}
