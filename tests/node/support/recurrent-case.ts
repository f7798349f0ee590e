// Recurrent problems of random numbers, and parts of them.
import { type Engine, type LstmGradients, type LstmResult, type Tensor, tensor } from 'qkv';

import { type Cell, GATES } from './recurrent-reference.js';
import { randomFloats } from './reference.js';

export const CELLS: readonly Cell[] = ['rnn', 'lstm', 'gru'];

export const random = (seed: number, ...shape: number[]): Tensor =>
  tensor(randomFloats(shape.reduce((a, b) => a * b, 1), seed), shape);

const scaled = ({ data, shape }: Tensor, by: number): Tensor => tensor(data.map((x) => x * by), shape);

/** Parameters of one direction with all that the cell may have. */
export function parametersOf(cell: Cell, inputDim: number, hidden: number, seed = 1) {
  const columns = GATES[cell] * hidden;
  return {
    wx: scaled(random(seed, inputDim, columns), 1 / Math.sqrt(inputDim + 1)),
    wh: scaled(random(seed + 1, hidden, columns), 1 / Math.sqrt(hidden + 1)),
    bx: random(seed + 2, columns),
    bh: random(seed + 3, columns),
    ...(cell === 'lstm' && { peephole: random(seed + 4, 3 * hidden) }),
  };
}

/** As a program that does not know which cell it has would call it. */
export const call = (engine: Engine, cell: Cell, x: Tensor, parameters: object, options: object = {}): LstmResult =>
  (engine[cell] as (x: Tensor, parameters: object, options: object) => LstmResult).call(engine, x, parameters, options);

export const callStep = (engine: Engine, cell: Cell, x: Tensor, state: object, parameters: object, options: object = {}): LstmResult =>
  (engine[`${cell}Step`] as (...args: object[]) => LstmResult).call(engine, x, state, parameters, options);

export type Back = LstmGradients<Record<string, Tensor>>;
export const callBackward = (engine: Engine, cell: Cell, gradients: object, x: Tensor, parameters: object, options: object = {}): Back =>
  (engine[`${cell}Backward`] as unknown as (...args: object[]) => Back).call(engine, gradients, x, parameters, options);

/** Parameters with their gates at other places: `order` says which of the given is at each. Peepholes stay. */
export function reordered<Given extends Readonly<Record<string, Tensor>>>(parameters: Given, order: readonly number[], hidden: number): Given {
  const moved = ({ data, shape }: Tensor) => tensor(data.map((_, i) => {
    const column = i % shape.at(-1)!;
    return data[i - column + order[Math.floor(column / hidden)]! * hidden + (column % hidden)]!;
  }), shape);
  return Object.fromEntries(Object.entries(parameters).map(([name, of]) => [name, name === 'peephole' ? of : moved(of)])) as unknown as Given;
}

/** Entries [begin, end) along an axis. */
export function slice({ data, shape }: Tensor, axis: number, begin: number, end: number): Tensor {
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const length = shape[axis]!;
  const kept = data.filter((_, i) => { const at = Math.floor(i / inner) % length; return at >= begin && at < end; });
  return tensor(kept, shape.map((n, i) => (i === axis ? end - begin : n)));
}

/** One sequence of a batch, without its axis. */
export function one(batch: Tensor, index: number, axis = 0): Tensor {
  const { data, shape } = slice(batch, axis, index, index + 1);
  return tensor(data, shape.filter((_, i) => i !== axis));
}

/** Turned round along an axis. */
export function flipped({ data, shape }: Tensor, axis: number): Tensor {
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const length = shape[axis]!;
  return tensor(data.map((_, i) => {
    const at = Math.floor(i / inner) % length;
    return data[i + (length - 1 - 2 * at) * inner]!;
  }), shape);
}
