import { expectOptions, expectShape, flag, type List, type Numbers, numbers, oneOf, wholeNumbers } from './arguments.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { Tensor, TensorLike } from './tensor.js';

/** What an RNN or a GRU learns for one direction; gates lie side by side, one in an RNN and three in a GRU. */
export interface RecurrentParameters {
  /** Weight of the input, (inputDim, gates * hidden). */
  wx: TensorLike;
  /** Weight of the state, (hidden, gates * hidden). */
  wh: TensorLike;
  /** Bias of the input, (gates * hidden), default 0. */
  bx?: TensorLike | undefined;
  /** Bias of the state, (gates * hidden), default 0. */
  bh?: TensorLike | undefined;
}

/** What an LSTM learns for one direction, with four gates. */
export interface LstmParameters extends RecurrentParameters {
  /**
   * (3 * hidden), of the gates i, f and o in every gateOrder (Gers & Schmidhuber, 2000): i and f add their part
   * times the old c to what goes into them, o its part times the new one. Default: none.
   */
  peephole?: TensorLike | undefined;
}

/** With `direction: 'both'`: the parameters of each. */
export interface BothDirections<Parameters> {
  /** Of the direction from the first step to the last. */
  forward: Parameters;
  /** Of the direction from the last step to the first. */
  reverse: Parameters;
}

/** What a run over sequences may be told, whatever the cell. */
export interface RecurrentOptions {
  /**
   * `'reverse'` reads each sequence from its last valid step to its first, `'both'` runs a network in each
   * direction (Schuster & Paliwal, 1997). Outputs are in time order always. Default `'forward'`.
   */
  direction?: 'forward' | 'reverse' | 'both' | undefined;
  /** How many steps of each sequence are valid: one number a batch. Default all. */
  lengths?: List | undefined;
  /** h before the first step: (hidden), or (batch, hidden) for a batch; for 'both' (2, ...) of these. Default 0. */
  h0?: TensorLike | undefined;
}

/** How an RNN computes. */
export interface RnnStepOptions {
  /** tanh(a) (default) or max(0, a). */
  activation?: 'tanh' | 'relu' | undefined;
}

/** How an LSTM computes. */
export interface LstmStepOptions {
  /** The order of the gates in weights and biases: `'ifgo'` (default; PyTorch, Keras) or `'iofg'` (ONNX). */
  gateOrder?: 'ifgo' | 'iofg' | undefined;
}

/** How a GRU computes. */
export interface GruStepOptions {
  /** The order of the gates in weights and biases: `'rzn'` (default; PyTorch) or `'zrn'` (Keras, ONNX). */
  gateOrder?: 'rzn' | 'zrn' | undefined;
  /**
   * Whether the reset gate comes after the product with wh (default; PyTorch, Keras) or before it (Cho et al.,
   * 2014; ONNX unless linear_before_reset says otherwise).
   */
  resetAfter?: boolean | undefined;
}

/** What rnn() may be told. */
export interface RnnOptions extends RecurrentOptions, RnnStepOptions {}

/** What lstm() may be told. */
export interface LstmOptions extends RecurrentOptions, LstmStepOptions {
  /** c before the first step, of h0's shape. Default 0. */
  c0?: TensorLike | undefined;
}

/** What gru() may be told. */
export interface GruOptions extends RecurrentOptions, GruStepOptions {}

/** What rnn() and gru() give. */
export interface RecurrentResult {
  /**
   * Every h in time order: (length, hidden) or (batch, length, hidden); for 'both' the last axis is 2 * hidden, the
   * forward half first. 0 beyond a sequence's length.
   */
  outputs: Tensor;
  /**
   * h after the last valid step that the direction took: (hidden) or (batch, hidden), for 'both' (2, ...) of these.
   * A sequence of length 0 keeps its initial state.
   */
  h: Tensor;
}

