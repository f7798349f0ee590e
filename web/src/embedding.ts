import { type IndicesLike, indices, numbers } from './arguments.js';
import type { EngineMemory } from './memory.js';
import { allocate, sizeOf, Tensor, type TensorLike } from './tensor.js';

/** Here and not in the core, where the whole table would have to be copied for a few of its rows. */
export function embedding(memory: EngineMemory, tableLike: TensorLike, indicesLike: IndicesLike): Tensor {
  const table = numbers(tableLike, 'table', 2);
  const [rows, dim] = table.shape as [number, number];
  const rowsWanted = indices(indicesLike, 'indices', rows);
  const outShape = [...rowsWanted.shape, dim];
  const out = allocate(sizeOf(outShape), 'embedding');
  const elements = memory.elements(table);
  rowsWanted.data.forEach((row, i) => out.set(elements.subarray(row * dim, (row + 1) * dim), i * dim));
  return new Tensor(out, Object.freeze(outShape));
}
