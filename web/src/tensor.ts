import { QkvError } from './errors.js';

/** Numbers to any depth, all rows of one level equally long. */
export type NestedNumbers = readonly (number | NestedNumbers)[];
export type NestedBooleans = readonly (boolean | NestedBooleans)[];

/** Typed arrays of any kind, over plain or shared memory, whole or subarrays. */
export type NumericArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** Numbers with a shape, as arguments: a {@link Tensor}, an object like one, or nested arrays. */
export type TensorLike =
  | NestedNumbers
  | { readonly data: NumericArray; readonly shape: readonly number[] };

/** Booleans with a shape: true (1) may attend, false (0) may not. */
export type MaskLike =
  | NestedBooleans
  | { readonly data: Uint8Array; readonly shape: readonly number[] };

/** The core counts in 32 bits. */
const LONGEST_AXIS = 2 ** 31 - 1;

type Nested<T> = readonly (T | Nested<T>)[];

/**
 * Row-major numbers with a shape. `data` is plain memory of yours: the library never keeps, moves or
 * writes to it. Axes may be of length 0.
 */
export class Tensor<Data extends Float32Array | Uint8Array = Float32Array<ArrayBuffer>> {
  readonly data: Data;
  readonly shape: readonly number[];

  constructor(data: Data, shape: readonly number[]) {
    this.data = data;
    this.shape = shape;
  }

  /** One element: `x.at(row, column)`. Throws where an index is out of range. */
  at(...indices: number[]): number {
    if (indices.length !== this.shape.length) {
      throw new QkvError(
        'INVALID_ARGUMENT',
        `at: ${indices.length} indices came, expected ${this.shape.length}, one for each axis of ${showShape(this.shape)}.`,
      );
    }
    let offset = 0;
    this.shape.forEach((length, axis) => {
      const index = indices[axis]!;
      if (!Number.isInteger(index) || index < 0 || index >= length) {
        throw new QkvError(
          'INVALID_ARGUMENT',
          `at: index ${index} came for axis ${axis}, expected a whole number from 0 below ${length}.`,
        );
      }
      offset = offset * length + index;
    });
    return this.data[offset]!;
  }

  /** The numbers as nested arrays, one level for each axis. */
  toArray(): Nested<number> {
    const level = (axis: number, offset: number, size: number): Nested<number> => {
      const length = this.shape[axis]!;
      if (axis === this.shape.length - 1) return Array.from(this.data.subarray(offset, offset + length));
      const step = size / (length || 1);
      return Array.from({ length }, (_, i) => level(axis + 1, offset + i * step, step));
    };
    return this.shape.length === 0 ? [this.data[0]!] : level(0, 0, this.data.length);
  }
}

/** "(2, 3)" */
export const showShape = (shape: readonly number[]): string => `(${shape.join(', ')})`;

export const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/**
 * A tensor from nested arrays, or from a typed array and its shape. Booleans and `Uint8Array` give a
 * mask (`Uint8Array` data); everything else gives float32, converted where it has to be.
 *
 * @throws QkvError SHAPE_MISMATCH: ragged rows, or a shape that does not hold the data;
 *   INVALID_ARGUMENT: anything that is no number.
 */
export function tensor(data: NestedNumbers, shape?: readonly number[]): Tensor;
export function tensor(data: NestedBooleans, shape?: readonly number[]): Tensor<Uint8Array<ArrayBuffer>>;
export function tensor<Buffer extends ArrayBufferLike>(
  data: Uint8Array<Buffer>,
  shape?: readonly number[],
): Tensor<Uint8Array<Buffer>>;
export function tensor<Buffer extends ArrayBufferLike>(
  data: Float32Array<Buffer>,
  shape?: readonly number[],
): Tensor<Float32Array<Buffer>>;
export function tensor(data: NumericArray, shape?: readonly number[]): Tensor;
export function tensor(
  data: NestedNumbers | NestedBooleans | NumericArray,
  shape?: readonly number[],
): Tensor<Float32Array | Uint8Array> {
  if (Array.isArray(data)) {
    const nested = data as Nested<number | boolean>;
    const flat = flatten(nested, shapeOf(nested, 'data'), 'data');
    return shape === undefined ? flat : new Tensor(flat.data, checkedShape(shape, flat.data.length, 'shape'));
  }
  if (!isNumericArray(data)) {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `tensor: data is ${describe(data)}, expected nested arrays of numbers or a typed array.`,
    );
  }
  const checked = checkedShape(shape ?? [data.length], data.length, 'shape');
  return new Tensor(data instanceof Uint8Array ? data : toFloat32(data), checked);
}

