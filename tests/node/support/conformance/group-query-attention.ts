// com.microsoft GroupQueryAttention: always causal, each sequence with a length of its own in one buffer.
import type { AttentionOptions, Engine } from 'qkv';

import { attendCached, type Heads, maskOption, pastOf, type Past } from './attention.js';
import type { OperatorNode, Route } from './node.js';
import { rotate, rowsOf } from './rotary.js';
import { joinHeads, splitHeads } from './shapes.js';
import { type Floats, integersOf } from './values.js';

/** Where each sequence's new tokens stand in the buffer. */
interface Places {
  /** Of all tokens of each sequence, past and new. */
  lengths: number[];
  /** Of the past ones, which the new ones follow. */
  starts: number[];
  bufferLength: number;
}

function placesOf(node: OperatorNode, newLength: number, pastLength: number): Places {
  const lengths = integersOf(node.input(5, 'seqlens_k')).map((last) => last + 1);
  const total = integersOf(node.input(6, 'total_sequence_length'))[0]!;
  // A first prompt begins at 0 whatever its length: shorter sequences are padded at their end.
  const prompt = newLength === total;
  return {
    lengths,
    starts: lengths.map((length) => (prompt ? 0 : length - newLength)),
    bufferLength: Math.max(pastLength, total),
  };
}

/** The past tokens that count, then the new ones, then zeros to the buffer's end. */
function presentOf(past: Floats | undefined, fresh: Floats, { starts, bufferLength }: Places): Floats {
  const [batch, heads, length, dim] = fresh.shape as [number, number, number, number];
  const pastLength = past?.shape[2] ?? 0;
  const data = new Float32Array(batch * heads * bufferLength * dim);
  for (let b = 0; b < batch; b++) {
    const start = starts[b]!;
    if (start < 0 || start > pastLength || start + length > bufferLength) {
      throw new Error(`sequence ${b} starts at ${start}, expected 0 to ${pastLength} and ${length} tokens to fit into ${bufferLength}`);
    }
    for (let head = b * heads; head < (b + 1) * heads; head++) {
      const at = head * bufferLength * dim;
      if (past) data.set(past.data.subarray(head * pastLength * dim, (head * pastLength + start) * dim), at);
      data.set(fresh.data.subarray(head * length * dim, (head + 1) * length * dim), at + start * dim);
    }
  }
  return { data, shape: [batch, heads, bufferLength, dim] };
}

/** The query and the new keys, turned by their positions; the past ones have been. */
function rotated(engine: Engine, node: OperatorNode, heads: Heads, starts: readonly number[]): Heads {
  const interleaved = node.flag('rotary_interleaved');
  const [cos, sin, ids] = [node.optionalFloats(7), node.optionalFloats(8), node.optionalIntegers(9)];
  if (!node.flag('do_rotary')) return heads;
  if (!cos || !sin) throw new Error('do_rotary is 1 without cos_cache and sin_cache');
  const length = heads.query.shape[2]!;
  const positions = ids ? rowsOf(ids, length) : starts.map((start) => Array.from({ length }, (_, i) => start + i));
  const rotation = { cos, sin, positions, interleaved, dims: 2 * cos.shape[1]! };
  return { ...heads, query: rotate(engine, heads.query, rotation), key: rotate(engine, heads.key, rotation) };
}

function optionsOf(node: OperatorNode, numHeads: number, { starts, bufferLength }: Places): AttentionOptions {
  const window = node.integer('local_window_size') ?? -1;
  if (window !== -1 && window < 1) throw new Error(`local_window_size is ${window}, expected -1 (no limit) or at least 1`);
  const softcap = node.number('softcap') ?? 0;
  const smooth = node.flag('smooth_softmax');
  const bias = node.optional(10);
  const sinks = node.optionalFloats(11)?.data ?? (smooth ? new Float32Array(numHeads) : undefined);
  const offset = starts.length === 1 ? starts[0]! : starts;
  return {
    scale: node.number('scale') || undefined,
    softcap: softcap > 0 ? softcap : undefined,
    causal: { offset },
    // The operator's size counts the query's own position, ours what is before it.
    window: window === -1 ? undefined : [window - 1, Infinity],
    sinks,
    ...(bias && maskOption(bias, bufferLength)),
  };
}

function countOf(node: OperatorNode, name: string): number {
  const count = node.integer(name);
  if (!count) throw new Error(`${node.op} has no ${name}`);
  return count;
}

export function groupQueryAttention(engine: Engine, node: OperatorNode): Route[] {
  const [numHeads, numKvHeads] = [countOf(node, 'num_heads'), countOf(node, 'kv_num_heads')];
  const past = pastOf(node, 3);
  const plain: Heads = {
    query: splitHeads(node.floats(0, 'query'), numHeads),
    key: splitHeads(node.floats(1, 'key'), numKvHeads),
    value: splitHeads(node.floats(2, 'value'), numKvHeads),
  };
  const pastLength = past?.key.shape[2] ?? 0;
  const places = placesOf(node, plain.query.shape[2]!, pastLength);
  const heads = rotated(engine, node, plain, places.starts);
  const options = optionsOf(node, numHeads, places);
  const present: Past = {
    key: presentOf(past?.key, heads.key, places),
    value: presentOf(past?.value, heads.value, places),
  };
  const { lengths } = places;
  const made = engine.attention(heads.query, present.key, present.value, { ...options, keyLengths: lengths });
  const routes: Route[] = [{ name: 'attention', outputs: [joinHeads(made.output), present.key, present.value] }];
  // A cache has one length for all sequences.
  const full = places.starts.every((start, b) => start === pastLength && lengths[b] === places.bufferLength);
  if (past && full) {
    const cached = attendCached(engine, heads.query, [past, heads], options);
    routes.push({ name: 'kvCache', outputs: [joinHeads(cached.output), null, null] });
  }
  return routes;
}
