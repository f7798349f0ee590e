import { expectOptions, numbers } from './arguments.js';
import type { EngineMemory } from './memory.js';
import type { LstmResult } from './recurrent-options.js';
import { type AllOptions, type Cell, inputFields, KINDS, outputFields, type RecurrentProblem, recurrentProblem, sequencesProblem } from './recurrent-problem.js';
import type { TensorLike } from './tensor.js';

function run(memory: EngineMemory, problem: RecurrentProblem): LstmResult {
  const { operation, outputShape, stateShape, sizes } = problem;
  const frame = memory.frame();
  const inputs = inputFields(frame, problem);
  const made = outputFields(frame, problem);
  frame.run(operation, 'recurrent', inputs, made, frame.workspace(memory.module.recurrentWorkspaceBytes(...sizes)));
  const { outputs, h, c } = made;
  return { outputs: frame.read(outputs, outputShape), h: frame.read(h, stateShape), ...(c && { c: frame.read(c, stateShape) }) };
}

/** rnn(), lstm() or gru(). */
export function recurrent(memory: EngineMemory, cell: Cell, xLike: TensorLike, parameters: object, options: object = {}): LstmResult {
  return run(memory, sequencesProblem(cell, cell, xLike, parameters, options));
}

/** rnnStep(), lstmStep() or gruStep(). */
export function recurrentStep(memory: EngineMemory, cell: Cell, xLike: TensorLike, state: object, parameters: object, options: object = {}): Omit<LstmResult, 'outputs'> {
  const operation = `${cell}Step`;
  const { states, options: own } = KINDS[cell];
  expectOptions(operation, state, states, 'state');
  expectOptions(operation, options, own);
  const x = numbers(xLike, 'x', 1, 2);
  const { outputs, ...after } = run(memory, recurrentProblem({
    operation, cell, x, parameters, options: options as AllOptions, stateName: (name) => name, initial: state, isStep: true,
  }));
  void outputs;
  return after;
}
