// One attention problem: its numbers, the ways to hand it to the library, and whether what comes is right.
import assert from 'node:assert/strict';

import { type AttentionOptions, type Engine, tensor, type Tensor } from 'qkv';

import { attention, type AttentionRules, type AttentionSizes, type Kept } from './attention-reference.js';
import { allowedError, largestError, randomFloats, toDouble, toFloat } from './reference.js';

/** How the arguments lie: of rank 2 to 4, or with joined heads as a linear layer leaves them. */
export const FORMS = ['rank 2', 'rank 3', 'rank 4', 'blhd', 'joined', 'joined batch'] as const;
export type Form = (typeof FORMS)[number];

export interface AttentionCase {
  sizes: Required<AttentionSizes>;
  /** (batch, heads, length, dim), whatever the form. */
  query: Float32Array;
  key: Float32Array;
  value: Float32Array;
  rules: AttentionRules;
  form: Form;
}

type More = { form?: Form; magnitude?: number };

export function makeCase(sizes: AttentionSizes, seed: number, rules: AttentionRules = {}, more: More = {}): AttentionCase {
  const { form = 'rank 4', magnitude = 1 } = more;
  const { batch = 1, heads, kvHeads, queryLen, keyLen, dim, valueDim } = sizes;
  const floats = (count: number, from: number) => randomFloats(count, seed * 3 + from).map((x) => x * magnitude);
  return {
    sizes: { ...sizes, batch },
    query: floats(batch * heads * queryLen * dim, 0),
    key: floats(batch * kvHeads * keyLen * dim, 1),
    value: randomFloats(batch * kvHeads * keyLen * valueDim, seed * 3 + 2),
    rules,
    form,
  };
}

const lengthFirst = (form: Form) => form === 'blhd' || form.startsWith('joined');

/** (batch, outer, inner, dim) as (batch, inner, outer, dim). */
export function swapAxes<Data extends Float32Array | Float64Array>(data: Data, batch: number, outer: number, inner: number, dim: number): Data {
  const swapped = data.slice() as Data;
  for (let row = 0; row < batch * outer * inner; row++) {
    const [n, m, b] = [row % inner, Math.floor(row / inner) % outer, Math.floor(row / inner / outer)];
    swapped.set(data.subarray(row * dim, (row + 1) * dim), ((b * inner + n) * outer + m) * dim);
  }
  return swapped;
}

function shapeIn(form: Form, batch: number, heads: number, length: number, dim: number): number[] {
  switch (form) {
    case 'rank 2': return [length, dim];
    case 'rank 3': return [heads, length, dim];
    case 'rank 4': return [batch, heads, length, dim];
    case 'blhd': return [batch, length, heads, dim];
    case 'joined': return [length, heads * dim];
    case 'joined batch': return [batch, length, heads * dim];
  }
}

/** Numbers of (batch, heads, length, dim) as the case's form has them. */
export function argumentIn({ sizes: { batch }, form }: AttentionCase, data: Float32Array, heads: number, length: number, dim: number): Tensor<Float32Array> {
  return tensor(lengthFirst(form) ? swapAxes(data, batch, heads, length, dim) : data, shapeIn(form, batch, heads, length, dim));
}

/** The way back. The shape is checked. */
export function resultIn(one: AttentionCase, name: string, { data, shape }: Tensor, heads: number, length: number, dim: number): Float32Array {
  const expected = shapeIn(one.form, one.sizes.batch, heads, length, dim);
  if (String(shape) !== String(expected)) assert.fail(`${name} has shape (${shape}), expected (${expected}), for ${show(one)}`);
  return lengthFirst(one.form) ? swapAxes(data, one.sizes.batch, length, heads, dim) : data;
}

export function argumentsOf(one: AttentionCase): [Tensor<Float32Array>, Tensor<Float32Array>, Tensor<Float32Array>] {
  const { heads, kvHeads, queryLen, keyLen, dim, valueDim } = one.sizes;
  return [
    argumentIn(one, one.query, heads, queryLen, dim),
    argumentIn(one, one.key, kvHeads, keyLen, dim),
    argumentIn(one, one.value, kvHeads, keyLen, valueDim),
  ];
}

