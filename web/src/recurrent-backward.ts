import { expectOptions, expectShape, numbers } from './arguments.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { BothDirections } from './recurrent-options.js';
import { type Cell, inputFields, KINDS, outputFields, parameterBlocks, type RecurrentProblem, sequencesProblem } from './recurrent-problem.js';
import type { Tensor, TensorLike } from './tensor.js';

/** The loss's gradients by what rnn() or gru() gives; what is left out is 0. */
export interface RecurrentOutputGradients {
  /** Of the shape of outputs. What it holds beyond a sequence's length is not looked at. */
  dOutputs?: TensorLike | undefined;
  /** Of the shape of h: what the last states add to the loss besides. */
  dH?: TensorLike | undefined;
}

/** The same of lstm(). */
export interface LstmOutputGradients extends RecurrentOutputGradients {
  /** Of the shape of c. */
  dC?: TensorLike | undefined;
}

/** A tensor for each parameter that was given, by its name and of its shape, gates in the given gateOrder. */
export type ParameterGradients<Parameters> =
  Parameters extends BothDirections<infer One> ? BothDirections<ParameterGradients<One>> : { [Name in keyof Parameters]: Tensor };

/**
 * The loss's gradients by what rnn() or gru() was given, by backpropagation through time (Werbos, 1990). With da for
 * the gradient by what goes into the gates of a step:
 *
 *     dX = da . wx^T                   dWx = sum of x_t^T . da          dBx = sum of da
 *     dH_(t-1) += da . wh^T            dWh = sum of h_(t-1)^T . da      dBh = sum of da
 *
 * where the columns n of a GRU have r * da in the second line, or without resetAfter r * h_(t-1) in dWh.
 */
export interface RecurrentGradients<Parameters> {
  /** x's shape; 0 beyond a sequence's length. */
  dX: Tensor;
  /** Summed over the batch and all steps; for 'both' `{ forward, reverse }`. */
  dParameters: ParameterGradients<Parameters>;
  /** By the state before the first step, of h's shape, where there is no h0 too. */
  dH0: Tensor;
}

/** The same of lstm(). */
export interface LstmGradients<Parameters> extends RecurrentGradients<Parameters> {
  /** Of c's shape, where there is no c0 too. */
  dC0: Tensor;
}

const BYTES_PER_FLOAT = 4;
const gradientOf = (name: string): string => `d${name[0]!.toUpperCase()}${name.slice(1)}`;

/** dOutputs, dH and dC, those that are given. */
function givenFields(frame: Frame, given: object, { states, outputShape, stateShape }: RecurrentProblem): Record<string, Block> {
  const like = given as Record<string, TensorLike | undefined>;
  return Object.fromEntries(['outputs', ...states].flatMap((output) => {
    const name = gradientOf(output);
    if (like[name] === undefined) return [];
    const shape = output === 'outputs' ? outputShape : stateShape;
    const values = numbers(like[name], name, shape.length);
    expectShape(values, name, shape, `the shape of ${output}`);
    return [[name, frame.input(values)]];
  }));
}

/** rnnBackward(), lstmBackward() or gruBackward(): the forward pass once more, which leaves a trace, and the way back along it. */
export function recurrentBackward<Parameters extends object>(
  memory: EngineMemory,
  cell: Cell,
  given: object,
  xLike: TensorLike,
  parameters: Parameters,
  options: object = {},
): LstmGradients<Parameters> {
  const operation = `${cell}Backward`;
  expectOptions(operation, given, ['outputs', ...KINDS[cell].states].map(gradientOf), 'gradients');
  const problem = sequencesProblem(operation, cell, xLike, parameters, options);
  const { x, weights, states, stateShape, sizes } = problem;
  const { module } = memory;
  const frame = memory.frame();
  const [inputs, dOutputs] = [inputFields(frame, problem), givenFields(frame, given, problem)];
  const trace = frame.output([module.recurrentTraceBytes(...sizes) / BYTES_PER_FLOAT]);
  const dX = frame.output(x.shape);
  const dStates = Object.fromEntries(states.map((state) => [gradientOf(`${state}0`), frame.output(stateShape)]));
  const dWeights = parameterBlocks(weights, gradientOf, ({ shape }) => frame.output(shape));
  const forward = { ...outputFields(frame, problem), trace, ...frame.workspace(module.recurrentWorkspaceBytes(...sizes)) };
  const backward = { trace, dX, ...dStates, ...dWeights, ...frame.workspace(module.recurrentBackwardWorkspaceBytes(...sizes)) };
  frame.run(operation, 'recurrent', inputs, forward);
  frame.run(operation, 'recurrentBackward', inputs, dOutputs, backward);
  const [first, second] = weights.map((tensors, d) => Object.fromEntries([...tensors].map(([name, { shape }]) =>
    [name, frame.read(dWeights[gradientOf(name) + (d === 0 ? '' : '2')]!, shape)])));
  return {
    dX: frame.read(dX, x.shape),
    dParameters: second ? { forward: first, reverse: second } : first,
    ...Object.fromEntries(Object.entries(dStates).map(([name, block]) => [name, frame.read(block, stateShape)])),
  } as LstmGradients<Parameters>;
}
