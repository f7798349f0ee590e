// RotaryEmbedding, and the rotation of others' queries and keys.
import type { Engine } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import { batchOf, joinHeads, splitHeads, stack } from './shapes.js';
import type { Floats } from './values.js';

export interface Rotation {
  cos: Floats;
  sin: Floats;
  /** For each batch, a row of the caches for each token; without them, each batch has caches of its own. */
  positions: readonly (readonly number[])[] | undefined;
  interleaved: boolean;
  dims: number;
}

/** @param x (batch, heads, length, dim) */
export function rotate(engine: Engine, x: Floats, { cos, sin, positions, interleaved, dims }: Rotation): Floats {
  const shared = { pairing: interleaved ? 'neighbours' : 'halves', dims } as const;
  const [batch, , length] = x.shape as [number, number, number, number];
  if (positions && (positions.length !== batch || positions.some((row) => row.length !== length))) {
    throw new Error(`position_ids are not (batch, length) = (${batch}, ${length})`);
  }
  if (positions?.every((row) => row.every((position, i) => position === positions[0]![i]))) {
    return engine.rotary(x, { ...shared, cos, sin, positions: positions[0]! });
  }
  return stack(
    Array.from({ length: batch }, (_, b) =>
      positions
        ? engine.rotary(batchOf(x, b), { ...shared, cos, sin, positions: positions[b]! })
        : engine.rotary(batchOf(x, b), { ...shared, cos: batchOf(cos, b), sin: batchOf(sin, b) }),
    ),
  );
}

/** Rows of (batch, length) numbers. */
export function rowsOf(numbers: readonly number[], length: number): number[][] {
  return Array.from({ length: numbers.length / length }, (_, b) => numbers.slice(b * length, (b + 1) * length));
}

export interface RotaryInputs {
  rotation: Rotation;
  /** 0 where the heads have an axis of their own. */
  numHeads: number;
}

/** All of the operator but its X, whose rank 3 shape with heads side by side needs `num_heads`. */
export function rotationOf(node: OperatorNode, { shape }: Floats): RotaryInputs {
  const numHeads = node.integer('num_heads') ?? 0;
  const joined = shape.length === 3;
  if (joined && numHeads === 0) throw new Error('rank 3 without num_heads');
  const dim = joined ? shape[2]! / numHeads : shape[3]!;
  const ids = node.optionalIntegers(3);
  const rotation = {
    cos: node.floats(1, 'cos_cache'),
    sin: node.floats(2, 'sin_cache'),
    positions: ids && rowsOf(ids, joined ? shape[1]! : shape[2]!),
    interleaved: node.flag('interleaved'),
    dims: node.integer('rotary_embedding_dim') || dim,
  };
  return { rotation, numHeads: joined ? numHeads : 0 };
}

export function rotaryEmbedding(engine: Engine, node: OperatorNode): Route[] {
  const x = node.floats(0, 'X');
  const { rotation, numHeads } = rotationOf(node, x);
  const turned = numHeads === 0 ? rotate(engine, x, rotation) : joinHeads(rotate(engine, splitHeads(x, numHeads), rotation));
  return [{ name: 'rotary', outputs: [turned] }];
}
