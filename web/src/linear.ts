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

/** What a linear layer was given, checked. */
function linearArguments(xLike: TensorLike, weightLike: TensorLike, biasLike: TensorLike | undefined) {
  const x = numbers(xLike, 'x');
  const weight = numbers(weightLike, 'weight', 2);
  const bias = biasLike === undefined ? undefined : numbers(biasLike, 'bias', 1);
  const [inDim, outDim] = [x.shape.at(-1)!, weight.shape[1]!];
  expectShape(weight, 'weight', [inDim, null], "(inDim, outDim), inDim being x's last axis");
  if (bias) expectShape(bias, 'bias', [outDim], "outDim, weight's last axis");
  const lead = x.shape.slice(0, -1);
  return { x, weight, bias, rows: sizeOf(lead), outShape: [...lead, outDim] };
}

export function linear(memory: EngineMemory, xLike: TensorLike, weightLike: TensorLike, biasLike?: TensorLike): Tensor {
  const { x, weight, bias, rows, outShape } = linearArguments(xLike, weightLike, biasLike);
  const frame = memory.frame();
  const call = new LinearCall(memory, frame, rows, weight, bias);
  const xBlock = frame.input(x);
  call.run('linear', xBlock);
  return frame.read(call.out, outShape);
}

/** The gradients of what linear() was given. */
export interface LinearGradients {
  /** x's shape: dOut . weight^T. */
  dX: Tensor;
  /** (inDim, outDim): x^T . dOut, over the rows of all axes before the last. */
  dWeight: Tensor;
  /** (outDim), the sum of dOut's rows; there where a bias was given. */
  dBias?: Tensor;
}

export function linearBackward(
  memory: EngineMemory,
  dOutLike: TensorLike,
  xLike: TensorLike,
  weightLike: TensorLike,
  biasLike?: TensorLike,
): LinearGradients {
  const dOut = numbers(dOutLike, 'dOut');
  const { x, weight, bias, rows, outShape } = linearArguments(xLike, weightLike, biasLike);
  expectShape(dOut, 'dOut', outShape, "the output's shape");
  const [inDim, outDim] = weight.shape as [number, number];
  const frame = memory.frame();
  const [dX, dWeight, dBias] = [frame.output(x.shape), frame.output(weight.shape), frame.output([outDim], bias !== undefined)];
  frame.run('linearBackward', 'linearBackward', {
    rows,
    inDim,
    outDim,
    dOut: frame.input(dOut),
    x: frame.input(x),
    weight: frame.input(weight),
    dX,
    dWeight,
    dBias,
    ...frame.workspace(memory.module.linearBackwardWorkspaceBytes(rows, inDim, outDim)),
  });
  return {
    dX: frame.read(dX, x.shape),
    dWeight: frame.read(dWeight, weight.shape),
    ...(bias && { dBias: frame.read(dBias, [outDim]) }),
  };
}
