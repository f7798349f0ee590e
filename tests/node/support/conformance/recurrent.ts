// RNN, LSTM and GRU.
import { type Engine, gruParameters, lstmParameters, type NamedTensors, rnnParameters, type Tensor } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import { reshape, stack, transpose } from './shapes.js';
import type { Floats } from './values.js';

type Cell = 'rnn' | 'lstm' | 'gru';
const CELLS: Readonly<Record<string, Cell>> = { RNN: 'rnn', LSTM: 'lstm', GRU: 'gru' };
const DIRECTIONS: Readonly<Record<string, string>> = { forward: 'forward', reverse: 'reverse', bidirectional: 'both' };
const IMPORTERS = { rnn: rnnParameters, lstm: lstmParameters, gru: gruParameters };

/** Which inputs are a batch's whole axis first, `layout` 1, or second. */
const batchFirst = (x: Floats, layout: boolean): Floats => (layout ? x : transpose(x, [1, 0, 2]));

function activationOf(node: OperatorNode, cell: Cell): object {
  const given = node.texts('activations');
  if (given === undefined) return {};
  if (cell !== 'rnn' || given.some((name) => name !== given[0])) throw new Error(`${node.op}: activations are ${given.join(', ')}`);
  return { activation: given[0]!.toLowerCase() };
}

/** A sequence of length 0 has a state of 0 there, and its initial one here. */
function withoutEmpty(state: Floats, lengths: readonly number[] | undefined): Floats {
  const [, batch, hidden] = state.shape as [number, number, number];
  return { data: state.data.map((value, i) => (lengths?.[Math.floor(i / hidden) % batch] === 0 ? 0 : value)), shape: state.shape };
}

/** (out, in) of each direction, as it lies there: the gates keep their order. */
function inTheirOrder(given: NamedTensors, hidden: number): object[] {
  const { W, R, B, P } = given as Record<string, Floats | undefined>;
  const part = (whole: Floats, d: number, count: number): Float32Array => whole.data.slice((d * whole.data.length) / count, ((d + 1) * whole.data.length) / count);
  return Array.from({ length: W!.shape[0]! }, (_, d) => {
    const weight = (whole: Floats) => transpose({ data: part(whole, d, whole.shape[0]!), shape: whole.shape.slice(1) }, [1, 0]);
    const bias = (half: number) => { const data = part(B!, 2 * d + half, 2 * B!.shape[0]!); return { data, shape: [data.length] }; };
    const peephole = () => {
      const [i, o, f] = [0, 1, 2].map((gate) => part(P!, d, P!.shape[0]!).slice(gate * hidden, (gate + 1) * hidden));
      return { data: Float32Array.from([...i!, ...f!, ...o!]), shape: [3 * hidden] };
    };
    return { wx: weight(W!), wh: weight(R!), ...(B && { bx: bias(0), bh: bias(1) }), ...(P && { peephole: peephole() }) };
  });
}

/** What a node asks for, as the library takes it: one batch axis first, and its gates where they are. */
function read(node: OperatorNode) {
  const cell = CELLS[node.op]!;
  const layout = node.flag('layout');
  const hidden = node.integer('hidden_size')!;
  const direction = DIRECTIONS[node.text('direction') ?? 'forward']!;
  const directions = direction === 'both' ? 2 : 1;
  const x = batchFirst(node.floats(0, 'X'), layout);
  const given = Object.fromEntries(Object.entries({ W: node.floats(1, 'W'), R: node.floats(2, 'R'), B: node.optionalFloats(3), P: node.optionalFloats(7) })
    .filter(([, value]) => value)) as NamedTensors;
  const lengths = node.optionalIntegers(4);
  const batch = x.shape[0]!;
  /** (directions, batch, hidden), of one direction without its axis. */
  const ownState = ({ data, shape }: Floats): Floats => ({ data, shape: directions === 2 ? shape : [batch, hidden] });
  const state = (input: number): Floats | undefined => {
    const initial = node.optionalFloats(input);
    return initial && ownState(withoutEmpty(layout ? transpose(initial, [1, 0, 2]) : initial, lengths));
  };
  const options = {
    direction, h0: state(5), ...(lengths && { lengths }), ...activationOf(node, cell),
    ...(cell === 'lstm' && { c0: state(6) }),
    ...(cell === 'gru' && { resetAfter: node.flag('linear_before_reset') }),
  };
  const theirOrder = cell === 'rnn' ? {} : { gateOrder: cell === 'lstm' ? 'iofg' : 'zrn' };
  const [forward, reverse] = inTheirOrder(given, hidden);
  return { cell, layout, hidden, directions, batch, length: x.shape[1]!, x, given, lengths, ownState, options, theirOrder, parameters: reverse ? { forward, reverse } : forward! };
}