/** Options that say how the arguments lie. */
export function formOptions({ sizes, form }: AttentionCase): Pick<AttentionOptions, 'layout' | 'numHeads' | 'numKvHeads'> {
  if (form === 'blhd') return { layout: 'blhd' };
  return form.startsWith('joined') ? { numHeads: sizes.heads, numKvHeads: sizes.kvHeads } : {};
}

/** The axes of an extra before its last ones: those of batch and heads that the arguments have, `heads` many. */
export function leadingAxes({ sizes, form }: AttentionCase, heads: number | 'no heads' = sizes.heads): number[] {
  const batched = form === 'rank 4' || form === 'blhd' || form === 'joined batch';
  return [...(batched ? [sizes.batch] : []), ...(form === 'rank 2' || heads === 'no heads' ? [] : [heads])];
}

export type Extras = Pick<AttentionOptions, 'weights' | 'scores' | 'logSumExp' | 'dropout' | 'out'>;

/** What the library makes of it, all of it (batch, heads, length, dim). Its shapes are checked on the way. */
export function run(engine: Engine, one: AttentionCase, extras: Extras = {}) {
  const { heads, queryLen, keyLen, valueDim } = one.sizes;
  const options: AttentionOptions = { ...one.rules, ...formOptions(one), ...extras };
  const made = engine.attention(...argumentsOf(one), options);
  const expectShape = (name: string, { shape }: Tensor, expected: number[]) => {
    if (String(shape) !== String(expected)) assert.fail(`${name} has shape (${shape}), expected (${expected}), for ${show(one)}`);
  };
  if (extras.weights === 'heads') expectShape('weights', made.weights!, [...leadingAxes(one), queryLen, keyLen]);
  if (extras.scores) expectShape('scores', made.scores!, [...leadingAxes(one), queryLen, keyLen]);
  if (extras.logSumExp) expectShape('logSumExp', made.logSumExp!, [...leadingAxes(one), queryLen]);
  const output = resultIn(one, 'output', made.output, heads, queryLen, valueDim);
  return { output, weights: made.weights?.data, scores: made.scores?.data, logSumExp: made.logSumExp?.data, made };
}

/** The right numbers, and how far off the library may be: see allowedError(). */
export function truthOf({ query, key, value, sizes, rules }: AttentionCase, dropout?: Kept) {
  const exact = attention(query, key, value, sizes, { round: toDouble }, rules, dropout);
  // Both orders of the sums, so that the plain program is right by luck half as often.
  const plain = [false, true].map((backwards) => attention(query, key, value, sizes, { round: toFloat, backwards }, rules, dropout));
  const allowed = (of: (result: typeof exact) => Float64Array) => Math.max(...plain.map((one) => allowedError(of(one), of(exact))));
  return { exact, plain, allowed };
}

export type Truth = ReturnType<typeof truthOf>;
type Numbers = ReturnType<typeof attention>;

/** `context` is what a reader needs to run it again. */
export function expectNear(name: string, made: Float32Array, truth: Truth, of: (result: Numbers) => Float64Array, context: string): void {
  const error = largestError(made, of(truth.exact));
  const allowed = truth.allowed(of);
  assert.ok(error <= allowed, `${name} is off by ${error}, allowed are ${allowed}, for ${context}`);
}

/** Output, weights and log-sum-exp against the plain loops. */
export function expectRight(engine: Engine, one: AttentionCase) {
  const made = run(engine, one, { weights: 'heads', logSumExp: true });
  const truth = truthOf(one);
  for (const name of ['output', 'weights', 'logSumExp'] as const) expectNear(name, made[name]!, truth, (result) => result[name], show(one));
  return { output: made.output, weights: made.weights!, logSumExp: made.logSumExp!, truth };
}

/** A case in one line, its arrays by their shapes. */
export function show({ sizes, form, rules }: AttentionCase): string {
  const short = (_: string, value: unknown) => {
    if (value === Infinity) return 'Infinity';
    const { data, shape } = (value ?? {}) as { data?: object; shape?: number[] };
    return data && shape ? `${data.constructor.name} (${shape})` : value;
  };
  return JSON.stringify({ form, ...sizes, ...rules }, short);
}
