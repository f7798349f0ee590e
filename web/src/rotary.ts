import { doubles, expectOptions, expectShape, finite, invalid, type List, type Numbers, numbers, oneOf, wholeNumber, wholeNumbers } from './arguments.js';
import { QkvError } from './errors.js';
import type { XGradient } from './layers.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { Calls } from './module.js';
import { describe, showShape, sizeOf, type Tensor, type TensorLike } from './tensor.js';

/**
 * Where rows are and how they turn: pair i of the row at a position, (a, b), becomes
 * `(a cos - b sin, a sin + b cos)` of the angle `position / base^(2i / dims)` (Su et al., "RoFormer", 2021,
 * section 3.2.2).
 */
export interface RotaryOptions {
  /**
   * Which two of `dims` dimensions turn together: `'halves'` i and dims / 2 + i (as GPT-NeoX, and Llama's
   * weights in Hugging Face's format, want it), `'neighbours'` 2i and 2i + 1 (as in the paper and GPT-J). There
   * is no default: the wrong one gives numbers that look right.
   */
  pairing: 'halves' | 'neighbours';
  /**
   * The position of each row, for all batches and heads: `length` numbers from -2^30 to 2^30, not
   * necessarily whole. With cos and sin: rows of these. Not together with `offset`.
   */
  positions?: List | undefined;
  /** The first row's position, the others follow; whole. Default 0. */
  offset?: number | undefined;
  /** Pair i turns by position / base^(2i / dims). At least 1, default 10000. Not together with cos and sin. */
  base?: number | undefined;
  /**
   * How many of the leading dimensions turn; even. The others stay, as in GPT-J and GPT-NeoX. Default all, or
   * what cos and sin have.
   */
  dims?: number | undefined;
  /**
   * Cosines to use instead of those of the angle above, (positions, dims / 2), looked up by position, for
   * models that stretch their positions (such as YaRN, Peng et al., 2023). Together with `sin`; as cos_cache
   * of ONNX's RotaryEmbedding.
   */
  cos?: TensorLike | undefined;
  /** Sines that go with `cos`, of its shape; as sin_cache of ONNX's RotaryEmbedding. */
  sin?: TensorLike | undefined;
}

const FARTHEST = 2 ** 30;

function givenTables({ cos, sin, base }: RotaryOptions): { cos: Numbers; sin: Numbers } | undefined {
  if (cos === undefined && sin === undefined) return undefined;
  if (cos === undefined || sin === undefined) {
    return invalid(`${cos === undefined ? 'sin' : 'cos'} came alone, expected both cos and sin, or neither.`);
  }
  if (base !== undefined) return invalid(`base is ${describe(base)} together with cos and sin, expected one or the other.`);
  const tables = { cos: numbers(cos, 'cos', 2), sin: numbers(sin, 'sin', 2) };
  expectShape(tables.sin, 'sin', tables.cos.shape, "cos's shape");
  return tables;
}

/** How many dimensions turn. */
function dimsOf(options: RotaryOptions, dim: number, tables: { cos: Numbers } | undefined): number {
  const { dims = tables ? 2 * tables.cos.shape[1]! : dim } = options;
  if (tables && options.dims === undefined && dims > dim) {
    expectShape(tables.cos, 'cos', [null, Math.floor(dim / 2)], '(positions, dims / 2), with at most the dims of x');
  }
  wholeNumber(dims, 'dims', 0, dim);
  if (dims % 2 !== 0) invalid(`dims is ${dims}, expected an even number, since dimensions turn in pairs.`);
  if (tables) expectShape(tables.cos, 'cos', [null, dims / 2], '(positions, dims / 2)');
  return dims;
}

