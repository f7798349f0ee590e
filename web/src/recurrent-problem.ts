import { expectOptions, expectShape, flag, type Numbers, numbers, oneOf, wholeNumbers } from './arguments.js';
import type { Block, Frame } from './memory.js';
import type { Calls, RecurrentSizes } from './module.js';
import type { BothDirections, GruOptions, LstmOptions, LstmParameters, RnnOptions } from './recurrent-options.js';
import type { TensorLike } from './tensor.js';

export type Cell = 'rnn' | 'lstm' | 'gru';
type State = 'h' | 'c';
export type AllOptions = RnnOptions & LstmOptions & Omit<GruOptions, 'gateOrder'> & { gateOrder?: string | undefined };

/** As in cpp/include/qkv/recurrent.hpp. */
const CELLS: readonly Cell[] = ['rnn', 'lstm', 'gru'];
const DIRECTIONS = ['forward', 'reverse', 'both'] as const;

interface CellKind {
  readonly gates: number;
  readonly parameters: readonly string[];
  readonly states: readonly State[];
  readonly options: readonly string[];
  /** The first is ours, the second ONNX's. */
  readonly gateOrders: readonly string[];
}

const PARAMETERS = ['wx', 'wh', 'bx', 'bh'];
export const KINDS: Readonly<Record<Cell, CellKind>> = {
  rnn: { gates: 1, parameters: PARAMETERS, states: ['h'], options: ['activation'], gateOrders: [] },
  lstm: { gates: 4, parameters: [...PARAMETERS, 'peephole'], states: ['h', 'c'], options: ['gateOrder'], gateOrders: ['ifgo', 'iofg'] },
  gru: { gates: 3, parameters: PARAMETERS, states: ['h'], options: ['gateOrder', 'resetAfter'], gateOrders: ['rzn', 'zrn'] },
};

/** Parameters of one direction, checked. */
interface Weights {
  readonly hidden: number;
  /** Those that were given, in the order in which they were. */
  readonly tensors: ReadonlyMap<string, Numbers>;
}

/** `prefix`: "forward." where there are two directions. */
function weightsOf({ gates, parameters: known }: CellKind, given: Partial<LstmParameters>, inputDim: number, prefix: string, title: string): Weights {
  expectOptions(title, given, known, 'parameters');
  const columns = gates === 1 ? 'hidden' : `${gates} * hidden`;
  const wx = numbers(given.wx!, `${prefix}wx`, 2);
  const wh = numbers(given.wh!, `${prefix}wh`, 2);
  const hidden = wh.shape[0]!;
  expectShape(wh, `${prefix}wh`, [hidden, gates * hidden], `(hidden, ${columns})`);
  expectShape(wx, `${prefix}wx`, [inputDim, gates * hidden], `(inputDim, ${columns}), inputDim being x's last axis and hidden wh's first`);
  const row = (name: 'bx' | 'bh' | 'peephole', count: number) => {
    if (given[name] === undefined) return undefined;
    const values = numbers(given[name], prefix + name, 1);
    expectShape(values, prefix + name, [count * hidden], `${count === 1 ? '' : `${count} * `}hidden, hidden being wh's first axis`);
    return values;
  };
  const checked: Record<string, Numbers | undefined> = { wx, wh, bx: row('bx', gates), bh: row('bh', gates), peephole: row('peephole', 3) };
  return { hidden, tensors: new Map(Object.keys(given).flatMap((name) => (checked[name] ? [[name, checked[name]]] : []))) };
}

/** Of the one direction, or of forward and reverse. */
function allWeights(operation: string, kind: CellKind, parameters: object, inputDim: number, both: boolean): Weights[] {
  if (!both) return [weightsOf(kind, parameters, inputDim, '', operation)];
  expectOptions(operation, parameters, ['forward', 'reverse'], 'parameters');
  const { forward, reverse } = parameters as Partial<BothDirections<LstmParameters>>;
  const first = weightsOf(kind, forward!, inputDim, 'forward.', `${operation}: forward`);
  const second = weightsOf(kind, reverse!, inputDim, 'reverse.', `${operation}: reverse`);
  expectShape(second.tensors.get('wh')!, 'reverse.wh', first.tensors.get('wh')!.shape, "forward.wh's shape");
  return [first, second];
}

/** What was asked for. */
interface Request {
  readonly operation: string;
  readonly cell: Cell;
  readonly x: Numbers;
  readonly parameters: object;
  readonly options: AllOptions;
  /** What the states before the first step are called. */
  readonly stateName: (state: State) => string;
  readonly initial: Readonly<Partial<Record<State, TensorLike | undefined>>>;
  /** (batch?, length?, inputDim), of which a step has no length. */
  readonly isStep: boolean;
}

