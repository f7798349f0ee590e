import { QkvError } from './errors.js';

/** Numbers to any depth, all rows of one level equally long. */
export type NestedNumbers = readonly (number | NestedNumbers)[];
/** Booleans to any depth, all rows of one level equally long. */
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
  | {
      /** Row-major elements; converted to float32 where they are not. */
      readonly data: NumericArray;
      /** The length of each axis; their product is the data's length. */
      readonly shape: readonly number[];
    };

/** Booleans with a shape: true (1) may attend, false (0) may not. */
export type MaskLike =
  | NestedBooleans
  | {
      /** Row-major flags, 0 or not. */
      readonly data: Uint8Array;
      /** The length of each axis; their product is the data's length. */
      readonly shape: readonly number[];
    };

/** The core counts in 32 bits. */
export const LONGEST_AXIS = 2 ** 31 - 1;
const MOST_AXES = 32;

type Nested<T> = readonly (T | Nested<T>)[];

/**
 * Row-major numbers with a shape. `data` is plain memory of yours: the library never keeps, moves or
 * writes to it. Axes may be of length 0.
 */
export class Tensor<Data extends Float32Array | Uint8Array = Float32Array<ArrayBuffer>> {
  /** The elements, row by row. */
  readonly data: Data;
  /** The length of each axis; their product is the data's length. */
  readonly shape: readonly number[];

  /**
   * Unchecked; tensor() checks and converts.
   *
   * @param data the elements, row by row; kept, not copied
   * @param shape the length of each axis
   */
  constructor(data: Data, shape: readonly number[]) {
    this.data = data;
    this.shape = shape;
  }

  /**
   * One element: `x.at(row, column)`.
   *
   * @param indices one for each axis, from 0
   * @throws QkvError INVALID_ARGUMENT: an index out of range, more or fewer of them than axes
   */
  at(...indices: number[]): number {
    return this.data[offsetOf(this.shape, indices)]!;
  }

  /** The numbers as nested arrays, one level for each axis. */
  toArray(): NestedNumbers {
    const level = (axis: number, offset: number, size: number): Nested<number> => {
      const length = this.shape[axis]!;
      if (axis === this.shape.length - 1) return Array.from(this.data.subarray(offset, offset + length));
      const step = size / (length || 1);
      return Array.from({ length }, (_, i) => level(axis + 1, offset + i * step, step));
    };
    return this.shape.length === 0 ? [this.data[0]!] : level(0, 0, this.data.length);
  }
}

/** A shape of a tensor's own. */
export const frozen = (shape: readonly number[]): readonly number[] => Object.freeze([...shape]);

/** Where an element is, counted in elements. @throws QkvError as at() does. */
export function offsetOf(shape: readonly number[], indices: readonly number[]): number {
  if (indices.length !== shape.length) {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `at: ${indices.length} indices came, expected ${shape.length}, one for each axis of ${showShape(shape)}.`,
    );
  }
  return shape.reduce((offset, length, axis) => {
    const index = indices[axis]!;
    if (Number.isInteger(index) && index >= 0 && index < length) return offset * length + index;
    throw new QkvError(
      'INVALID_ARGUMENT',
      `at: index ${describe(index)} came for axis ${axis}, expected a whole number from 0 below ${length}.`,
    );
  }, 0);
}

