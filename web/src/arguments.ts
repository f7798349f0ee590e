/** Checks of arguments, each with a sentence that names the argument, what came and what was expected. */
import { QkvError } from './errors.js';
import {
  checkedShape,
  describe,
  flatten,
  isNumericArray,
  type MaskLike,
  shapeOf,
  showShape,
  sizeOf,
  type TensorLike,
  toFloat32,
} from './tensor.js';

export interface Argument<Data> {
  readonly data: Data;
  readonly shape: readonly number[];
}

export type Numbers = Argument<Float32Array>;

const invalid = (message: string): never => {
  throw new QkvError('INVALID_ARGUMENT', message);
};

/** Nested arrays or an object with data and shape; the data is not copied where it is float32. */
function asArgument(value: unknown, name: string): Argument<unknown> {
  if (Array.isArray(value)) return flatten(value, shapeOf(value, name), name);
  if (typeof value !== 'object' || value === null || !('data' in value) || !('shape' in value)) {
    return invalid(`${name} is ${describe(value)}, expected a tensor or nested arrays.`);
  }
  const { data, shape } = value as { data: unknown; shape: readonly number[] };
  if (!isNumericArray(data)) {
    return invalid(`${name}.data is ${describe(data)}, expected a typed array.`);
  }
  return { data, shape: checkedShape(shape, data.length, `${name}.shape`) };
}

/** Numbers of one of the given ranks. */
export function numbers(value: TensorLike, name: string, ...ranks: number[]): Numbers {
  const { data, shape } = asArgument(value, name);
  if (Array.isArray(value) && data instanceof Uint8Array) {
    return invalid(`${name} holds booleans, expected numbers.`);
  }
  if (!ranks.includes(shape.length)) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `${name} has rank ${shape.length} with shape ${showShape(shape)}, expected rank ${ranks.join(' or ')}.`,
    );
  }
  return { data: toFloat32(data as Float32Array), shape };
}

export function booleans(value: MaskLike, name: string): Argument<Uint8Array> {
  const { data, shape } = asArgument(value, name);
  // Nested arrays without an element say nothing of their kind.
  if (Array.isArray(value) && sizeOf(shape) === 0) return { data: new Uint8Array(0), shape };
  if (!(data instanceof Uint8Array)) {
    return invalid(
      `${name} holds numbers, expected booleans (or a Uint8Array), where true means "may attend".`,
    );
  }
  return { data, shape };
}

/** `null` in `expected` stands for any length. `meaning` says what the axes are. */
export function expectShape(
  argument: Argument<unknown>,
  name: string,
  expected: readonly (number | null)[],
  meaning: string,
): void {
  const { shape } = argument;
  const fits =
    shape.length === expected.length && expected.every((n, axis) => n === null || n === shape[axis]);
  if (fits) return;
  const wanted = showShape(expected.map((n) => n ?? 'any') as number[]);
  throw new QkvError(
    'SHAPE_MISMATCH',
    `${name} has shape ${showShape(shape)}, expected ${wanted}: ${meaning}.`,
  );
}

/** A misspelt option would otherwise be ignored in silence. */
export function expectOptions(
  operation: string,
  options: object,
  known: readonly string[],
  kind: 'options' | 'parameters' | 'state' = 'options',
): void {
  if (typeof options !== 'object' || options === null) {
    invalid(`${operation}: ${kind} is ${describe(options)}, expected an object of ${known.join(', ')}.`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      invalid(`${operation}: ${kind} has no "${name}"; it may have ${known.join(', ')}.`);
    }
  }
}

/** Finite as a float32 too, which is what the core computes with. */
export function finite(value: number, name: string): number {
  return typeof value === 'number' && Number.isFinite(Math.fround(value))
    ? value
    : invalid(`${name} is ${describe(value)}, expected a finite number.`);
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
