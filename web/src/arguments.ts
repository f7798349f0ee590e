/** Checks of arguments, each with a sentence that names the argument, what came and what was expected. */
import { QkvError } from './errors.js';
import { type Resident, ResidentTensor } from './resident.js';
import {
  arrayKind,
  checkedShape,
  classOf,
  describe,
  flatten,
  frozen,
  isBytes,
  isFloat32,
  isNumericArray,
  type Kind,
  type MaskLike,
  type NumericArray,
  showShape,
  Tensor,
  type TensorLike,
  toFloat32,
} from './tensor.js';

export interface Shaped {
  readonly shape: readonly number[];
}

export interface Argument<Data> extends Shaped {
  readonly data: Data;
  /** Where it lies in an engine's memory already; then `data` is a copy that is made when it is read. */
  readonly resident?: Resident;
}

export type Numbers = Argument<Float32Array>;

export const invalid = (message: string): never => {
  throw new QkvError('INVALID_ARGUMENT', message);
};

/** Nested arrays or an object with data and shape; the data is not copied where it is float32. */
function asArgument(value: unknown, name: string, kind?: Kind, expected = 'a tensor or nested arrays'): Argument<unknown> {
  if (Array.isArray(value)) return flatten(value, name, kind);
  if (value instanceof ResidentTensor) return ResidentTensor.argument(value, name, kind);
  if (typeof value !== 'object' || value === null || !('data' in value) || !('shape' in value)) {
    return invalid(`${name} is ${describe(value)}, expected ${expected}.`);
  }
  const { data, shape } = value as { data: unknown; shape: readonly number[] };
  if (!isNumericArray(data)) {
    return invalid(`${name}.data is ${describe(data)}, expected a typed array.`);
  }
  return { data, shape: checkedShape(shape, data.length, `${name}.shape`) };
}

/** Numbers, or booleans as bytes. */
export function anyTensor(value: TensorLike | MaskLike, name: string): Argument<Float32Array | Uint8Array> {
  const { data, shape } = asArgument(value, name);
  return { data: isBytes(data) ? data : toFloat32(data as Float32Array), shape };
}

/** Whether its elements are bytes, as those of masks are. */
export function holdsBytes(value: unknown): boolean {
  if (value instanceof ResidentTensor) return ResidentTensor.isMask(value);
  return arrayKind((value as { data?: unknown } | null)?.data)?.startsWith('Uint8') === true;
}

/** Numbers of one of the given ranks; without any, of rank 1 or more. */
export function numbers(value: TensorLike, name: string, ...ranks: number[]): Numbers {
  const given = asArgument(value, name, 'number');
  const { shape } = given;
  if (ranks.length === 0 ? shape.length === 0 : !ranks.includes(shape.length)) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `${name} has rank ${shape.length} with shape ${showShape(shape)}, expected rank ${ranks.join(' or ') || 'at least 1'}.`,
    );
  }
  return given.resident ? (given as Numbers) : { data: toFloat32(given.data as Float32Array), shape };
}

export function booleans(value: MaskLike, name: string): Argument<Uint8Array> {
  const given = asArgument(value, name, 'boolean');
  if (given.resident) return given as Argument<Uint8Array>;
  const { data, shape } = given;
  if (!isBytes(data)) {
    return invalid(
      `${name} holds numbers, expected booleans (or a Uint8Array), where true means "may attend".`,
    );
  }
  return { data, shape };
}

/** `null` in `expected` stands for any length. `meaning` says what the axes are. */
export function expectShape(
  { shape }: Shaped,
  name: string,
  expected: readonly (number | null)[],
  meaning: string,
): void {
  const fits =
    shape.length === expected.length && expected.every((n, axis) => n === null || n === shape[axis]);
  if (fits) return;
  const wanted = showShape(expected.map((n) => n ?? 'any') as number[]);
  throw new QkvError(
    'SHAPE_MISMATCH',
    `${name} has shape ${showShape(shape)}, expected ${wanted}: ${meaning}.`,
  );
}

/** An object of these names: a misspelt one would otherwise be ignored in silence. */
export function expectNames(value: object, name: string, known: readonly string[]): void {
  // Lists, maps, dates and promises have no names of their own, and would pass for {}.
  if (classOf(value) !== 'Object') {
    invalid(`${name} is ${describe(value)}, expected an object of ${known.join(', ')}.`);
  }
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) invalid(`${name} has no ${describe(key)}; it may have ${known.join(', ')}.`);
  }
}

export function expectOptions(
  operation: string,
  options: object,
  known: readonly string[],
  kind: 'options' | 'parameters' | 'state' | 'gradients' = 'options',
): void {
  expectNames(options, `${operation}: ${kind}`, known);
}

/** Finite as a float32 too, which is what the core computes with. */
export function finite(value: number, name: string, least = -Infinity): number {
  return typeof value === 'number' && Number.isFinite(Math.fround(value)) && value >= least
    ? value
    : invalid(`${name} is ${describe(value)}, expected a finite number${least === -Infinity ? '' : ` that is at least ${least}`} (as a float32).`);
}

export function flag(value: boolean | undefined, name: string): boolean {
  return typeof value === 'boolean' || value === undefined
    ? value === true
    : invalid(`${name} is ${describe(value)}, expected true or false.`);
}

