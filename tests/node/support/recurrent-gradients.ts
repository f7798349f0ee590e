// Backpropagation through time as plain loops over one sequence, from what the plain loops of the cells give; see
// recurrent-reference.ts. Gates are in our own order.
import { type Cell, GATES, type PlainParameters, type PlainState, plainRun, project, type Rules } from './recurrent-reference.js';

type Numbers = ArrayLike<number>;

export interface PlainGradients {
  readonly dX: Float64Array;
  readonly dH0: Float64Array;
  readonly dC0: Float64Array;
  readonly dParameters: Record<'wx' | 'wh' | 'bx' | 'bh' | 'peephole', Float64Array>;
}

/** What goes into the gates of a step, and what the loss says of it; a GRU's n has two parts. */
interface Sums {
  readonly fromX: Float64Array;
  readonly fromH: Float64Array;
}

export const noGradients = (cell: Cell, inputDim: number, hidden: number): PlainGradients['dParameters'] => {
  const columns = GATES[cell] * hidden;
  const [wx, wh, bx, bh, peephole] = [inputDim * columns, hidden * columns, columns, columns, 3 * hidden].map((count) => new Float64Array(count));
  return { wx: wx!, wh: wh!, bx: bx!, bh: bh!, peephole: peephole! };
};

class StepBack {
  readonly #round: (x: number) => number;
  constructor(
    readonly cell: Cell,
    readonly parameters: PlainParameters,
    readonly rules: Rules,
    readonly made: PlainGradients['dParameters'],
  ) {
    this.#round = rules.round;
  }