/** A message is a sentence, whatever came. */
export const shorten = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}...` : text);

/** "(2, 3)" */
export const showShape = (shape: readonly unknown[]): string => `(${shorten(shape.join(', '))})`;

export const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/**
 * A tensor from nested arrays, or from a typed array and its shape. Booleans and `Uint8Array` give a
 * mask (`Uint8Array` data); everything else gives float32, converted where it has to be.
 *
 * @param data numbers or booleans; float32 and bytes are kept, not copied
 * @param shape the length of each axis; default that of the nested arrays, or one axis
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
    const flat = flatten(data, 'data');
    return shape === undefined ? flat : new Tensor(flat.data, frozen(checkedShape(shape, flat.data.length, 'shape')));
  }
  if (!isNumericArray(data)) {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `tensor: data is ${describe(data)}, expected nested arrays of numbers or a typed array.`,
    );
  }
  const checked = checkedShape(shape === undefined ? [data.length] : shape, data.length, 'shape');
  return new Tensor(isBytes(data) ? data : toFloat32(data), frozen(checked));
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
      return shorten(`${value}n`);
    default:
      return typeof value === 'string' ? JSON.stringify(shorten(value)) : String(value);
  }
}

const { get: arrayTag } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!;

/**
 * What kind of typed array it is, 'Float32Array'; undefined of anything else. Those of another realm (a frame, a
 * context of Node's) are no `instanceof` ours.
 */
export const arrayKind = (value: unknown): string | undefined => arrayTag!.call(value);
export const isNumericArray = (value: unknown): value is NumericArray => arrayKind(value) !== undefined;
export const isFloat32 = (value: unknown): value is Float32Array => arrayKind(value) === 'Float32Array';
export const isBytes = (value: unknown): value is Uint8Array => arrayKind(value) === 'Uint8Array';

/** As the host calls it, whatever its realm: 'Function', 'Object', 'URL'. */
export const classOf = (value: unknown): string => Object.prototype.toString.call(value).slice('[object '.length, -1);

/** Whether the two have memory in common. */
export const overlap = (a: Float32Array, b: Float32Array): boolean =>
  a.buffer === b.buffer && a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;

/** Float32 data of a typed array: itself where it is that already, else a converted copy. */
export function toFloat32(data: NumericArray): Float32Array {
  if (isFloat32(data)) return data;
  return arrayKind(data)!.startsWith('Big') ? Float32Array.from(data as Iterable<bigint>, Number) : new Float32Array(data as Float64Array);
}

/** What elements a tensor has: float32 numbers, or a byte for each boolean. */
export type Kind = 'number' | 'boolean';

/** Memory for `count` numbers, or a byte for each boolean. @throws QkvError OUT_OF_MEMORY where the host has none. */
export function allocate(count: number, name: string): Float32Array<ArrayBuffer>;
export function allocate(count: number, name: string, kind: Kind): Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;
export function allocate(count: number, name: string, kind: Kind = 'number') {
  const Data = kind === 'number' ? Float32Array : Uint8Array;
  try {
    return new Data(count);
  } catch (cause) {
    throw new QkvError('OUT_OF_MEMORY', `${name} takes ${Data.BYTES_PER_ELEMENT * count} bytes, which this host does not give.`, { cause });
  }
}

/** `shape` as it came, once it is known to be one. `name` is the argument's. */
export function checkedAxes(shape: unknown, name: string): readonly number[] {
  const isAxis = (n: unknown) => Number.isInteger(n) && (n as number) >= 0 && (n as number) <= LONGEST_AXIS;
  let isShape = Array.isArray(shape);
  // By index, since every() passes over holes.
  for (let axis = 0; isShape && axis < (shape as unknown[]).length; axis++) isShape = isAxis((shape as unknown[])[axis]);
  if (isShape) return shape as readonly number[];
  throw new QkvError(
    'INVALID_ARGUMENT',
    `${name} is ${Array.isArray(shape) ? showShape([...shape].map(describe)) : describe(shape)}, expected whole numbers from 0 to ${LONGEST_AXIS}.`,
  );
}

/** `shape` as it came, once it is known to hold `length` elements. `name` is the argument's. */
export function checkedShape(shape: readonly number[], length: number, name: string): readonly number[] {
  checkedAxes(shape, name);
  if (sizeOf(shape) !== length) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `${name} ${showShape(shape)} holds ${sizeOf(shape)} elements, but the data has ${length}${length === 0 ? ' (was its buffer transferred away?)' : ''}.`,
    );
  }
  return shape;
}

/**
 * Float32 numbers, or a byte for each boolean: of the kind that is wanted, or else of the first element's.
 * The shape is read off the first elements of each level.
 */
export function flatten(
  nested: Nested<unknown>,
  name: string,
  wanted?: Kind,
): Tensor<Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>> {
  const shape: number[] = [];
  let first: unknown = nested;
  for (; Array.isArray(first); first = first[0]) {
    shape.push(first.length);
    if (shape.length > MOST_AXES) {
      throw new QkvError('INVALID_ARGUMENT', `${name} is nested more than ${MOST_AXES} levels deep, expected one for each axis.`);
    }
  }
  const kind = wanted ?? (typeof first === 'boolean' ? 'boolean' : 'number');
  const data = allocate(sizeOf(shape), name, kind);
  let count = 0;
  const visit = (level: unknown, axis: number): void => {
    if (axis === shape.length) {
      if (typeof level !== kind) {
        const came = typeof level === 'boolean' || typeof level === 'number' ? `${typeof level}s` : describe(level);
        throw new QkvError('INVALID_ARGUMENT', `${name} holds ${came}, expected ${kind}s.`);
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
  return new Tensor(data, frozen(shape));
}
