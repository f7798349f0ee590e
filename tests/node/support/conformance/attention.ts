// Attention, opset 23 to 25.
import type { AttentionOptions, Engine } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import { concatLength, joinHeads, padLast, rank4, reshape, splitHeads } from './shapes.js';
import type { Floats, Value } from './values.js';

/** An attention call's arguments, (batch, heads, length, dim). */
export interface Heads {
  query: Floats;
  key: Floats;
  value: Floats;
}

export interface Past {
  key: Floats;
  value: Floats;
}

export function pastOf(node: OperatorNode, keyInput: number): Past | undefined {
  const [key, value] = [node.optionalFloats(keyInput), node.optionalFloats(keyInput + 1)];
  if (!key !== !value) throw new Error(`${node.op} has one of past_key and past_value, expected both or neither`);
  return key && value && { key, value };
}

/** A mask or bias for the library: of rank 4, so that nothing is ambiguous, and as long as the keys. */
export function maskOption(mask: Value, keyLength: number): Pick<AttentionOptions, 'mask' | 'bias'> {
  const shape = rank4(mask.shape);
  if (mask.dtype === 'bool') return { mask: padLast({ data: mask.data as Uint8Array, shape }, keyLength, 0) };
  return { bias: padLast({ data: Float32Array.from(mask.data), shape }, keyLength, -Infinity) };
}

/** The operator's order of modes: raw, capped, with all masks, weights. */
const EXTRAS = [{ scores: 'raw' }, { scores: 'capped' }, { scores: 'biased' }, { weights: 'heads' }] as const;

/** The types a softmax may be asked to run in: float32, float16, float64, bfloat16. The library's is float32. */
const SOFTMAX_TYPES = [1, 10, 11, 16];

interface Lengths {
  query: number;
  key: number;
  past: number;
}

/** All attributes and inputs but the tensors themselves, as the library's options. */
export function attentionOptions(node: OperatorNode, lengths: Lengths): AttentionOptions {
  const softcap = node.number('softcap') ?? 0;
  const precision = node.integer('softmax_precision') ?? 1;
  if (!SOFTMAX_TYPES.includes(precision)) throw new Error(`softmax_precision is ${precision}, expected one of ${SOFTMAX_TYPES.join(', ')}`);
  const mask = node.optional(3);
  return {
    scale: node.number('scale'),
    softcap: softcap > 0 ? softcap : undefined,
    ...(mask && maskOption(mask, lengths.key)),
    ...positionOptions(node, lengths),
    ...extrasOption(node),
  };
}

function positionOptions(node: OperatorNode, lengths: Lengths): AttentionOptions {
  const causal = node.flag('is_causal');
  const keyLengths = node.optionalIntegers(6);
  const window = [node.integer('left_window_size') ?? -1, node.integer('right_window_size') ?? -1] as const;
  if (window.some((reach) => reach < -1)) throw new Error(`the window is ${window.join(', ')}, expected -1 (no limit) or more`);
  if (keyLengths && lengths.past > 0) throw new Error('nonpad_kv_seqlen comes with a past, which the operator forbids');
  const offset = keyLengths ? keyLengths.map((length) => length - lengths.query) : lengths.past;
  const bounded = window.some((reach) => reach !== -1);
  return {
    keyLengths,
    causal: causal ? (offset === 0 ? 'top-left' : { offset }) : false,
    // A causal call's window moves with its offset; without causal the offset has to be told.
    queryOffset: bounded && !causal && offset !== 0 ? offset : undefined,
    window: bounded ? [reachOf(window[0]), reachOf(window[1])] : undefined,
  };
}

const reachOf = (size: number): number => (size === -1 ? Infinity : size);

function extrasOption(node: OperatorNode): AttentionOptions {
  const mode = node.integer('qk_matmul_output_mode') ?? 0;
  const extras = EXTRAS[mode];
  if (!extras) throw new Error(`qk_matmul_output_mode is ${mode}, expected 0 to 3`);
  return node.wants(3) ? extras : {};
}

/** What the operator calls qk_matmul_output. */
const extraOf = (result: { scores?: Floats; weights?: Floats }): Floats | null => result.scores ?? result.weights ?? null;

