import { expectNames, expectShape, invalid, type Numbers, numbers, oneOf, wholeNumber } from './arguments.js';
import type { BothDirections, LstmParameters, RecurrentParameters } from './recurrent-options.js';
import { Tensor, type TensorLike } from './tensor.js';

/** Whose names and layouts the parameters of a recurrent layer have. */
export interface RecurrentSource {
  /**
   * - `'pytorch'`: `weight_ih_l0` (gates * hidden, inputDim), `weight_hh_l0` (gates * hidden, hidden), `bias_ih_l0`,
   *   `bias_hh_l0`, of the other direction with `_reverse`; of a cell without `_l0`. Gates are i f g o and r z n.
   * - `'keras'`: `kernel` (inputDim, gates * hidden), `recurrent_kernel` (hidden, gates * hidden), `bias`, (2, gates *
   *   hidden) in a GRU whose reset comes after the product; of two directions after `forward/` and `backward/`.
   *   Gates are i f c o and z r h.
   * - `'onnx'`: `W` (directions, gates * hidden, inputDim), `R` (directions, gates * hidden, hidden), `B` (directions,
   *   2 * gates * hidden), `P` (directions, 3 * hidden). Gates are i o f c and z r h, peepholes i o f.
   */
  from: 'pytorch' | 'keras' | 'onnx';
  /** Which layer of a stack in PyTorch; the names of others may be there. Default 0, which is all that a cell and the others have. */
  layer?: number | undefined;
}

/** Tensors by the names that they have where they come from. */
export type NamedTensors = Readonly<Record<string, TensorLike>>;

/** The same names, as tensors. */
export type ImportedParameters<Parameters> = { [Name in keyof Parameters]: Tensor };
/** As rnn() and gru() take them: of one direction, or of both. */
export type ImportedRecurrent = ImportedParameters<RecurrentParameters> | BothDirections<ImportedParameters<RecurrentParameters>>;
/** As lstm() takes them: of one direction, or of both. */
export type ImportedLstm = ImportedParameters<LstmParameters> | BothDirections<ImportedParameters<LstmParameters>>;

/** Where each of our gates is among theirs. */
interface GateOrders {
  readonly own: readonly number[];
  readonly keras: readonly number[];
  readonly onnx: readonly number[];
}
const RNN: GateOrders = { own: [0], keras: [0], onnx: [0] };
const LSTM: GateOrders = { own: [0, 1, 2, 3], keras: [0, 1, 2, 3], onnx: [0, 2, 3, 1] };
const GRU: GateOrders = { own: [0, 1, 2], keras: [1, 0, 2], onnx: [1, 0, 2] };
const ONNX_PEEPHOLES = [0, 2, 1];

interface Layout {
  readonly order: readonly number[];
  /** Weights are (out, in). */
  readonly transposed: boolean;
}

/** (depth, gates * hidden) in our order; a bias has a depth of 1. A copy in any case. */
function arranged(data: Float32Array, depth: number, { order, transposed }: Layout): Float32Array<ArrayBuffer> {
  const columns = data.length / depth;
  const width = columns / order.length;
  return Float32Array.from(data, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const theirs = order[Math.floor(column / width)]! * width + (column % width);
    return data[transposed ? theirs * depth + row : row * columns + theirs]!;
  });
}

/** One direction as it came. */
interface Given {
  readonly wx: Numbers;
  readonly wh: Numbers;
  readonly bx?: Numbers | undefined;
  readonly bh?: Numbers | undefined;
  readonly peephole?: Numbers | undefined;
}

const vector = (data: Float32Array<ArrayBuffer>): Tensor => new Tensor(data, Object.freeze([data.length]));

function direction({ wx, wh, bx, bh, peephole }: Given, layout: Layout): ImportedParameters<LstmParameters> {
  const matrix = ({ data, shape }: Numbers): Tensor => {
    const [rows, columns] = layout.transposed ? [shape[1]!, shape[0]!] : [shape[0]!, shape[1]!];
    return new Tensor(arranged(data, rows, layout), Object.freeze([rows, columns]));
  };
  const bias = (values: Numbers) => vector(arranged(values.data, 1, { ...layout, transposed: false }));
  return {
    wx: matrix(wx),
    wh: matrix(wh),
    ...(bx && { bx: bias(bx) }),
    ...(bh && { bh: bias(bh) }),
    ...(peephole && { peephole: vector(arranged(peephole.data, 1, { order: ONNX_PEEPHOLES, transposed: false })) }),
  };
}

class Reader {
  constructor(
    readonly given: NamedTensors,
    readonly gates: number,
  ) {}