/** What lstm() gives. */
export interface LstmResult extends RecurrentResult {
  /** c after that step, of h's shape. */
  c: Tensor;
}

/** The state of an RNN or a GRU between two steps. */
export interface RecurrentState {
  /** (hidden), or (batch, hidden) for a batch. */
  h: TensorLike;
}

/** The state of an LSTM between two steps. */
export interface LstmState extends RecurrentState {
  /** Of h's shape. */
  c: TensorLike;
}

type Cell = 'rnn' | 'lstm' | 'gru';
type AllOptions = RnnOptions & LstmOptions & Omit<GruOptions, 'gateOrder'> & { gateOrder?: string | undefined };

/** As in cpp/include/qkv/recurrent.hpp. */
const CELLS: readonly Cell[] = ['rnn', 'lstm', 'gru'];
const DIRECTIONS = ['forward', 'reverse', 'both'] as const;

interface CellKind {
  readonly gates: number;
  readonly parameters: readonly string[];
  readonly states: readonly ('h' | 'c')[];
  readonly options: readonly string[];
  /** The first is ours, the second ONNX's. */
  readonly gateOrders: readonly string[];
}

const PARAMETERS = ['wx', 'wh', 'bx', 'bh'];
const KINDS: Readonly<Record<Cell, CellKind>> = {
  rnn: { gates: 1, parameters: PARAMETERS, states: ['h'], options: ['activation'], gateOrders: [] },
  lstm: { gates: 4, parameters: [...PARAMETERS, 'peephole'], states: ['h', 'c'], options: ['gateOrder'], gateOrders: ['ifgo', 'iofg'] },
  gru: { gates: 3, parameters: PARAMETERS, states: ['h'], options: ['gateOrder', 'resetAfter'], gateOrders: ['rzn', 'zrn'] },
};

/** Parameters of one direction, checked. */
interface Weights {
  readonly hidden: number;
  readonly wx: Numbers;
  readonly wh: Numbers;
  readonly bx: Numbers | undefined;
  readonly bh: Numbers | undefined;
  readonly peephole: Numbers | undefined;
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
  return { hidden, wx, wh, bx: row('bx', gates), bh: row('bh', gates), peephole: row('peephole', 3) };
}

/** Of the one direction, or of forward and reverse. */
function allWeights(operation: string, kind: CellKind, parameters: object, inputDim: number, both: boolean): Weights[] {
  if (!both) return [weightsOf(kind, parameters, inputDim, '', operation)];
  expectOptions(operation, parameters, ['forward', 'reverse'], 'parameters');
  const { forward, reverse } = parameters as Partial<BothDirections<LstmParameters>>;
  const first = weightsOf(kind, forward!, inputDim, 'forward.', `${operation}: forward`);
  const second = weightsOf(kind, reverse!, inputDim, 'reverse.', `${operation}: reverse`);
  expectShape(second.wh, 'reverse.wh', first.wh.shape, "forward.wh's shape");
  return [first, second];
}

function weightFields(frame: Frame, { wx, wh, bx, bh, peephole }: Weights) {
  return {
    wx: frame.input(wx),
    wh: frame.input(wh),
    bx: frame.input(bx),
    bh: frame.input(bh),
    peephole: frame.input(peephole),
  };
}

interface Run {
  readonly operation: string;
  readonly cell: Cell;
  readonly x: Numbers;
  readonly parameters: object;
  readonly options: AllOptions;
  /** What the states before the first step are called. */
  readonly stateName: (state: 'h' | 'c') => string;
  readonly initial: Readonly<Partial<Record<'h' | 'c', TensorLike | undefined>>>;
  /** (batch?, length?, inputDim), of which a step has no length. */
  readonly isStep: boolean;
}

