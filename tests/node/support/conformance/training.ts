// What learning takes: SoftmaxCrossEntropyLoss, an embedding lookup, and steps of Adam.
import type { Engine } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import { type Floats, integersOf, sizeOf } from './values.js';

/** An embedding: rows of a table. */
export function lookupOf(node: OperatorNode) {
  const axis = node.integer('axis') ?? 0;
  if (axis !== 0) throw new Error(`axis is ${axis}, expected 0: the library looks up rows`);
  const indices = node.input(1, 'indices');
  return { table: node.floats(0, 'data'), indices: { data: Int32Array.from(integersOf(indices)), shape: indices.shape } };
}

export function gather(engine: Engine, node: OperatorNode): Route[] {
  const { table, indices } = lookupOf(node);
  return [{ name: 'embedding', outputs: [engine.embedding(table, indices)] }];
}

export type Reduction = 'none' | 'mean' | 'sum';

/**
 * The library's loss is the mean over the rows; without a mean, each row is a call of its own. `dLogits` are those
 * of the mean, or of each row's own loss.
 */
export function lossesOf(engine: Engine, node: OperatorNode): { reduction: Reduction; losses: number[]; dLogits: Floats } {
  const reduction = node.text('reduction') ?? 'mean';
  if (reduction !== 'none' && reduction !== 'mean' && reduction !== 'sum') throw new Error(`reduction is "${reduction}"`);
  const [logits, targets] = [node.floats(0, 'scores'), integersOf(node.input(1, 'labels'))];
  if (logits.shape.length !== 2) throw new Error('scores have more axes than rows and classes, which the adapter does not do');
  if (reduction === 'mean') {
    const { loss, dLogits } = engine.crossEntropy(logits, targets);
    return { reduction, losses: [loss], dLogits };
  }
  const classes = logits.shape[1]!;
  const data = new Float32Array(logits.data.length);
  const losses = targets.map((target, row) => {
    const from = { data: logits.data.subarray(row * classes, (row + 1) * classes), shape: [1, classes] };
    const { loss, dLogits } = engine.crossEntropy(from, [target]);
    data.set(dLogits.data, row * classes);
    return loss;
  });
  return { reduction, losses, dLogits: { data, shape: logits.shape } };
}

export function crossEntropy(engine: Engine, node: OperatorNode): Route[] {
  const { reduction, losses } = lossesOf(engine, node);
  const sum = losses.reduce((a, b) => a + b, 0);
  const output = reduction === 'none' ? { data: Float32Array.from(losses), shape: [losses.length] } : { data: Float32Array.of(sum), shape: [] };
  return [{ name: 'crossEntropy', outputs: [output] }];
}

/** Steps one after another; the output is what each leaves. */
export function adam(engine: Engine, node: OperatorNode): Route[] {
  const [p, g] = [node.floats(0, 'p'), node.floats(1, 'g')];
  const attribute = (name: string) => node.number(name) ?? NaN;
  using optimizer = engine.adam({ lr: attribute('lr'), betas: [attribute('beta1'), attribute('beta2')], eps: attribute('epsilon') });
  const parameter = { data: p.data.slice(), shape: p.shape };
  const after = new Float32Array(g.data.length);
  for (let from = 0; from < after.length; from += sizeOf(p.shape)) {
    optimizer.step([parameter], [{ data: g.data.subarray(from, from + sizeOf(p.shape)), shape: p.shape }]);
    after.set(parameter.data, from);
  }
  return [{ name: 'adam', outputs: [{ data: after, shape: g.shape }] }];
}
