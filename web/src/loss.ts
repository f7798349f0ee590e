import { expectShape, type IndicesLike, indices, numbers } from './arguments.js';
import type { EngineMemory } from './memory.js';
import { sizeOf, type Tensor, type TensorLike } from './tensor.js';

/** What crossEntropy() gives. */
export interface CrossEntropyResult {
  /** The mean over the rows, natural log. */
  loss: number;
  /** Its gradient by the logits, of their shape. */
  dLogits: Tensor;
}

export function crossEntropy(memory: EngineMemory, logitsLike: TensorLike, targetsLike: IndicesLike): CrossEntropyResult {
  const logits = numbers(logitsLike, 'logits');
  const classes = logits.shape.at(-1)!;
  const lead = logits.shape.slice(0, -1);
  const rows = sizeOf(lead);
  const targets = indices(targetsLike, 'targets', classes);
  const isList = targets.shape.length === 1 && targets.shape[0] === rows;
  if (!isList) expectShape(targets, 'targets', lead, "logits' axes but the last, or a list of a class for each row");
  const frame = memory.frame();
  const [loss, dLogits] = [frame.output([1]), frame.output(logits.shape)];
  frame.run('crossEntropy', 'crossEntropy', {
    logits: frame.input(logits),
    targets: frame.input(targets),
    loss,
    dLogits,
    rows,
    classes,
    ...frame.workspace(memory.module.crossEntropyWorkspaceBytes(rows)),
  });
  return { loss: frame.read(loss, [1]).data[0]!, dLogits: frame.read(dLogits, logits.shape) };
}
