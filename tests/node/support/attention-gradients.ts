// The gradients of attention as plain loops, from what the plain loops of attention itself give; and what the library
// makes of a case.
import type { Engine } from 'qkv';

import {
  type AttentionCase, argumentIn, argumentsOf, type Extras, formOptions, resultIn, show,
} from './attention-case.js';
import { type Arithmetic, attention, type AttentionRules, type AttentionSizes, type Kept, placeIn } from './attention-reference.js';
import { allowedError, largestError, randomFloats, toDouble, toFloat } from './reference.js';

type Numbers = ArrayLike<number>;

export const GRADIENTS = ['dQuery', 'dKey', 'dValue', 'dBias', 'dSinks'] as const;
export type Gradients<Data = Float64Array> = Record<(typeof GRADIENTS)[number], Data>;

/** How sums are made; a row's mean of dWeights, over the keys or as the sum of dOutput * output, which is the same. */
export interface GradientArithmetic extends Arithmetic {
  fromOutput?: boolean | undefined;
}

/** Everything is (batch, heads, length, dim); dBias has the bias's own shape, and is empty without one, as dSinks. */
export function attentionGradients(
  dOutput: Numbers,
  query: Numbers,
  key: Numbers,
  value: Numbers,
  sizes: AttentionSizes,
  arithmetic: GradientArithmetic,
  rules: AttentionRules = {},
  dropout?: Kept,
): Gradients {
  const { batch = 1, heads, kvHeads, queryLen, keyLen, dim, valueDim } = sizes;
  const { round, backwards = false, fromOutput = false } = arithmetic;
  const { output, weights, logSumExp, scores } = attention(query, key, value, sizes, arithmetic, rules, dropout);
  const made: Gradients = {
    dQuery: new Float64Array(query.length),
    dKey: new Float64Array(key.length),
    dValue: new Float64Array(value.length),
    dBias: new Float64Array(rules.bias?.data.length ?? 0),
    dSinks: new Float64Array(rules.sinks?.length ?? 0),
  };
  const add = (to: Float64Array, at: number, term: number) => { to[at] = round(to[at]! + term); };
  const times = (a: number, b: number) => round(a * b);
  const scale = round(rules.scale ?? (dim === 0 ? 1 : 1 / Math.sqrt(dim)));
  const cap = round(rules.softcap ?? 0);
  const biasAt = rules.bias && placeIn(rules.bias.shape, [batch, heads, queryLen, keyLen]);
  const keep = round(1 - round(dropout?.p ?? 0));
  const rows = batch * heads * queryLen;
  for (let n = 0; n < rows; n++) {
    const row = backwards ? rows - 1 - n : n;
    const [i, h, b] = [row % queryLen, Math.floor(row / queryLen) % heads, Math.floor(row / queryLen / heads)];
    const kvRows = (b * kvHeads + Math.floor(h / (heads / kvHeads))) * keyLen;
    const seen = Array.from({ length: keyLen }, (_, j) => (backwards ? keyLen - 1 - j : j)).filter((j) => scores.biased[row * keyLen + j] !== -Infinity);
    // output = sum of dropout(weight) * value
    const dWeights = new Float64Array(keyLen);
    let mean = 0;
    for (const j of seen) {
      if (dropout?.kept(b, h, i, j) === false) continue;
      const weight = weights[row * keyLen + j]!;
      for (let d = 0; d < valueDim; d++) {
        const [up, at] = [dOutput[row * valueDim + d]!, (kvRows + j) * valueDim + d];
        add(dWeights, j, times(round(up / keep), value[at]!));
        add(made.dValue, at, times(round(weight / keep), up));
      }
      mean = round(mean + times(weight, dWeights[j]!));
    }
    if (fromOutput) {
      mean = 0;
      for (let at = row * valueDim; at < (row + 1) * valueDim; at++) mean = round(mean + times(dOutput[at]!, output[at]!));
    }
    // weight = exp(score) / (sum of exp(score) + exp(sink))
    const sink = rules.sinks?.[h];
    if (sink !== undefined && seen.length > 0) add(made.dSinks, h, -times(round(Math.exp(round(round(sink) - logSumExp[row]!))), mean));
    for (const j of seen) {
      const at = row * keyLen + j;
      const dScore = times(weights[at]!, round(dWeights[j]! - mean));
      // biased = cap * tanh(scaled / cap) + bias
      if (biasAt) add(made.dBias, biasAt(b, h, i, j), dScore);
      const tangent = cap === 0 ? 0 : round(Math.tanh(round(scores.raw[at]! / cap)));
      const dScaled = times(times(dScore, round(1 - times(tangent, tangent))), scale);
      // scaled = scale * sum of query * key
      for (let d = 0; d < dim; d++) {
        const [q, k] = [row * dim + d, (kvRows + j) * dim + d];
        add(made.dQuery, q, times(dScaled, key[k]!));
        add(made.dKey, k, times(dScaled, query[q]!));
      }
    }
  }
  return made;
}