export function recurrent(engine: Engine, node: OperatorNode): Route[] {
  const { cell, layout, hidden, directions, batch, length, x, given, options, theirOrder, parameters: theirs } = read(node);
  const run = (parameters: object, order: object): Floats[] => {
    const method = engine[cell] as (x: Floats, parameters: object, options: object) => { outputs: Tensor; h: Tensor; c?: Tensor };
    const { outputs, h, c } = method.call(engine, x, parameters, { ...options, ...order });
    const split = reshape(outputs, [batch, length, directions, hidden]);
    const last = (tensor: Tensor) => { const whole = reshape(tensor, [directions, batch, hidden]); return layout ? transpose(whole, [1, 0, 2]) : whole; };
    return [layout ? split : transpose(split, [1, 2, 0, 3]), last(h), ...(c ? [last(c)] : [])];
  };
  return [
    { name: 'imported parameters', outputs: run(IMPORTERS[cell](given, { from: 'onnx' }), {}) },
    { name: 'gates in their order', outputs: run(theirs, theirOrder) },
  ];
}

type DirectionGradients = Readonly<Record<'wx' | 'wh' | 'bx' | 'bh' | 'peephole', Floats>>;

/** By X, W, R, B, nothing, initial_h, initial_c and P, those that there are. Their layout is the first. */
export function recurrentGradients(engine: Engine, node: OperatorNode, [dY, dH, dC]: readonly (Floats | null | undefined)[]): (Floats | null)[] {
  const { cell, layout, hidden, directions, batch, length, x, given, lengths, ownState, options, theirOrder, parameters } = read(node);
  if (layout || lengths?.includes(0)) throw new Error(`${node.op}: the adapter knows no gradients of layout 1, nor of a sequence of length 0`);
  const above = {
    ...(dY && { dOutputs: reshape(transpose(dY, [2, 0, 1, 3]), [batch, length, directions * hidden]) }),
    ...(dH && { dH: ownState(dH) }),
    ...(dC && { dC: ownState(dC) }),
  };
  const method = engine[`${cell}Backward`] as unknown as (...args: object[]) => { dX: Tensor; dParameters: object; dH0: Tensor; dC0?: Tensor };
  const { dX, dParameters, dH0, dC0 } = method.call(engine, above, x, parameters, { ...options, ...theirOrder });
  const each = directions === 2 ? Object.values(dParameters) as DirectionGradients[] : [dParameters as DirectionGradients];
  const weight = (name: 'wx' | 'wh') => stack(each.map((of) => transpose(of[name], [1, 0])));
  const rows = (parts: (of: DirectionGradients) => readonly Float32Array[]) => stack(each.map((of) => {
    const data = Float32Array.from(parts(of).flatMap((part) => [...part]));
    return { data, shape: [data.length] };
  }));
  const peepholes = ({ peephole: { data } }: DirectionGradients) => [0, 2, 1].map((gate) => data.slice(gate * hidden, (gate + 1) * hidden));
  const state = (gradient: Tensor) => reshape(gradient, [directions, batch, hidden]);
  const all = [
    transpose(dX, [1, 0, 2]), weight('wx'), weight('wh'),
    given['B'] ? rows(({ bx, bh }) => [bx.data, bh.data]) : null, null,
    options.h0 ? state(dH0) : null, dC0 && node.has(6) ? state(dC0) : null, given['P'] ? rows(peepholes) : null,
  ];
  while (all.at(-1) === null) all.pop();
  return all;
}
