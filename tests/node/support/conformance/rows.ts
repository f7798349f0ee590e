// The operators that work on rows or single elements: Softmax, the normalizations, Gelu and Swish.
import type { Engine } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import { broadcastTo, reshape, transpose } from './shapes.js';
import { type Floats, sizeOf } from './values.js';

export function axisOf(node: OperatorNode, rank: number): number {
  const axis = node.integer('axis') ?? -1;
  if (axis < -rank || axis >= rank) throw new Error(`axis is ${axis}, expected one of rank ${rank}`);
  return axis < 0 ? axis + rank : axis;
}

/** The order of axes that has the operator's at the end, where the library's is. A swap of two axes undoes itself. */
export function axisLast(node: OperatorNode, rank: number): number[] {
  const axis = axisOf(node, rank);
  const order = Array.from({ length: rank }, (_, i) => i);
  [order[axis], order[rank - 1]] = [rank - 1, axis];
  return order;
}

export function softmax(engine: Engine, node: OperatorNode): Route[] {
  if (node.opset < 13) throw new Error(`Softmax of opset ${node.opset} joins axes, which the adapter does not do; expected 13 or later`);
  const x = node.floats(0, 'input');
  const order = axisLast(node, x.shape.length);
  return [{ name: 'softmax', outputs: [transpose(engine.softmax(transpose(x, order)), order)] }];
}

/** Axis `axis` and those after it as one; `parameter` for each of its elements. */
export function asRows(x: Floats, axis: number) {
  const normalized = x.shape.slice(axis);
  return {
    rows: reshape(x, [sizeOf(x.shape.slice(0, axis)), sizeOf(normalized)]),
    parameter: (given: Floats | undefined) =>
      given && reshape(broadcastTo(given, normalized), [sizeOf(normalized)]),
  };
}

/** Which type to compute in: 1 is float32, the library's. */
export function expectFloat32(node: OperatorNode): void {
  const stashed = node.integer('stash_type') ?? 1;
  if (stashed !== 1) throw new Error(`stash_type is ${stashed}, expected 1 (float32)`);
}

export function layerNormalization(engine: Engine, node: OperatorNode): Route[] {
  expectFloat32(node);
  const x = node.floats(0, 'X');
  const { rows, parameter } = asRows(x, axisOf(node, x.shape.length));
  const gamma = parameter(node.floats(1, 'Scale'));
  const beta = parameter(node.optionalFloats(2));
  const made = engine.layerNorm(rows, { gamma, beta, eps: node.number('epsilon') ?? 1e-5 });
  return [{ name: 'layerNorm', outputs: [reshape(made, x.shape), null, null], notReturned: 'layerNorm does not return Mean and InvStdDev' }];
}

export function rmsNormalization(engine: Engine, node: OperatorNode): Route[] {
  expectFloat32(node);
  const x = node.floats(0, 'X');
  const { rows, parameter } = asRows(x, axisOf(node, x.shape.length));
  const gamma = parameter(node.floats(1, 'scale'));
  const made = engine.rmsNorm(rows, { gamma, eps: node.number('epsilon') ?? 1e-5 });
  return [{ name: 'rmsNorm', outputs: [reshape(made, x.shape)] }];
}

export function approximateOf(node: OperatorNode): 'none' | 'tanh' {
  const approximate = node.text('approximate') ?? 'none';
  if (approximate !== 'none' && approximate !== 'tanh') throw new Error(`approximate is "${approximate}", expected none or tanh`);
  return approximate;
}

export const gelu = (engine: Engine, node: OperatorNode): Route[] => [
  { name: 'gelu', outputs: [engine.gelu(node.floats(0, 'X'), { approximate: approximateOf(node) })] },
];

/** x * sigmoid(alpha * x) = silu(alpha * x) / alpha: what alpha does beyond silu is done at the edge. */
export function swish(engine: Engine, node: OperatorNode): Route[] {
  const x = node.floats(0, 'X');
  const alpha = node.number('alpha') ?? 1;
  if (alpha === 0) throw new Error('alpha is 0, where Swish is x / 2 and the library has nothing to compute');
  const times = ({ data, shape }: Floats, factor: number): Floats => ({ data: data.map((v) => v * factor), shape });
  return [{ name: 'silu', outputs: [times(engine.silu(times(x, alpha)), 1 / alpha)] }];
}