/** A gradient by the output, nothing round about it. */
export const outputGradient = ({ sizes: { batch, heads, queryLen, valueDim } }: AttentionCase, seed = 0): Float32Array<ArrayBuffer> =>
  randomFloats(batch * heads * queryLen * valueDim, 1000 + seed);

/** What the library makes of a case, all of it (batch, heads, length, dim). Shapes are checked on the way. */
export function runBackward(engine: Engine, one: AttentionCase, dOutput: Float32Array, extras: Extras = {}): Gradients<Float32Array> {
  const { heads, kvHeads, queryLen, keyLen, dim, valueDim } = one.sizes;
  const made = engine.attentionBackward(argumentIn(one, dOutput, heads, queryLen, valueDim), ...argumentsOf(one), { ...one.rules, ...formOptions(one), ...extras });
  const { bias, sinks } = one.rules;
  const expectShape = (name: string, shape: readonly number[] | undefined, expected: readonly number[] | undefined) => {
    if (String(shape) !== String(expected)) throw new Error(`${name} has shape (${shape}), expected (${expected}), for ${show(one)}`);
  };
  expectShape('dBias', made.dBias?.shape, bias?.shape);
  expectShape('dSinks', made.dSinks?.shape, sinks && [heads]);
  return {
    dQuery: resultIn(one, 'dQuery', made.dQuery, heads, queryLen, dim),
    dKey: resultIn(one, 'dKey', made.dKey, kvHeads, keyLen, dim),
    dValue: resultIn(one, 'dValue', made.dValue, kvHeads, keyLen, valueDim),
    dBias: made.dBias?.data ?? new Float32Array(0),
    dSinks: made.dSinks?.data ?? new Float32Array(0),
  };
}

/** Rows of `dim` numbers, each from its end. */
function reversed<Data extends Float32Array | Float64Array>(rows: Data, dim: number): Data {
  const turned = rows.slice() as Data;
  for (let at = 0; dim > 0 && at < rows.length; at += dim) turned.subarray(at, at + dim).reverse();
  return turned;
}

/** The plain program's gradients, and those of the same sums in other orders. */
function* plainOrders({ query, key, value, sizes, rules }: AttentionCase, dOutput: Float32Array, dropout?: Kept): Generator<Gradients> {
  const { dim, valueDim } = sizes;
  const scale = Math.fround(rules.scale ?? (dim === 0 ? 1 : 1 / Math.sqrt(dim)));
  for (let order = 0; order < 16; order++) {
    const [backwards, dims, first, fromOutput] = [1, 2, 4, 8].map((bit) => (order & bit) !== 0);
    const turn = <Data extends Float32Array | Float64Array>(rows: Data, columns: number) => (dims ? reversed(rows, columns) : rows);
    const scaled = first ? query.map((x) => x * scale) : query;
    const all = first ? { ...rules, scale: 1 } : rules;
    const made = attentionGradients(turn(dOutput, valueDim), turn(scaled, dim), turn(key, dim), turn(value, valueDim), sizes, { round: toFloat, backwards, fromOutput }, all, dropout);
    const dQuery = turn(made.dQuery, dim);
    yield { ...made, dQuery: first ? dQuery.map((x) => Math.fround(x * scale)) : dQuery, dKey: turn(made.dKey, dim), dValue: turn(made.dValue, valueDim) };
  }
}

/**
 * A sentence on each gradient that is further off than it may be: see allowedError(). Some gradients are next to
 * nothing but rounding, where one order of the sums may be right by luck, so the worst of all counts.
 */
export function gradientFaults(made: Gradients<Float32Array>, one: AttentionCase, dOutput: Float32Array, dropout?: Kept): string[] {
  const exact = attentionGradients(dOutput, one.query, one.key, one.value, one.sizes, { round: toDouble }, one.rules, dropout);
  const errors = GRADIENTS.map((name) => ({ name, error: largestError(made[name], exact[name]), allowed: 0 }));
  for (const plain of plainOrders(one, dOutput, dropout)) {
    for (const each of errors) each.allowed = Math.max(each.allowed, allowedError(plain[each.name], exact[each.name]));
    if (errors.every(({ error, allowed }) => error <= allowed)) return [];
  }
  return errors.filter(({ error, allowed }) => !(error <= allowed)).map(({ name, error, allowed }) => `${name} is off by ${error}, allowed are ${allowed}`);
}
