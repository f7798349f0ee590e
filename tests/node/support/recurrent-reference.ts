// The recurrent cells as plain loops over one sequence, rounded after every operation or not at all; see
// reference.ts. Gates are in our own order, i f g o and r z n.
import type { Rounding } from './reference.js';

type Numbers = ArrayLike<number>;
export type Cell = 'rnn' | 'lstm' | 'gru';
export const GATES: Readonly<Record<Cell, number>> = { rnn: 1, lstm: 4, gru: 3 };

export interface PlainParameters {
  readonly wx: Numbers;
  readonly wh: Numbers;
  readonly bx?: Numbers;
  readonly bh?: Numbers;
  readonly peephole?: Numbers;
}

export interface PlainState {
  h: Float64Array;
  c: Float64Array;
}

export interface Rules {
  readonly round: Rounding;
  readonly relu?: boolean;
  readonly resetAfter?: boolean;
}

export function project(x: Numbers, weight: Numbers, bias: Numbers | undefined, columns: number, round: Rounding): Float64Array {
  const out = new Float64Array(columns);
  for (let j = 0; j < columns; j++) {
    out[j] = bias?.[j] ?? 0;
    for (let k = 0; k < x.length; k++) out[j] = round(out[j]! + round(x[k]! * weight[k * columns + j]!));
  }
  return out;
}

function step(cell: Cell, x: Numbers, { wx, wh, bx, bh, peephole }: PlainParameters, { h, c }: PlainState, { round, relu, resetAfter = true }: Rules): PlainState {
  const hidden = h.length;
  const columns = GATES[cell] * hidden;
  const fromX = project(x, wx, bx, columns, round);
  const fromH = project(h, wh, bh, columns, round);
  const sigmoid = (sum: number) => round(1 / round(1 + round(Math.exp(-sum))));
  const tanh = (sum: number) => round(Math.tanh(sum));
  const sum = (gate: number, k: number) => round(fromX[gate * hidden + k]! + fromH[gate * hidden + k]!);
  const peep = (gate: number, k: number, cellState: number) => (peephole ? round(peephole[gate * hidden + k]! * cellState) : 0);
  if (cell === 'rnn') return { h: h.map((_, k) => (relu ? Math.max(0, sum(0, k)) : tanh(sum(0, k)))), c };
  if (cell === 'lstm') {
    const next = c.map((old, k) => {
      const [i, f] = [sigmoid(round(sum(0, k) + peep(0, k, old))), sigmoid(round(sum(1, k) + peep(1, k, old)))];
      return round(round(f * old) + round(i * tanh(sum(2, k))));
    });
    return { h: next.map((now, k) => round(sigmoid(round(sum(3, k) + peep(2, k, now))) * tanh(now))), c: next };
  }
  const reset = h.map((_, k) => sigmoid(sum(0, k)));
  const fromReset = resetAfter ? fromH : project(h.map((old, k) => round(reset[k]! * old)), wh, bh, columns, round);
  return {
    h: h.map((old, k) => {
      const update = sigmoid(sum(1, k));
      const recurrent = fromReset[2 * hidden + k]!;
      const candidate = tanh(round(fromX[2 * hidden + k]! + (resetAfter ? round(reset[k]! * recurrent) : recurrent)));
      return round(round(round(1 - update) * candidate) + round(update * old));
    }),
    c,
  };
}

/** x: (length, inputDim) -> every h, (length, hidden), and the last state. */
export function plainRun(cell: Cell, x: Numbers, inputDim: number, parameters: PlainParameters, start: PlainState, rules: Rules) {
  let state = start;
  const outputs: number[] = [];
  for (let at = 0; at < x.length; at += inputDim) {
    state = step(cell, Array.prototype.slice.call(x, at, at + inputDim) as number[], parameters, state, rules);
    outputs.push(...state.h);
  }
  return { outputs, ...state };
}