/** Positions as numbers, or as rows of the tables. `turning` is the argument whose rows they are of. */
function positionsOf({ positions, offset = 0 }: RotaryOptions, length: number, tableRows: number | undefined, turning: string): Float64Array | Int32Array {
  const meaning = `a position for each row of ${turning}`;
  if (positions === undefined) {
    wholeNumber(offset, 'offset', tableRows === undefined ? -FARTHEST : 0, FARTHEST);
    if (tableRows !== undefined && length > 0 && offset + length > tableRows) {
      throw new QkvError('SHAPE_MISMATCH', `cos has ${tableRows} rows, expected at least ${offset + length}: one for each position up to offset + length.`);
    }
    if (tableRows === undefined && offset + length - 1 > FARTHEST) {
      invalid(`offset is ${offset} for ${length} rows of ${turning}, expected at most ${FARTHEST - length + 1}, so that the last position, offset + length - 1, is at most ${FARTHEST}.`);
    }
    const Kind = tableRows === undefined ? Float64Array : Int32Array;
    return new Kind(length).map((_, t) => offset + t);
  }
  if (offset !== 0) return invalid(`offset is ${describe(offset)} together with positions, expected one or the other.`);
  if (tableRows !== undefined) return wholeNumbers(positions, 'positions', 0, tableRows - 1, meaning, length);
  const given = doubles(positions, 'positions', length, meaning);
  given.forEach((position, t) => {
    if (!(Math.abs(position) <= FARTHEST)) invalid(`positions[${t}] is ${position}, expected a number from ${-FARTHEST} to ${FARTHEST}.`);
  });
  return given;
}

/** The turning of rows at given positions over blocks of a frame. */
export class RotaryCall {
  readonly #frame: Frame;
  readonly #tables: Calls['rotaryTables'] | undefined;
  readonly #fields: Calls['rotary'];

  /** Checks the options for rows of `dim` numbers, which the argument `turning` has, and reserves tables in the frame. */
  constructor(frame: Frame, options: RotaryOptions, length: number, dim: number, turning = 'x', operation = 'rotary') {
    expectOptions(operation, options, ['pairing', 'positions', 'offset', 'base', 'dims', 'cos', 'sin']);
    const pairing = oneOf(options.pairing, 'pairing', ['halves', 'neighbours']);
    const given = givenTables(options);
    const pairs = dimsOf(options, dim, given) / 2;
    const positions = positionsOf(options, length, given?.cos.shape[0], turning);
    const { base = 10000 } = options;
    finite(base, 'base', 1);
    const rows = given ? given.cos.shape[0]! : length;
    const cosines = given ? frame.input(given.cos) : frame.output([rows, pairs]);
    const sines = given ? frame.input(given.sin) : frame.output([rows, pairs]);
    const at = frame.input(positions);
    const shared = { cosines, sines, rows, pairs };
    this.#frame = frame;
    this.#fields = { ...shared, length, dim, neighbours: pairing === 'neighbours', tableRows: given ? at : 0 };
    this.#tables = given ? undefined : { ...shared, base: frame.input(new Float64Array([base])), positions: at };
  }

  /**
   * Makes the tables and turns x, (batch, heads, length, dim) with strides, into `out`, which may be x; `backward`
   * turns dOut into dX.
   */
  run(name: string, batch: number, heads: number, strides: readonly number[], x: Block, out: Block, backward = false): void {
    if (this.#tables) this.#frame.run(name, 'rotaryTables', this.#tables);
    this.#frame.run(name, 'rotary', this.#fields, { batch, heads, x, xStrides: strides, out, outStrides: strides, backward });
  }
}

/** Rows that turn. */
function rowsToTurn(like: TensorLike, name: string): Numbers {
  const rows = numbers(like, name);
  if (rows.shape.length < 2) {
    throw new QkvError('SHAPE_MISMATCH', `${name} has rank 1 with shape ${showShape(rows.shape)}, expected (..., length, dim).`);
  }
  return rows;
}

function turned(memory: EngineMemory, operation: 'rotary' | 'rotaryBackward', x: Numbers, options: RotaryOptions): Tensor {
  const { shape } = x;
  const [length, dim] = shape.slice(-2) as [number, number];
  const frame = memory.frame();
  const call = new RotaryCall(frame, options, length, dim, 'x', operation);
  const strides = [0, length * dim, dim, 1];
  const from = frame.input(x);
  const out = frame.output(shape);
  call.run(operation, 1, sizeOf(shape.slice(0, -2)), strides, from, out, operation === 'rotaryBackward');
  return frame.read(out, shape);
}

export const rotary = (memory: EngineMemory, x: TensorLike, options: RotaryOptions): Tensor =>
  turned(memory, 'rotary', rowsToTurn(x, 'x'), options);

export function rotaryBackward(memory: EngineMemory, dOutLike: TensorLike, xLike: TensorLike, options: RotaryOptions): XGradient {
  const dOut = numbers(dOutLike, 'dOut');
  expectShape(dOut, 'dOut', rowsToTurn(xLike, 'x').shape, "x's shape");
  return { dX: turned(memory, 'rotaryBackward', dOut, options) };
}
