// A layer of multi-head attention and its gradients as plain loops, put together of those of attention.
import type { RotaryOptions } from 'qkv';

import { swapAxes } from './attention-case.js';
import { attentionGradients, type GradientArithmetic } from './attention-gradients.js';
import { attention, type AttentionRules, type Kept } from './attention-reference.js';
import { angles, turned } from './rotary-reference.js';

type Numbers = ArrayLike<number>;
type Part = 'q' | 'k' | 'v' | 'o';
type PlainParameters = Readonly<Partial<Record<`w${Part}` | `b${Part}`, Numbers>>>;

export interface PlainLayer {
  readonly batch: number;
  readonly length: number;
  readonly contextLength: number;
  readonly embedDim: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly rules: AttentionRules;
  readonly dropout?: Kept | undefined;
  readonly rotary?: { readonly pairing: RotaryOptions['pairing']; readonly positions: readonly number[]; readonly dims: number } | undefined;
}

/** What a layer is given; of self-attention x is the context too. */
export interface LayerNumbers {
  readonly x: Numbers;
  readonly context: Numbers;
  readonly parameters: PlainParameters;
}

type Sum = Pick<GradientArithmetic, 'round' | 'backwards'>;

/** left . right of (rows, inner) and (inner, columns), plus one number a column; `at` says where an element is. */
function product(rows: number, inner: number, columns: number, left: (row: number, k: number) => number, right: (k: number, column: number) => number, plus: Numbers | undefined, { round, backwards }: Sum): Float64Array {
  const out = new Float64Array(rows * columns);
  for (let i = 0; i < out.length; i++) {
    const [row, column] = [Math.floor(i / columns), i % columns];
    let sum = 0;
    for (let n = 0; n < inner; n++) {
      const k = backwards ? inner - 1 - n : n;
      sum = round(sum + round(left(row, k) * right(k, column)));
    }
    out[i] = plus ? round(sum + plus[column]!) : sum;
  }
  return out;
}

/** Everything on the way from x to the output; queries and keys are (batch, heads, length, headDim), and turned. */
function steps(layer: PlainLayer, { x, context, parameters }: LayerNumbers, sum: Sum) {
  const { batch, length, contextLength, embedDim, heads, kvHeads, headDim, rules, dropout } = layer;
  const project = (from: Numbers, part: Part, inner: number, columns: number) =>
    product(from.length / inner, inner, columns, (row, k) => from[row * inner + k]!, (k, column) => parameters[`w${part}`]![k * columns + column]!, parameters[`b${part}`], sum);
  const apart = (from: Numbers, part: Part, len: number, count: number) => swapAxes(project(from, part, embedDim, count * headDim), batch, len, count, headDim);
  const query = turn(layer, apart(x, 'q', length, heads), length, sum, 1);
  const key = turn(layer, apart(context, 'k', contextLength, kvHeads), contextLength, sum, 1);
  const value = apart(context, 'v', contextLength, kvHeads);
  const sizes = { batch, heads, kvHeads, queryLen: length, keyLen: contextLength, dim: headDim, valueDim: headDim };
  const mixed = swapAxes(attention(query, key, value, sizes, sum, rules, dropout).output, batch, heads, length, headDim);
  return { query, key, value, sizes, mixed, output: project(mixed, 'o', heads * headDim, embedDim) };
}

/** Forth, or back by -1. */
function turn({ rotary, headDim }: PlainLayer, rows: Float64Array, length: number, { round }: Sum, way: 1 | -1): Float64Array {
  if (!rotary) return rows;
  const { pairing, positions, dims } = rotary;
  const angleOf = angles(positions, dims);
  const wayOf = (row: number, pair: number) => {
    const { cos, sin } = angleOf(row, pair);
    return { cos, sin: way * sin };
  };
  return turned({ data: rows, shape: [length, headDim] }, pairing, dims, wayOf, round);
}

export const layerOutput = (layer: PlainLayer, given: LayerNumbers, sum: Sum): Float64Array => steps(layer, given, sum).output;

/** By the names that the library gives them, and dX apart from dContext in self-attention too. */
export function layerGradients(layer: PlainLayer, given: LayerNumbers, dOutput: Numbers, arithmetic: GradientArithmetic) {
  const { batch, length, contextLength, embedDim, heads, kvHeads, headDim, rules, dropout } = layer;
  const { x, context, parameters } = given;
  const { query, key, value, sizes, mixed } = steps(layer, given, arithmetic);
  const made: Record<string, Float64Array> = {};
  /** The gradient by the rows; those by the parameters are kept. */
  const back = (part: Part, dOut: Numbers, rows: Numbers, inner: number, columns: number) => {
    const count = rows.length / inner;
    made[`w${part}`] = product(inner, count, columns, (i, row) => rows[row * inner + i]!, (row, j) => dOut[row * columns + j]!, undefined, arithmetic);
    if (parameters[`b${part}`]) made[`b${part}`] = product(1, count, columns, () => 1, (row, j) => dOut[row * columns + j]!, undefined, arithmetic);
    return product(count, columns, inner, (row, j) => dOut[row * columns + j]!, (j, i) => parameters[`w${part}`]![i * columns + j]!, undefined, arithmetic);
  };
  const dMixed = swapAxes(back('o', dOutput, mixed, heads * headDim, embedDim), batch, length, heads, headDim);
  const { dQuery, dKey, dValue, dBias, dSinks } = attentionGradients(dMixed, query, key, value, sizes, arithmetic, rules, dropout);
  const together = (rows: Float64Array, len: number, count: number) => swapAxes(rows, batch, count, len, headDim);
  const dX = back('q', together(turn(layer, dQuery, length, arithmetic, -1), length, heads), x, embedDim, heads * headDim);
  const ofKeys = back('k', together(turn(layer, dKey, contextLength, arithmetic, -1), contextLength, kvHeads), context, embedDim, kvHeads * headDim);
  const ofValues = back('v', together(dValue, contextLength, kvHeads), context, embedDim, kvHeads * headDim);
  const dContext = ofKeys.map((term, i) => arithmetic.round(term + ofValues[i]!));
  return { dX, dContext, dBias, dSinks, dParameters: made };
}

export type LayerGradients = ReturnType<typeof layerGradients>;