export function oneOf<T extends string>(value: T, name: string, allowed: readonly T[]): T {
  return allowed.includes(value)
    ? value
    : invalid(`${name} is ${describe(value)}, expected ${allowed.map((x) => `'${x}'`).join(' or ')}.`);
}

/** From `least` to `most`, both included. */
export function wholeNumber(value: number, name: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  return Number.isInteger(value) && value >= least && value <= most
    ? value
    : invalid(`${name} is ${describe(value)}, expected a whole number from ${least} to ${most}.`);
}

/** Numbers in a row: an array, a typed array or a tensor of rank 1. */
export type List = readonly number[] | NumericArray | {
  /** The numbers. */
  readonly data: NumericArray;
  /** [count] */
  readonly shape: readonly number[];
};

/** An array or typed array as it came. */
function asRow(value: unknown, name: string): Argument<unknown> | undefined {
  if (!Array.isArray(value) && !isNumericArray(value)) return undefined;
  try {
    value.values();
  } catch {
    invalid(`${name} is a typed array whose buffer was transferred away, expected one that holds its entries.`);
  }
  return { data: value, shape: [value.length] };
}

function listed(value: List, name: string, count: number | undefined, meaning: string): ArrayLike<number> {
  const { data, shape } = asRow(value, name) ?? asArgument(value, name, 'number', `a list: ${meaning}`);
  if (shape.length !== 1 || (count !== undefined && shape[0] !== count)) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `${name} has shape ${showShape(shape)}, expected ${count === undefined ? 'a list' : `${count} entries`}: ${meaning}.`,
    );
  }
  return data as ArrayLike<number>;
}

/** `meaning` says what the entries are. */
export function wholeNumbers(value: List, name: string, least: number, most: number, meaning: string, count?: number): Int32Array {
  return Int32Array.from(listed(value, name, count, meaning), (entry, i) =>
    wholeNumber(typeof entry === 'bigint' ? Number(entry) : entry, `${name}[${i}]`, least, most));
}

export function doubles(value: List, name: string, count: number, meaning: string): Float64Array {
  const entries = listed(value, name, count, meaning);
  // Bigints of a typed array are numbers, as they are in a tensor's data.
  if (isNumericArray(entries)) return Float64Array.from(entries as ArrayLike<number>, Number);
  return Float64Array.from(entries, (entry, i) =>
    typeof entry === 'number' ? entry : invalid(`${name}[${i}] is ${describe(entry)}, expected a number.`));
}

/** Finite numbers, or `besides`. */
export function floats(value: List, name: string, count: number, meaning: string, besides?: number): Float32Array {
  return Float32Array.from(doubles(value, name, count, meaning), (entry, i) =>
    entry === besides ? entry : finite(entry, `${name}[${i}]`));
}

/** Whole numbers of any shape; a typed array is a row of them. */
export type IndicesLike = TensorLike | NumericArray;

/** Indices from `least`, below `limit`. */
export function indices(value: IndicesLike, name: string, limit: number, least = 0): Argument<Int32Array> {
  const { data, shape } = (Array.isArray(value) ? undefined : asRow(value, name)) ?? asArgument(value, name, 'number');
  // Nested numbers as they came: as float32 some would be whole that are not.
  const exact = (Array.isArray(value) ? value.flat(Infinity) : data) as ArrayLike<number | bigint>;
  const checked = Int32Array.from(exact, (entry, i) => {
    const index = Number(entry);
    return index >= least && index < limit && Number.isInteger(index) ? index : wholeNumber(index, nameAt(name, i, shape), least, limit - 1);
  });
  return { data: checked, shape };
}

/** "indices[1][0]" */
export function nameAt(name: string, element: number, shape: readonly number[]): string {
  const at: number[] = [];
  for (const length of [...shape].reverse()) {
    at.unshift(element % length);
    element = Math.floor(element / length);
  }
  return name + at.map((index) => `[${index}]`).join('');
}

/** Float32 memory of the caller's that is written to. */
export function inPlace(value: Destination, name: string): Numbers {
  const expected = 'a tensor with a Float32Array';
  if (value instanceof ResidentTensor) return invalid(`${name} is ${describe(value)}, expected ${expected}.`);
  const { data, shape } = asArgument(value, name, 'number', expected);
  if (Array.isArray(value) || !isFloat32(data)) {
    return invalid(`${name} holds ${Array.isArray(value) ? 'nested arrays' : describe(data)}, expected ${expected}.`);
  }
  return { data, shape };
}

/** Where the caller wants a result: float32 numbers of exactly its shape. */
export function destination(out: Destination | undefined, shape: readonly number[]): Tensor<Float32Array> | undefined {
  if (out === undefined) return undefined;
  const { data } = inPlace(out, 'out');
  expectShape(out, 'out', shape, "the result's shape");
  return out instanceof Tensor ? out : new Tensor(data, frozen(shape));
}

/** A tensor, or an object like one, to write a result to. */
export type Destination = {
  /** What is written to; may be a part of a larger buffer. */
  readonly data: Float32Array;
  /** The output's shape. */
  readonly shape: readonly number[];
};
