// com.microsoft MultiHeadAttention.
import type { AttentionOptions, Engine } from 'qkv';

import { attendCached, type Heads, maskOption, pastOf, type Past } from './attention.js';
import type { OperatorNode, Route } from './node.js';
import { add, concatLength, joinHeads, splitHeads } from './shapes.js';
import { type Floats, integersOf, type Value } from './values.js';

/** x + bias over the last axis, through the library's linear with a weight that changes nothing. */
function addBias(engine: Engine, x: Floats, bias: Floats): Floats {
  const width = x.shape.at(-1)!;
  const identity = new Float32Array(width * width);
  for (let i = 0; i < width; i++) identity[i * width + i] = 1;
  return engine.linear(x, { data: identity, shape: [width, width] }, bias);
}

/** Query, key and value with heads side by side, (batch, length, heads * dim), the bias added. */
function projections(engine: Engine, node: OperatorNode): Heads {
  const query = node.floats(0, 'query');
  if (query.shape.length !== 3) throw new Error(`query has rank ${query.shape.length}, expected 3: the adapter knows no packed form`);
  const side = (x: Floats) => (x.shape.length === 4 ? joinHeads(x) : x);
  const heads = { query, key: side(node.floats(1, 'key')), value: side(node.floats(2, 'value')) };
  const bias = node.optionalFloats(3);
  if (!bias) return heads;
  let start = 0;
  const withBias = (x: Floats) => {
    const width = x.shape[2]!;
    const own = bias.data.subarray(start, (start += width));
    return addBias(engine, x, { data: own, shape: [width] });
  };
  return { query: withBias(heads.query), key: withBias(heads.key), value: withBias(heads.value) };
}

/** Whether a key is attended, of shape (batch, 1, 1 or queries, keys). */
interface Padding {
  attended: { data: Uint8Array; shape: number[] };
  /** Where the mask came as lengths. */
  lengths?: number[];
}

function paddingOf(mask: Value, { batch, queries, keys }: { batch: number; queries: number; keys: number }): Padding {
  const integers = integersOf(mask);
  const shape = mask.shape.join();
  if (shape === `${batch}`) {
    const data = Uint8Array.from({ length: batch * keys }, (_, i) => Number(i % keys < integers[Math.floor(i / keys)]!));
    return { attended: { data, shape: [batch, 1, 1, keys] }, lengths: integers };
  }
  const data = Uint8Array.from(integers);
  if (shape === `${batch},${keys}`) return { attended: { data, shape: [batch, 1, 1, keys] } };
  if (shape === `${batch},${queries},${keys}`) return { attended: { data, shape: [batch, 1, queries, keys] } };
  throw new Error(`key_padding_mask has shape (${shape}), expected (batch), (batch, keys) or (batch, queries, keys)`);
}

/** The operator adds a number instead of forbidding: a row without a key is not 0 but what survives that. */
function paddingBias({ attended }: Padding, filter: number): Floats {
  return { data: Float32Array.from(attended.data, (attend) => (attend ? 0 : filter)), shape: attended.shape };
}

/** Whether forbidding padded keys leaves a key to every row, so that it comes to the same as the number. */
function leavesKeys({ attended: { data, shape } }: Padding, queries: number, causalOffset: number | undefined): boolean {
  const keys = shape[3]!;
  const rows = Array.from({ length: data.length / keys }, (_, row) => data.subarray(row * keys, (row + 1) * keys));
  // Of a mask with one row for all queries, the first query sees the fewest keys.
  return rows.every((row, i) => {
    const query = shape[2] === queries ? i % queries : 0;
    return row.subarray(0, causalOffset === undefined ? keys : Math.max(0, query + causalOffset + 1)).includes(1);
  });
}

export function multiHeadAttention(engine: Engine, node: OperatorNode): Route[] {
  const numHeads = node.integer('num_heads');
  if (!numHeads) throw new Error('MultiHeadAttention has no num_heads');
  const causal = node.flag('unidirectional');
  const filter = node.number('mask_filter_value') ?? -10000;
  const given = projections(engine, node);
  const heads = { query: splitHeads(given.query, numHeads), key: splitHeads(given.key, numHeads), value: splitHeads(given.value, numHeads) };
  const past = pastOf(node, 6);
  const present = past
    ? { key: concatLength(past.key, heads.key), value: concatLength(past.value, heads.value) }
    : { key: heads.key, value: heads.value };
  const sizes = { batch: heads.query.shape[0]!, queries: heads.query.shape[2]!, keys: present.key.shape[2]! };
  const offset = past?.key.shape[2] ?? 0;
  const options: AttentionOptions = {
    scale: node.number('scale') || undefined,
    causal: causal ? (offset === 0 ? 'top-left' : { offset }) : false,
  };
  const mask = node.optional(4);
  const padding = mask && paddingOf(mask, sizes);
  const attentionBias = node.optional(5);
  const bias = attentionBias && maskOption(attentionBias, sizes.keys).bias as Floats;
  const numbers = padding ? paddingBias(padding, filter) : undefined;
  const summed = bias && numbers ? add(bias, numbers) : (bias ?? numbers);
  const attend = call(engine, { given, heads, past, present, numHeads });
  const routes = attend({ ...options, ...(summed && { bias: summed }) }, present);
  if (padding && leavesKeys(padding, sizes.queries, causal ? offset : undefined)) {
    const forbidden = padding.lengths ? { keyLengths: padding.lengths } : { mask: padding.attended };
    const masked = attend({ ...options, ...(bias && { bias }), ...forbidden }, null);
    routes.push(...masked.map((route) => ({ ...route, name: `${route.name}, padding as a mask` })));
  }
  return routes;
}

interface Parts {
  given: Heads;
  heads: Heads;
  past: Past | undefined;
  present: Past;
  numHeads: number;
}

/** The routes for one set of options: heads side by side where that will do, else apart, and the cache. */
function call(engine: Engine, { given, heads, past, present, numHeads }: Parts) {
  return (options: AttentionOptions, presents: Past | null): Route[] => {
    const rest = [presents?.key ?? null, presents?.value ?? null];
    if (!past) {
      const { output } = engine.attention(given.query, given.key, given.value, { ...options, numHeads });
      return [{ name: 'attention with numHeads', outputs: [output, ...rest] }];
    }
    const { output } = engine.attention(heads.query, present.key, present.value, options);
    const routes: Route[] = [{ name: 'attention', outputs: [joinHeads(output), ...rest] }];
    if (options.keyLengths === undefined) {
      const cached = attendCached(engine, heads.query, [past, heads], options);
      routes.push({ name: 'kvCache', outputs: [joinHeads(cached.output), null, null] });
    }
    return routes;
  };
}