  #add(to: Float64Array, at: number, ...terms: number[]): void {
    for (const term of terms) to[at] = this.#round(to[at]! + this.#round(term));
  }

  #times(...factors: number[]): number {
    return factors.reduce((product, factor) => this.#round(product * factor));
  }

  readonly #less = (a: number, b: number): number => this.#round(a - b);
  readonly #sigmoid = (sum: number): number => { const r = this.#round; return r(1 / r(1 + r(Math.exp(-sum)))); };
  readonly #tanh = (sum: number): number => this.#round(Math.tanh(sum));
  readonly #sigmoidSlope = (y: number): number => this.#times(y, this.#less(1, y));
  readonly #tanhSlope = (y: number): number => this.#less(1, this.#times(y, y));

  /** out = bias + x . weight */
  project(x: Numbers, dOut: Float64Array, weight: Numbers, dX: Float64Array, dWeight: Float64Array, dBias: Float64Array): void {
    dOut.forEach((d, j) => {
      this.#add(dBias, j, d);
      for (let k = 0; k < x.length; k++) this.#add(dWeight, k * dOut.length + j, x[k]! * d);
    });
    for (let k = 0; k < x.length; k++) {
      let sum = 0;
      for (let j = 0; j < dOut.length; j++) sum = this.#round(sum + this.#times(dOut[j]!, weight[k * dOut.length + j]!));
      this.#add(dX, k, sum);
    }
  }

  rnn({ fromX, fromH }: Sums, _: PlainState, d: PlainState): Sums {
    const sums = d.h.map((dH, k) => {
      const sum = this.#round(fromX[k]! + fromH[k]!);
      return this.rules.relu ? (sum > 0 ? dH : 0) : this.#times(dH, this.#tanhSlope(this.#tanh(sum)));
    });
    d.h.fill(0);
    return { fromX: sums, fromH: sums };
  }

  lstm({ fromX, fromH }: Sums, before: PlainState, d: PlainState): Sums {
    const hidden = before.h.length;
    const { peephole } = this.parameters;
    const sums = new Float64Array(4 * hidden);
    for (let k = 0; k < hidden; k++) {
      const peep = (gate: number) => peephole?.[gate * hidden + k] ?? 0;
      const sum = (gate: number, c: number) => this.#round(this.#round(fromX[gate * hidden + k]! + fromH[gate * hidden + k]!) + this.#times(peep(gate < 2 ? gate : 2), c));
      const old = before.c[k]!;
      const [i, f, g] = [this.#sigmoid(sum(0, old)), this.#sigmoid(sum(1, old)), this.#tanh(sum(2, 0))];
      const now = this.#round(this.#times(f, old) + this.#times(i, g));
      const [o, tangent] = [this.#sigmoid(sum(3, now)), this.#tanh(now)];
      // h = o tanh(now), o = sigmoid(sum + peep now)
      const dO = this.#times(d.h[k]!, tangent, this.#sigmoidSlope(o));
      this.#add(d.c, k, this.#times(d.h[k]!, o, this.#tanhSlope(tangent)), this.#times(dO, peep(2)));
      // now = f old + i g
      const dNow = d.c[k]!;
      const [dI, dF] = [this.#times(dNow, g, this.#sigmoidSlope(i)), this.#times(dNow, old, this.#sigmoidSlope(f))];
      [dI, dF, this.#times(dNow, i, this.#tanhSlope(g)), dO].forEach((gradient, gate) => { sums[gate * hidden + k] = gradient; });
      [dI * old, dF * old, dO * now].forEach((gradient, gate) => this.#add(this.made.peephole, gate * hidden + k, gradient));
      d.c[k] = this.#times(dNow, f);
      this.#add(d.c, k, dI * peep(0), dF * peep(1));
    }
    d.h.fill(0);
    return { fromX: sums, fromH: sums };
  }

  gru({ fromX, fromH }: Sums, { h }: PlainState, d: PlainState): Sums {
    const hidden = h.length;
    const { resetAfter = true, round } = this.rules;
    const { wh, bh } = this.parameters;
    const gate = (at: number, k: number) => this.#sigmoid(round(fromX[at * hidden + k]! + fromH[at * hidden + k]!));
    const resetState = h.map((old, k) => this.#times(gate(0, k), old));
    const fromReset = resetAfter ? fromH : project(resetState, wh, bh, 3 * hidden, round);
    const [sums, dFromH, dFromReset, dResetState] = [3, 3, 3, 1].map((n) => new Float64Array(n * hidden)) as [Float64Array, Float64Array, Float64Array, Float64Array];
    for (let k = 0; k < hidden; k++) {
      const [r, z, n] = [gate(0, k), gate(1, k), 2 * hidden + k];
      const candidate = this.#tanh(round(fromX[n]! + (resetAfter ? this.#times(r, fromReset[n]!) : fromReset[n]!)));
      // now = (1 - z) candidate + z h
      sums[n] = this.#times(d.h[k]!, this.#less(1, z), this.#tanhSlope(candidate));
      sums[hidden + k] = this.#times(d.h[k]!, this.#less(h[k]!, candidate), this.#sigmoidSlope(z));
      d.h[k] = this.#times(d.h[k]!, z);
      // candidate = tanh(fromX + r fromH), or tanh(fromX + fromReset)
      if (resetAfter) dFromH[n] = this.#times(sums[n]!, r);
      else dFromReset[n] = sums[n]!;
    }
    if (!resetAfter) this.project(resetState, dFromReset, wh, dResetState, this.made.wh, this.made.bh);
    for (let k = 0; k < hidden; k++) {
      const r = gate(0, k);
      const dR = resetAfter ? this.#times(sums[2 * hidden + k]!, fromH[2 * hidden + k]!) : this.#times(dResetState[k]!, h[k]!);
      this.#add(d.h, k, dResetState[k]! * r);
      sums[k] = this.#times(dR, this.#sigmoidSlope(r));
    }
    dFromH.set(sums.subarray(0, 2 * hidden));
    return { fromX: sums, fromH: dFromH };
  }
}

/**
 * @param dOutputs (length, hidden), or nothing
 * @param dLast by the state after the last step
 * @param dParameters what is added to
 */
export function plainBackward(
  cell: Cell, dOutputs: Numbers, dLast: PlainState, x: Numbers, inputDim: number, parameters: PlainParameters, start: PlainState, rules: Rules,
  dParameters = noGradients(cell, inputDim, start.h.length),
): PlainGradients {
  const hidden = start.h.length;
  const back = new StepBack(cell, parameters, rules, dParameters);
  const d = { h: Float64Array.from(dLast.h), c: Float64Array.from(dLast.c) };
  const dX = new Float64Array(x.length);
  const at = (step: number) => Array.prototype.slice.call(x, step * inputDim, (step + 1) * inputDim) as number[];
  const states = [start];
  for (let step = 0; step < x.length / inputDim; step++) states.push(plainRun(cell, at(step), inputDim, parameters, states[step]!, rules));
  for (let step = x.length / inputDim - 1; step >= 0; step--) {
    d.h.forEach((value, k) => { d.h[k] = rules.round(value + (dOutputs[step * hidden + k] ?? 0)); });
    const before = states[step]!;
    const columns = GATES[cell] * hidden;
    const sums = {
      fromX: project(at(step), parameters.wx, parameters.bx, columns, rules.round),
      fromH: project(before.h, parameters.wh, parameters.bh, columns, rules.round),
    };
    const { fromX, fromH } = back[cell](sums, before, d);
    back.project(at(step), fromX, parameters.wx, dX.subarray(step * inputDim, (step + 1) * inputDim), dParameters.wx, dParameters.bx);
    back.project(before.h, fromH, parameters.wh, d.h, dParameters.wh, dParameters.bh);
  }
  return { dX, dH0: d.h, dC0: d.c, dParameters };
}