/** What a wrong argument is called in a message. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'an array' : `an object of class ${value.constructor?.name ?? 'none'}`;
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    case 'bigint':
      return `${value}n`;
    default:
      return typeof value === 'string' ? JSON.stringify(value) : String(value);
  }
}

export function isNumericArray(value: unknown): value is NumericArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/** Float32 data of a typed array: itself where it is that already, else a converted copy. */
export function toFloat32(data: NumericArray): Float32Array {
  if (data instanceof Float32Array) return data;
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    return Float32Array.from(data as Iterable<bigint>, Number);
  }
  return new Float32Array(data);
}

/** Memory for a result. @throws QkvError OUT_OF_MEMORY where the host has none. */
export function allocate(floats: number, operation: string): Float32Array<ArrayBuffer> {
  try {
    return new Float32Array(floats);
  } catch (cause) {
    throw new QkvError('OUT_OF_MEMORY', `${operation} has a result of ${4 * floats} bytes, which this host does not give.`, { cause });
  }
}

/** A copy of `shape` that is known to hold `length` elements. `name` is the argument's. */
export function checkedShape(shape: readonly number[], length: number, name: string): readonly number[] {
  if (!Array.isArray(shape) || !shape.every((n) => Number.isInteger(n) && n >= 0 && n <= LONGEST_AXIS)) {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `${name} is ${Array.isArray(shape) ? showShape(shape) : describe(shape)}, expected whole numbers from 0 to ${LONGEST_AXIS}.`,
    );
  }
  if (sizeOf(shape) !== length) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `${name} ${showShape(shape)} holds ${sizeOf(shape)} elements, but the data has ${length}${length === 0 ? ' (was its buffer transferred away?)' : ''}.`,
    );
  }
  return Object.freeze([...shape]);
}

/** The shape of nested arrays, read off their first elements. */
export function shapeOf(nested: Nested<unknown>, name: string): number[] {
  const shape: number[] = [];
  for (let level: unknown = nested; Array.isArray(level); level = level[0]) {
    shape.push(level.length);
    if (shape.length > 32) throw new QkvError('INVALID_ARGUMENT', `${name} is nested too deeply.`);
  }
  return shape;
}

/** Float32 numbers, or bytes where the elements are booleans. */
export function flatten(
  nested: Nested<number | boolean>,
  shape: readonly number[],
  name: string,
): Tensor<Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>> {
  let first: unknown = nested;
  while (Array.isArray(first)) first = first[0];
  const kind = typeof first === 'boolean' ? 'boolean' : 'number';
  const data = kind === 'boolean' ? new Uint8Array(sizeOf(shape)) : new Float32Array(sizeOf(shape));
  let count = 0;
  const visit = (level: unknown, axis: number): void => {
    if (axis === shape.length) {
      if (typeof level !== kind) {
        throw new QkvError('INVALID_ARGUMENT', `${name} holds ${describe(level)}, expected only ${kind}s.`);
      }
      data[count++] = Number(level);
      return;
    }
    if (!Array.isArray(level) || level.length !== shape[axis]) {
      const came = Array.isArray(level) ? `a row of ${level.length}` : describe(level);
      throw new QkvError(
        'SHAPE_MISMATCH',
        `${name} is ragged: ${came} where rows of ${shape[axis]} were expected at depth ${axis}.`,
      );
    }
    for (const element of level) visit(element, axis + 1);
  };
  visit(nested, 0);
  return new Tensor(data, Object.freeze([...shape]));
}
