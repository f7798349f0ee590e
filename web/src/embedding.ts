import { type IndicesLike, indices, numbers } from './arguments.js';
import { allocate, sizeOf, Tensor, type TensorLike } from './tensor.js';

/** Here and not in the core, where the whole table would have to be copied for a few of its rows. */
export function embedding(tableLike: TensorLike, indicesLike: IndicesLike): Tensor {
  const { data: table, shape } = numbers(tableLike, 'table', 2);
  const [rows, dim] = shape as [number, number];
  const rowsWanted = indices(indicesLike, 'indices', rows);
  const outShape = [...rowsWanted.shape, dim];
  const out = allocate(sizeOf(outShape), 'embedding');
  rowsWanted.data.forEach((row, i) => out.set(table.subarray(row * dim, (row + 1) * dim), i * dim));
  return new Tensor(out, Object.freeze(outShape));
}
