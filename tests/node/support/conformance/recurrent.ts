// RNN, LSTM and GRU.
import { type Engine, gruParameters, lstmParameters, type NamedTensors, rnnParameters, type Tensor } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import { reshape, transpose } from './shapes.js';
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

export function recurrent(engine: Engine, node: OperatorNode): Route[] {
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
  const state = (input: number): object | undefined => {
    const initial = node.optionalFloats(input);
    if (!initial) return undefined;
    const { data, shape } = withoutEmpty(layout ? transpose(initial, [1, 0, 2]) : initial, lengths);
    return { data, shape: directions === 2 ? shape : [batch, hidden] };
  };
  const options = {
    direction, h0: state(5), ...(lengths && { lengths }), ...activationOf(node, cell),
    ...(cell === 'lstm' && { c0: state(6) }),
    ...(cell === 'gru' && { resetAfter: node.flag('linear_before_reset') }),
  };
  const run = (parameters: object, order: object): Floats[] => {
    const method = engine[cell] as (x: Floats, parameters: object, options: object) => { outputs: Tensor; h: Tensor; c?: Tensor };
    const { outputs, h, c } = method.call(engine, x, parameters, { ...options, ...order });
    const split = reshape(outputs, [batch, x.shape[1]!, directions, hidden]);
    const last = (tensor: Tensor) => { const whole = reshape(tensor, [directions, batch, hidden]); return layout ? transpose(whole, [1, 0, 2]) : whole; };
    return [layout ? split : transpose(split, [1, 2, 0, 3]), last(h), ...(c ? [last(c)] : [])];
  };
  const [forward, reverse] = inTheirOrder(given, hidden);
  const theirs = reverse ? { forward, reverse } : forward!;
  return [
    { name: 'imported parameters', outputs: run(IMPORTERS[cell](given, { from: 'onnx' }), {}) },
    { name: 'gates in their order', outputs: run(theirs, cell === 'rnn' ? {} : { gateOrder: cell === 'lstm' ? 'iofg' : 'zrn' }) },
  ];
}
