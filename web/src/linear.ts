import { expectShape, type Numbers, numbers } from './arguments.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { Calls } from './module.js';
import { sizeOf, type Tensor, type TensorLike } from './tensor.js';

/** One product with a weight over blocks of a frame: rows . weight + bias. */
export class LinearCall {
  readonly #frame: Frame;
  readonly #fields: Calls['linear'];
  /** What the rows become, (rows, outDim). */
  readonly out: Block;
  readonly shape: readonly number[];

  /** Reserves weight, bias, result and scratch in the frame. */
  constructor(memory: EngineMemory, frame: Frame, rows: number, weight: Numbers, bias?: Numbers) {
    const [inDim, outDim] = weight.shape as [number, number];
    this.#frame = frame;
    this.shape = [rows, outDim];
    this.out = frame.output(this.shape);
    this.#fields = {
      rows,
      inDim,
      outDim,
      weight: frame.input(weight),
      bias: frame.input(bias),
      out: this.out,
      ...frame.workspace(memory.module.linearWorkspaceBytes(inDim, outDim)),
    };
  }

  run(name: string, x: Block): void {
    this.#frame.run(name, 'linear', { ...this.#fields, x });
  }
}

export function linear(memory: EngineMemory, xLike: TensorLike, weightLike: TensorLike, biasLike?: TensorLike): Tensor {
  const x = numbers(xLike, 'x');
  const weight = numbers(weightLike, 'weight', 2);
  const bias = biasLike === undefined ? undefined : numbers(biasLike, 'bias', 1);
  const [inDim, outDim] = [x.shape.at(-1)!, weight.shape[1]!];
  expectShape(weight, 'weight', [inDim, null], "(inDim, outDim), inDim being x's last axis");
  if (bias) expectShape(bias, 'bias', [outDim], "outDim, weight's last axis");
  const frame = memory.frame();
  const call = new LinearCall(memory, frame, sizeOf(x.shape.slice(0, -1)), weight, bias);
  const xBlock = frame.input(x);
  call.run('linear', xBlock);
  return frame.read(call.out, [...x.shape.slice(0, -1), outDim]);
}
