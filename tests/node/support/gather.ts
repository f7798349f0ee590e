// A part of an attention problem, or the same in another order: along one axis of all its arrays.
import type { AttentionCase } from './attention-case.js';

type Axis = 'batch' | 'query' | 'key';
type Shape4 = [number, number, number, number];

/** Entries of one axis of row-major data, in the given order. */
export function gather<Data extends Float32Array | Uint8Array>(data: Data, shape: readonly number[], axis: number, indices: readonly number[]): Data {
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const gathered = new (data.constructor as new (length: number) => Data)(outer * indices.length * inner);
  for (let o = 0; o < outer; o++) {
    indices.forEach((from, to) => {
      const row = data.subarray((o * shape[axis]! + from) * inner, (o * shape[axis]! + from + 1) * inner);
      gathered.set(row, (o * indices.length + to) * inner);
    });
  }
  return gathered;
}

/** The problem of these batches, queries or keys. Rules that count positions are the caller's to change. */
export function partOf<Case extends AttentionCase>(one: Case, axis: Axis, indices: readonly number[]): Case {
  const { batch, heads, kvHeads, queryLen, keyLen, dim, valueDim } = one.sizes;
  const at = { batch: 0, query: 2, key: 3 }[axis];
  const taken = (data: Float32Array, shape: Shape4, along: number | undefined) => (along === undefined ? data : gather(data, shape, along, indices));
  const kvAxis = axis === 'batch' ? 0 : axis === 'key' ? 2 : undefined;
  const broadcast = <Data extends Float32Array | Uint8Array>({ data, shape }: { data: Data; shape: readonly number[] }) => {
    const own = at - (4 - shape.length);
    if (own < 0 || shape[own] === 1) return { data, shape };
    return { data: gather(data, shape, own, indices), shape: shape.map((length, i) => (i === own ? indices.length : length)) };
  };
  const rules = { ...one.rules };
  if (rules.mask) rules.mask = broadcast(rules.mask);
  if (rules.bias) rules.bias = broadcast(rules.bias);
  if (axis === 'batch') {
    const perBatch = <T>(list: T | readonly number[]) => (Array.isArray(list) ? indices.map((i) => (list as number[])[i]!) : list) as T;
    if (rules.keyLengths) rules.keyLengths = perBatch(rules.keyLengths);
    if (rules.queryOffset !== undefined) rules.queryOffset = perBatch(rules.queryOffset);
    if (typeof rules.causal === 'object') rules.causal = { offset: perBatch(rules.causal.offset) };
  }
  return {
    ...one,
    rules,
    sizes: { ...one.sizes, [{ batch: 'batch', query: 'queryLen', key: 'keyLen' }[axis]]: indices.length },
    query: taken(one.query, [batch, heads, queryLen, dim], axis === 'key' ? undefined : at),
    key: taken(one.key, [batch, kvHeads, keyLen, dim], kvAxis),
    value: taken(one.value, [batch, kvHeads, keyLen, valueDim], kvAxis),
  };
}