function run(memory: EngineMemory, { operation, cell, x, parameters, options, stateName, initial, isStep }: Run): LstmResult {
  const kind = KINDS[cell];
  const [ownOrder, onnxOrder] = kind.gateOrders;
  const { direction = 'forward', gateOrder = ownOrder, activation = 'tanh', resetAfter = true } = options;
  const both = oneOf(direction, 'direction', DIRECTIONS) === 'both';
  const isOnnxOrder = gateOrder !== undefined && oneOf(gateOrder, 'gateOrder', kind.gateOrders) === onnxOrder;
  const relu = oneOf(activation, 'activation', ['tanh', 'relu']) === 'relu';
  const resetBefore = !flag(resetAfter, 'resetAfter');
  const sizes = x.shape.slice(0, -1);
  const length = isStep ? 1 : sizes.pop()!;
  const [batch = 1] = sizes;
  const inputDim = x.shape.at(-1)!;
  const lengths = options.lengths === undefined ? undefined : wholeNumbers(options.lengths, 'lengths', 0, length, 'one a batch', batch);
  const [first, second] = allWeights(operation, kind, parameters, inputDim, both);
  const { hidden } = first!;

  const outputShape = [...(isStep ? sizes : [...sizes, length]), both ? 2 * hidden : hidden];
  const stateShape = [...(both ? [2] : []), ...sizes, hidden];
  const frame = memory.frame();
  const fields: Record<string, Block> = {};
  const made: Partial<Record<'h' | 'c', Block>> = {};
  for (const state of kind.states) {
    const given = initial[state];
    if (isStep || given !== undefined) {
      const values = numbers(given!, stateName(state), stateShape.length);
      expectShape(values, stateName(state), stateShape, "the state's shape");
      fields[`${state}0`] = frame.input(values);
    }
    fields[state] = made[state] = frame.output(stateShape);
  }
  for (const [name, block] of Object.entries(second ? weightFields(frame, second) : {})) fields[`${name}2`] = block;
  const outputs = frame.output(outputShape);
  frame.run(operation, 'recurrent', {
    ...fields,
    ...weightFields(frame, first!),
    ...frame.workspace(memory.module.recurrentWorkspaceBytes(CELLS.indexOf(cell), DIRECTIONS.indexOf(direction), batch * length, inputDim, hidden)),
    cell: CELLS.indexOf(cell),
    direction: DIRECTIONS.indexOf(direction),
    onnxOrder: isOnnxOrder,
    resetBefore, relu, batch, length, inputDim, hidden, outputs,
    x: frame.input(x),
    lengths: frame.input(lengths),
  });
  const read = (state: 'h' | 'c') => frame.read(made[state]!, stateShape);
  return { outputs: frame.read(outputs, outputShape), h: read('h'), ...(made.c && { c: read('c') }) } as LstmResult;
}

/** rnn(), lstm() or gru(). */
export function recurrent(memory: EngineMemory, cell: Cell, xLike: TensorLike, parameters: object, options: object = {}): LstmResult {
  const { states, options: own } = KINDS[cell];
  const starts = states.map((state) => `${state}0`);
  expectOptions(cell, options, ['direction', 'lengths', ...starts, ...own]);
  const x = numbers(xLike, 'x', 2, 3);
  const all = options as AllOptions;
  const initial = { h: all.h0, c: all.c0 };
  return run(memory, { operation: cell, cell, x, parameters, options: all, stateName: (state) => `${state}0`, initial, isStep: false });
}

/** rnnStep(), lstmStep() or gruStep(). */
export function recurrentStep(memory: EngineMemory, cell: Cell, xLike: TensorLike, state: object, parameters: object, options: object = {}): Omit<LstmResult, 'outputs'> {
  const operation = `${cell}Step`;
  const { states, options: own } = KINDS[cell];
  expectOptions(operation, state, states, 'state');
  expectOptions(operation, options, own);
  const x = numbers(xLike, 'x', 1, 2);
  const { outputs, ...after } = run(memory, {
    operation, cell, x, parameters, options: options as AllOptions, stateName: (name) => name, initial: state, isStep: true,
  });
  void outputs;
  return after;
}
