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

/** The gradients of one product with a weight over blocks of a frame. */
export class LinearBackwardCall {
  readonly #frame: Frame;
  readonly #fields: Calls['linearBackward'];
  readonly #weight: Numbers;
  readonly #dWeight: Block;
  readonly #dBias: Block | undefined;
  /** (rows, inDim) */
  readonly dX: Block;

  /** Reserves weight, gradients and scratch in the frame. */
  constructor(memory: EngineMemory, frame: Frame, rows: number, weight: Numbers, bias?: Numbers) {
    const [inDim, outDim] = weight.shape as [number, number];
    this.#frame = frame;
    this.#weight = weight;
    this.dX = frame.output([rows, inDim]);
    this.#dWeight = frame.output(weight.shape);
    this.#dBias = bias && frame.output([outDim]);
    this.#fields = {
      rows,
      inDim,
      outDim,
      weight: frame.input(weight),
      dX: this.dX,
      dWeight: this.#dWeight,
      dBias: this.#dBias,
      ...frame.workspace(memory.module.linearBackwardWorkspaceBytes(rows, inDim, outDim)),
    };
  }

  run(name: string, dOut: Block, x: Block): void {
    this.#frame.run(name, 'linearBackward', { ...this.#fields, dOut, x });
  }

  ofParameters(): Omit<LinearGradients, 'dX'> {
    const { shape } = this.#weight;
    return {
      dWeight: this.#frame.read(this.#dWeight, shape),
      ...(this.#dBias && { dBias: this.#frame.read(this.#dBias, [shape[1]!]) }),
    };
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
  const frame = memory.frame();
  const call = new LinearBackwardCall(memory, frame, rows, weight, bias);
  call.run('linearBackward', frame.input(dOut), frame.input(x));
  return { dX: frame.read(call.dX, x.shape), ...call.ofParameters() };
}