  has(name: string): boolean {
    return this.given[name] !== undefined;
  }

  /** Whether some of the second names are there; of both kinds at once one would be ignored in silence. */
  hasSecond(first: readonly string[], second: readonly string[], kinds: string): boolean {
    const [one, other] = [first, second].map((names) => names.find((name) => this.has(name)));
    if (one && other) invalid(`parameters has ${one} and ${other}, expected names ${kinds}.`);
    return other !== undefined;
  }

  needed(name: string, ...ranks: number[]): Numbers {
    if (!this.has(name)) invalid(`parameters has no ${name}, expected it among ${Object.keys(this.given).join(', ') || 'them'}.`);
    return numbers(this.given[name]!, name, ...ranks);
  }

  /** A row of `count` numbers, where it is there. */
  row(name: string, count: number): Numbers | undefined {
    if (!this.has(name)) return undefined;
    const values = numbers(this.given[name]!, name, 1);
    expectShape(values, name, [count], 'gates * hidden');
    return values;
  }
}

/** PyTorch's state_dict() of a layer or a cell. */
function fromPytorch(reader: Reader, suffix: string): Given {
  const wh = reader.needed(`weight_hh${suffix}`, 2);
  const hidden = wh.shape[1]!;
  const columns = reader.gates * hidden;
  expectShape(wh, `weight_hh${suffix}`, [columns, hidden], '(gates * hidden, hidden)');
  const wx = reader.needed(`weight_ih${suffix}`, 2);
  expectShape(wx, `weight_ih${suffix}`, [columns, null], "(gates * hidden, inputDim), hidden being weight_hh's last axis");
  return { wx, wh, bx: reader.row(`bias_ih${suffix}`, columns), bh: reader.row(`bias_hh${suffix}`, columns) };
}

function fromKeras(reader: Reader, prefix: string): Given {
  const wh = reader.needed(`${prefix}recurrent_kernel`, 2);
  const hidden = wh.shape[0]!;
  const columns = reader.gates * hidden;
  expectShape(wh, `${prefix}recurrent_kernel`, [hidden, columns], '(hidden, gates * hidden)');
  const wx = reader.needed(`${prefix}kernel`, 2);
  expectShape(wx, `${prefix}kernel`, [null, columns], "(inputDim, gates * hidden), hidden being recurrent_kernel's first axis");
  const name = `${prefix}bias`;
  if (!reader.has(name)) return { wx, wh };
  const bias = numbers(reader.given[name]!, name, 1, 2);
  if (bias.shape.length === 1) return { wx, wh, bx: reader.row(name, columns) };
  expectShape(bias, name, [2, columns], '(2, gates * hidden), of the input and of the state');
  const half = (i: number): Numbers => ({ data: bias.data.subarray(i * columns, (i + 1) * columns), shape: [columns] });
  return { wx, wh, bx: half(0), bh: half(1) };
}

/** Both directions of ONNX's operators, whose inputs have an axis of them. */
function fromOnnx(reader: Reader): Given[] {
  const whole = reader.needed('R', 3);
  const [directions, , hidden] = whole.shape as [number, number, number];
  if (directions !== 1 && directions !== 2) expectShape(whole, 'R', [1, null, null], '(directions, gates * hidden, hidden), directions being 1 or 2');
  const columns = reader.gates * hidden;
  expectShape(whole, 'R', [directions, columns, hidden], '(directions, gates * hidden, hidden)');
  const weights = reader.needed('W', 3);
  expectShape(weights, 'W', [directions, columns, null], "(directions, gates * hidden, inputDim), as R's first axes");
  const rows = (name: string, count: number) => {
    if (!reader.has(name)) return undefined;
    const values = numbers(reader.given[name]!, name, 2);
    expectShape(values, name, [directions, count], name === 'B' ? '(directions, 2 * gates * hidden)' : '(directions, 3 * hidden)');
    return values;
  };
  const [biases, peepholes] = [rows('B', 2 * columns), rows('P', 3 * hidden)];
  /** Part `i` of so many of the same shape. */
  const part = ({ data, shape }: Numbers, i: number, parts: number, axes = shape.slice(1)): Numbers =>
    ({ data: data.subarray((i * data.length) / parts, ((i + 1) * data.length) / parts), shape: axes });
  return Array.from({ length: directions }, (_, d) => ({
    wx: part(weights, d, directions),
    wh: part(whole, d, directions),
    bx: biases && part(biases, 2 * d, 2 * directions, [columns]),
    bh: biases && part(biases, 2 * d + 1, 2 * directions, [columns]),
    peephole: peepholes && part(peepholes, d, directions),
  }));
}