/** The same, checked. */
export interface RecurrentProblem {
  readonly operation: string;
  readonly states: readonly State[];
  readonly x: Numbers;
  /** Of the one direction, or of forward and reverse. */
  readonly weights: readonly ReadonlyMap<string, Numbers>[];
  readonly initial: ReadonlyMap<State, Numbers>;
  readonly lengths: Int32Array | undefined;
  readonly outputShape: readonly number[];
  readonly stateShape: readonly number[];
  /** Numbers and flags of the call. */
  readonly rules: Calls['recurrent'];
  /** What the core's counts of bytes depend on. */
  readonly sizes: RecurrentSizes;
}

export function recurrentProblem({ operation, cell, x, parameters, options, stateName, initial, isStep }: Request): RecurrentProblem {
  const kind = KINDS[cell];
  const [ownOrder, onnxOrder] = kind.gateOrders;
  const { direction = 'forward', gateOrder = ownOrder, activation = 'tanh', resetAfter = true } = options;
  const both = oneOf(direction, 'direction', DIRECTIONS) === 'both';
  const isOnnxOrder = gateOrder !== undefined && oneOf(gateOrder, 'gateOrder', kind.gateOrders) === onnxOrder;
  const relu = oneOf(activation, 'activation', ['tanh', 'relu']) === 'relu';
  const resetBefore = !flag(resetAfter, 'resetAfter');
  const axes = x.shape.slice(0, -1);
  const length = isStep ? 1 : axes.pop()!;
  const [batch = 1] = axes;
  const inputDim = x.shape.at(-1)!;
  const lengths = options.lengths === undefined ? undefined : wholeNumbers(options.lengths, 'lengths', 0, length, 'one a batch', batch);
  const weights = allWeights(operation, kind, parameters, inputDim, both);
  const { hidden } = weights[0]!;
  const outputShape = [...(isStep ? axes : [...axes, length]), both ? 2 * hidden : hidden];
  const stateShape = [...(both ? [2] : []), ...axes, hidden];
  const checked = new Map<State, Numbers>();
  for (const state of kind.states) {
    const given = initial[state];
    if (!isStep && given === undefined) continue;
    const values = numbers(given!, stateName(state), stateShape.length);
    expectShape(values, stateName(state), stateShape, "the state's shape");
    checked.set(state, values);
  }
  const [cellIndex, directionIndex] = [CELLS.indexOf(cell), DIRECTIONS.indexOf(direction)];
  return {
    operation, states: kind.states, x, weights: weights.map(({ tensors }) => tensors), initial: checked, lengths, outputShape, stateShape,
    rules: { cell: cellIndex, direction: directionIndex, onnxOrder: isOnnxOrder, resetBefore, relu, batch, length, inputDim, hidden },
    sizes: [cellIndex, directionIndex, batch, length, inputDim, hidden],
  };
}

/** Of rnn(), lstm() or gru(), or of what takes the same: a run over whole sequences. */
export function sequencesProblem(operation: string, cell: Cell, xLike: TensorLike, parameters: object, options: object): RecurrentProblem {
  const { states, options: own } = KINDS[cell];
  expectOptions(operation, options, ['direction', 'lengths', ...states.map((state) => `${state}0`), ...own]);
  const x = numbers(xLike, 'x', 2, 3);
  const all = options as AllOptions;
  const initial = { h: all.h0, c: all.c0 };
  return recurrentProblem({ operation, cell, x, parameters, options: all, stateName: (state) => `${state}0`, initial, isStep: false });
}

/** By the core's names: a block for each parameter, with "2" behind the name of a second direction's. */
export function parameterBlocks(weights: RecurrentProblem['weights'], nameOf: (name: string) => string, block: (of: Numbers) => Block): Record<string, Block> {
  return Object.fromEntries(weights.flatMap((tensors, d) =>
    [...tensors].map(([name, of]) => [nameOf(name) + (d === 0 ? '' : '2'), block(of)])));
}

/** What goes into a call. */
export function inputFields(frame: Frame, { x, weights, initial, lengths, rules }: RecurrentProblem): Calls['recurrent'] {
  return {
    ...rules,
    x: frame.input(x),
    lengths: frame.input(lengths),
    ...Object.fromEntries([...initial].map(([state, values]) => [`${state}0`, frame.input(values)])),
    ...parameterBlocks(weights, (name) => name, (of) => frame.input(of)),
  };
}

/** What comes out of it. */
export function outputFields(frame: Frame, { states, outputShape, stateShape }: RecurrentProblem): Record<'outputs' | State, Block> {
  const made = { outputs: frame.output(outputShape), ...Object.fromEntries(states.map((state) => [state, frame.output(stateShape)])) };
  return made as Record<'outputs' | State, Block>;
}
