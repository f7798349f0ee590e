import { expectOptions, expectShape, type Numbers, numbers } from './arguments.js';
import type { EngineMemory } from './memory.js';
import type { Tensor, TensorLike } from './tensor.js';

/** What a recurrent network learns, in `h_t = tanh(x_t . wx + bx + h_(t-1) . wh + bh)`. */
export interface RnnParameters {
  /** Weight of the input, (inputDim, hidden). */
  wx: TensorLike;
  /** Weight of the state, (hidden, hidden). */
  wh: TensorLike;
  /** Bias of the input, (hidden), default 0. */
  bx?: TensorLike | undefined;
  /** Bias of the state, (hidden), default 0. */
  bh?: TensorLike | undefined;
}

/** What rnn() may be told. */
export interface RnnOptions {
  /** The state before the first step: (hidden), or (batch, hidden) for a batch. Default 0. */
  h0?: TensorLike | undefined;
}

/** What rnn() gives. */
export interface RnnResult {
  /** Every state: (length, hidden) or (batch, length, hidden). */
  outputs: Tensor;
  /** The last state: (hidden) or (batch, hidden). */
  h: Tensor;
}

interface RnnSizes {
  batch: number;
  length: number;
  inputDim: number;
  hidden: number;
}

/** h_t = tanh(x_t . wx + bx + h_(t-1) . wh + bh) over the given sizes; results as flat tensors. */
function run(
  memory: EngineMemory,
  operation: string,
  x: Numbers,
  parameters: RnnParameters,
  h0: Numbers | undefined,
  sizes: Omit<RnnSizes, 'hidden'>,
  shapes: (hidden: number) => { outputs: number[]; h: number[] },
): RnnResult {
  expectOptions(operation, parameters, ['wx', 'wh', 'bx', 'bh'], 'parameters');
  const wx = numbers(parameters.wx, 'wx', 2);
  const wh = numbers(parameters.wh, 'wh', 2);
  const hidden = wx.shape[1]!;
  expectShape(wx, 'wx', [sizes.inputDim, null], "(inputDim, hidden), inputDim being x's last axis");
  expectShape(wh, 'wh', [hidden, hidden], "(hidden, hidden), hidden being wx's last axis");
  const [bx, bh] = (['bx', 'bh'] as const).map((name) => {
    const given = parameters[name];
    if (given === undefined) return undefined;
    const bias = numbers(given, name, 1);
    expectShape(bias, name, [hidden], "hidden, wx's last axis");
    return bias;
  });
  const made = shapes(hidden);
  if (h0) expectShape(h0, operation === 'rnn' ? 'h0' : 'h', made.h, "the state's shape");

  const frame = memory.frame();
  const blocks = {
    x: frame.input(x),
    wx: frame.input(wx),
    wh: frame.input(wh),
    bx: frame.input(bx),
    bh: frame.input(bh),
    h0: frame.input(h0),
    outputs: frame.output(made.outputs),
    h: frame.output(made.h),
    ...frame.workspace(memory.module.rnnWorkspaceBytes(sizes.inputDim, hidden)),
  };
  frame.run(operation, 'rnn', { ...sizes, ...blocks, hidden });
  return { outputs: frame.read(blocks.outputs, made.outputs), h: frame.read(blocks.h, made.h) };
}

export function rnn(
  memory: EngineMemory,
  xLike: TensorLike,
  parameters: RnnParameters,
  options: RnnOptions = {},
): RnnResult {
  expectOptions('rnn', options, ['h0']);
  const x = numbers(xLike, 'x', 2, 3);
  const batched = x.shape.length === 3;
  const h0 = options.h0 === undefined ? undefined : numbers(options.h0, 'h0', batched ? 2 : 1);
  const [inputDim, length, batch = 1] = [...x.shape].reverse() as [number, number, number?];
  return run(memory, 'rnn', x, parameters, h0, { batch, length, inputDim }, (hidden) =>
    batched
      ? { outputs: [batch, length, hidden], h: [batch, hidden] }
      : { outputs: [length, hidden], h: [hidden] },
  );
}

export function rnnStep(
  memory: EngineMemory,
  xLike: TensorLike,
  state: { h: TensorLike },
  parameters: RnnParameters,
): { h: Tensor } {
  expectOptions('rnnStep', state, ['h'], 'state');
  const x = numbers(xLike, 'x', 1, 2);
  const h0 = numbers(state.h, 'h', x.shape.length);
  const [inputDim, batch = 1] = [...x.shape].reverse() as [number, number?];
  const { h } = run(memory, 'rnnStep', x, parameters, h0, { batch, length: 1, inputDim }, (hidden) => {
    const shape = x.shape.length === 2 ? [batch, hidden] : [hidden];
    return { outputs: shape, h: shape };
  });
  return { h };
}