const PYTORCH = ['weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'];
const KERAS = ['kernel', 'recurrent_kernel', 'bias'];

/** What is given of one direction or of both, and how it is laid out. */
function read(given: NamedTensors, { from, layer = 0 }: RecurrentSource, orders: GateOrders, onnxNames: string[]): { given: Given[]; layout: Layout } {
  wholeNumber(layer, 'layer', 0);
  if (from !== 'pytorch') expectNoLayer(layer, `from: '${from}'`);
  const reader = new Reader(given, orders.own.length);
  const known = (names: readonly string[]) => expectNames(given, 'parameters', names);
  if (from === 'onnx') {
    known(onnxNames);
    return { given: fromOnnx(reader), layout: { order: orders.onnx, transposed: true } };
  }
  if (from === 'keras') {
    const bothPrefixes = ['forward/', 'backward/'];
    const [ofOne, ofBoth] = [KERAS, bothPrefixes.flatMap((prefix) => KERAS.map((name) => prefix + name))];
    known([...ofOne, ...ofBoth]);
    const prefixes = reader.hasSecond(ofOne, ofBoth, 'of one direction or of both') ? bothPrefixes : [''];
    return { given: prefixes.map((prefix) => fromKeras(reader, prefix)), layout: { order: orders.keras, transposed: false } };
  }
  const ofLayers = Object.keys(Object(given)).filter((name) => /^(weight|bias)_[ih]h_l(0|[1-9]\d*)(_reverse)?$/.test(name));
  known([...PYTORCH, ...ofLayers]);
  const isCell = reader.hasSecond(ofLayers, PYTORCH, 'of layers or of a cell');
  if (isCell) expectNoLayer(layer, 'parameters of a cell');
  const suffix = isCell ? '' : `_l${layer}`;
  // Any name of the other direction makes it needed, so that none of half a direction is left out in silence.
  const hasReverse = PYTORCH.some((name) => reader.has(`${name}${suffix}_reverse`));
  const suffixes = hasReverse ? [suffix, `${suffix}_reverse`] : [suffix];
  return { given: suffixes.map((one) => fromPytorch(reader, one)), layout: { order: orders.own, transposed: true } };
}

function expectNoLayer(layer: number, of: string): void {
  if (layer !== 0) invalid(`layer is ${layer}, expected 0 or none with ${of}: only PyTorch's stacks have layers.`);
}

function imported(parameters: NamedTensors, source: RecurrentSource, orders: GateOrders, onnxNames = ['W', 'R', 'B']): ImportedLstm {
  expectNames(source, 'options', ['from', 'layer']);
  oneOf(source.from, 'from', ['pytorch', 'keras', 'onnx']);
  const { given, layout } = read(parameters, source, orders, onnxNames);
  const [forward, reverse] = given.map((one) => direction(one, layout));
  return reverse ? { forward: forward!, reverse } : forward!;
}

/**
 * Parameters of another library's plain recurrent layer for rnn().
 *
 * @param parameters tensors by the names that they have there; not kept, not written to
 * @param source where they come from
 * @returns copies in our layout; `{ forward, reverse }` where there are two directions
 * @throws QkvError INVALID_ARGUMENT: a name that is missing, not known or of another kind than the rest, a layer where
 *   there are none; SHAPE_MISMATCH
 */
export const rnnParameters = (parameters: NamedTensors, source: RecurrentSource): ImportedRecurrent => imported(parameters, source, RNN);

/**
 * Parameters of another library's LSTM for lstm(), in the order i f g o, which is its default.
 *
 * @param parameters tensors by the names that they have there; not kept, not written to
 * @param source where they come from
 * @returns copies in our layout; `{ forward, reverse }` where there are two directions
 * @throws QkvError as of {@link rnnParameters}
 */
export const lstmParameters = (parameters: NamedTensors, source: RecurrentSource): ImportedLstm => imported(parameters, source, LSTM, ['W', 'R', 'B', 'P']);

/**
 * Parameters of another library's GRU for gru(), in the order r z n, which is its default. Where the other's reset
 * comes before the product (Keras: a bias of rank 1; ONNX: linear_before_reset is 0), tell gru() `resetAfter: false`.
 *
 * @param parameters tensors by the names that they have there; not kept, not written to
 * @param source where they come from
 * @returns copies in our layout; `{ forward, reverse }` where there are two directions
 * @throws QkvError as of {@link rnnParameters}
 */
export const gruParameters = (parameters: NamedTensors, source: RecurrentSource): ImportedRecurrent => imported(parameters, source, GRU);