export function attention(engine: Engine, node: OperatorNode): Route[] {
  const [query, key, value] = [node.floats(0, 'Q'), node.floats(1, 'K'), node.floats(2, 'V')];
  const past = pastOf(node, 4);
  const counts = { query: node.integer('q_num_heads'), key: node.integer('kv_num_heads') };
  const joined = query.shape.length === 3;
  const heads = joined ? split({ query, key, value }, counts) : { query, key, value };
  if (!joined) expectCounts(heads, counts);
  const present = past
    ? { key: concatLength(past.key, heads.key), value: concatLength(past.value, heads.value) }
    : { key: heads.key, value: heads.value };
  const lengths = { query: heads.query.shape[2]!, key: present.key.shape[2]!, past: past?.key.shape[2] ?? 0 };
  const options = attentionOptions(node, lengths);
  const asGiven = (x: Floats) => (joined ? joinHeads(x) : x);

  const routes: Route[] = [];
  if (joined && !past) {
    routes.push(...joinedRoutes(engine, { query, key, value }, heads, present, options));
  } else {
    const made = engine.attention(heads.query, present.key, present.value, options);
    routes.push({ name: 'attention', outputs: [asGiven(made.output), present.key, present.value, extraOf(made)] });
  }
  if (past) {
    const made = attendCached(engine, heads.query, [past, heads], options);
    routes.push({ name: 'kvCache', outputs: [asGiven(made.output), null, null, extraOf(made)] });
  }
  return routes;
}

function split({ query, key, value }: Heads, counts: { query: number | undefined; key: number | undefined }): Heads {
  if (counts.query === undefined || counts.key === undefined) throw new Error('rank 3 without q_num_heads and kv_num_heads');
  return { query: splitHeads(query, counts.query), key: splitHeads(key, counts.key), value: splitHeads(value, counts.key) };
}

function expectCounts({ query, key }: Heads, counts: { query: number | undefined; key: number | undefined }): void {
  const differs = (count: number | undefined, own: number) => count !== undefined && count !== own;
  if (differs(counts.query, query.shape[1]!) || differs(counts.key, key.shape[1]!)) {
    const [told, found] = [`${counts.query} and ${counts.key}`, `${query.shape[1]} and ${key.shape[1]}`];
    throw new Error(`q_num_heads and kv_num_heads are ${told}, but the shapes have ${found} heads`);
  }
}

/** Rank 3 needs no transposing: the library takes heads side by side, and with the length before the heads. */
function joinedRoutes(engine: Engine, given: Heads, heads: Heads, present: Past, options: AttentionOptions): Route[] {
  const [batch, queryHeads, length] = heads.query.shape as [number, number, number];
  const numKvHeads = heads.key.shape[1]!;
  const made = engine.attention(given.query, given.key, given.value, { ...options, numHeads: queryHeads, numKvHeads });
  const lengthFirst = (x: Floats, count: number) => reshape(x, [...x.shape.slice(0, 2), count, x.shape[2]! / count]);
  const apart = engine.attention(
    lengthFirst(given.query, queryHeads),
    lengthFirst(given.key, numKvHeads),
    lengthFirst(given.value, numKvHeads),
    { ...options, layout: 'blhd' },
  );
  const together = reshape(apart.output, [batch, length, queryHeads * heads.value.shape[3]!]);
  return [
    { name: 'attention with numHeads', outputs: [made.output, present.key, present.value, extraOf(made)] },
    { name: "attention with layout 'blhd'", outputs: [together, null, null, extraOf(apart)] },
  ];
}

/** The same attention over a cache that the parts were appended to one after the other. */
export function attendCached(engine: Engine, query: Floats, parts: readonly Past[], options: AttentionOptions) {
  const [batch, numKvHeads, , headDim] = parts[0]!.key.shape as [number, number, number, number];
  const cache = engine.kvCache({
    batch,
    numKvHeads,
    headDim,
    valueDim: parts[0]!.value.shape[3]!,
    capacity: parts.reduce((sum, part) => sum + part.key.shape[2]!, 0),
  });
  try {
    for (const { key, value } of parts) cache.append(key, value);
    return cache.attend(query, { causal: false, ...options });
  } finally {
    cache.dispose();
  }
}

