import { expectShape, type IndicesLike, indices, numbers } from './arguments.js';
import type { EngineMemory } from './memory.js';
import { allocate, sizeOf, Tensor, type TensorLike } from './tensor.js';

function embeddingArguments(tableLike: TensorLike, indicesLike: IndicesLike) {
  const table = numbers(tableLike, 'table', 2);
  const [rows, dim] = table.shape as [number, number];
  const rowsWanted = indices(indicesLike, 'indices', rows);
  return { table, dim, rowsWanted: rowsWanted.data, outShape: [...rowsWanted.shape, dim] };
}

/** Here and not in the core, where the whole table would have to be copied for a few of its rows. */
export function embedding(memory: EngineMemory, tableLike: TensorLike, indicesLike: IndicesLike): Tensor {
  const { table, dim, rowsWanted, outShape } = embeddingArguments(tableLike, indicesLike);
  const out = allocate(sizeOf(outShape), 'embedding');
  const elements = memory.elements(table);
  rowsWanted.forEach((row, i) => out.set(elements.subarray(row * dim, (row + 1) * dim), i * dim));
  return new Tensor(out, Object.freeze(outShape));
}

/** The gradient of what embedding() was given. */
export interface EmbeddingGradient {
  /** The table's shape: each row the sum of dOut over its indices, zeros where it has none. */
  dTable: Tensor;
}

export function embeddingBackward(
  memory: EngineMemory,
  dOutLike: TensorLike,
  tableLike: TensorLike,
  indicesLike: IndicesLike,
): EmbeddingGradient {
  const dOut = numbers(dOutLike, 'dOut');
  const { table, dim, rowsWanted, outShape } = embeddingArguments(tableLike, indicesLike);
  expectShape(dOut, 'dOut', outShape, "the output's shape: that of indices, then dim");
  const frame = memory.frame();
  const dTable = frame.output(table.shape);
  frame.run('embeddingBackward', 'embeddingBackward', {
    dOut: frame.input(dOut),
    indices: frame.input(rowsWanted),
    dTable,
    count: rowsWanted.length,
    rows: table.shape[0]!,
    dim,
    ...frame.workspace(memory.module.embeddingBackwardWorkspaceBytes(rowsWanted.length, table.shape[0]!)),
  });
  return { dTable: frame.read(dTable, table.shape) };
}
