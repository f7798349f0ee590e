// Moving elements about: no arithmetic but the one addition that no method of the library does.
import { type Floats, sizeOf } from './values.js';

export const reshape = ({ data }: Floats, shape: readonly number[]): Floats => {
  if (sizeOf(shape) !== data.length) throw new Error(`${data.length} elements do not have the shape (${shape.join(', ')})`);
  return { data, shape };
};

/** Elements from one axis to the next, with 0 along the axes that broadcast. */
function stridesOf(shape: readonly number[], full: readonly number[]): number[] {
  const lead = full.length - shape.length;
  let stride = sizeOf(shape);
  return full.map((length, axis) => {
    const own = axis < lead ? 1 : shape[axis - lead]!;
    if (own !== 1 && own !== length) throw new Error(`(${shape.join(', ')}) does not broadcast to (${full.join(', ')})`);
    stride = own === 0 ? 0 : stride / own;
    return own === 1 ? 0 : stride;
  });
}

/** Calls `visit` with the place in the source for each element of `shape`, in row-major order. */
function walk(shape: readonly number[], strides: readonly number[], visit: (source: number) => void): void {
  const visitFrom = (axis: number, source: number): void => {
    if (axis === shape.length) return visit(source);
    for (let i = 0; i < shape[axis]!; i++) visitFrom(axis + 1, source + i * strides[axis]!);
  };
  visitFrom(0, 0);
}

/** Axis i of the result is axis `order[i]` of the argument. */
export function transpose({ data, shape }: Floats, order: readonly number[]): Floats {
  const strides = shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));
  const turned = order.map((axis) => shape[axis]!);
  const result = new Float32Array(data.length);
  let at = 0;
  walk(turned, order.map((axis) => strides[axis]!), (source) => { result[at++] = data[source]!; });
  return { data: result, shape: turned };
}

/** (batch, length, heads * dim) to (batch, heads, length, dim). */
export function splitHeads(x: Floats, heads: number): Floats {
  const [batch, length, width] = x.shape as [number, number, number];
  if (x.shape.length !== 3 || heads < 1 || width % heads !== 0) {
    throw new Error(`(${x.shape.join(', ')}) does not split into ${heads} heads`);
  }
  return transpose(reshape(x, [batch, length, heads, width / heads]), [0, 2, 1, 3]);
}

/** (batch, heads, length, dim) to (batch, length, heads * dim). */
export function joinHeads(x: Floats): Floats {
  const [batch, heads, length, dim] = x.shape as [number, number, number, number];
  return reshape(transpose(x, [0, 2, 1, 3]), [batch, length, heads * dim]);
}

/** Joined along the length of (batch, heads, length, dim). */
export function concatLength(first: Floats, second: Floats): Floats {
  const [batch, heads, a, dim] = first.shape as [number, number, number, number];
  const b = second.shape[2]!;
  const same = [0, 1, 3].every((axis) => first.shape[axis] === second.shape[axis]);
  if (!same) throw new Error(`(${first.shape.join(', ')}) and (${second.shape.join(', ')}) differ in more than their length`);
  const data = new Float32Array(batch * heads * (a + b) * dim);
  for (let i = 0; i < batch * heads; i++) {
    data.set(first.data.subarray(i * a * dim, (i + 1) * a * dim), i * (a + b) * dim);
    data.set(second.data.subarray(i * b * dim, (i + 1) * b * dim), (i * (a + b) + a) * dim);
  }
  return { data, shape: [batch, heads, a + b, dim] };
}

/** The way back: the first `length` of the joined length, and the rest. */
export function splitLength(joined: Floats, length: number): [Floats, Floats] {
  const [batch, heads, whole, dim] = joined.shape as [number, number, number, number];
  const part = (first: number, end: number): Floats => {
    const data = new Float32Array(batch * heads * (end - first) * dim);
    for (let i = 0; i < batch * heads; i++) {
      data.set(joined.data.subarray((i * whole + first) * dim, (i * whole + end) * dim), i * (end - first) * dim);
    }
    return { data, shape: [batch, heads, end - first, dim] };
  };
  return [part(0, length), part(length, whole)];
}

/** One batch of a tensor, without its batch axis. */
export function batchOf({ data, shape }: Floats, index: number): Floats {
  const rest = shape.slice(1);
  const size = sizeOf(rest);
  if (index >= shape[0]!) throw new Error(`(${shape.join(', ')}) has no batch ${index}`);
  return { data: data.subarray(index * size, (index + 1) * size), shape: rest };
}

/** Tensors of one shape, stacked along a new first axis. */
export function stack(parts: readonly Floats[]): Floats {
  const size = sizeOf(parts[0]!.shape);
  const data = new Float32Array(parts.length * size);
  parts.forEach((part, i) => data.set(part.data, i * size));
  return { data, shape: [parts.length, ...parts[0]!.shape] };
}

/** The shape with four axes, aligned right. */
export function rank4(shape: readonly number[]): number[] {
  if (shape.length > 4) throw new Error(`(${shape.join(', ')}) has more than 4 axes`);
  return [...Array<number>(4 - shape.length).fill(1), ...shape];
}

/** The last axis made longer. */
export function padLast<Data extends Float32Array | Uint8Array>(
  { data, shape }: { readonly data: Data; readonly shape: readonly number[] },
  length: number,
  fill: number,
): { data: Data; shape: number[] } {
  const own = shape.at(-1)!;
  const rows = sizeOf(shape.slice(0, -1));
  if (own >= length) return { data, shape: [...shape] };
  const padded = (data instanceof Uint8Array ? new Uint8Array(rows * length) : new Float32Array(rows * length)).fill(fill);
  for (let row = 0; row < rows; row++) padded.set(data.subarray(row * own, (row + 1) * own), row * length);
  return { data: padded as Data, shape: [...shape.slice(0, -1), length] };
}

/** The shape that two shapes broadcast to, aligned right. */
function broadcastShape(a: readonly number[], b: readonly number[]): number[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, axis) => {
    const [x, y] = [a[a.length - rank + axis] ?? 1, b[b.length - rank + axis] ?? 1];
    return x === 1 ? y : x;
  });
}

export function broadcastTo({ data, shape }: Floats, full: readonly number[]): Floats {
  const result = new Float32Array(sizeOf(full));
  let at = 0;
  walk(full, stridesOf(shape, full), (source) => { result[at++] = data[source]!; });
  return { data: result, shape: full };
}

/** a + b, which the library has no method for: residual connections and one mask atop another. */
export function add(a: Floats, b: Floats): Floats {
  const shape = broadcastShape(a.shape, b.shape);
  const [left, right] = [broadcastTo(a, shape), broadcastTo(b, shape)];
  return { data: left.data.map((x, i) => x + right.data[i]!), shape };
}
