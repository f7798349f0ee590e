// A layer's gradients against plain loops that are checked by finite differences, and what has to hold for all of them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, type MultiHeadGradients, tensor, type Tensor } from 'qkv';

import { makeCase } from './support/attention-case.js';
import type { AttentionRules } from './support/attention-reference.js';
import { loadVariant, threaded, variant } from './support/engine.js';
import { expectGradient, weightedSum } from './support/finite-differences.js';
import { type LayerGradients, layerGradients, type LayerNumbers, layerOutput, type PlainLayer } from './support/layer-reference.js';
import { observedDropout } from './support/observed-dropout.js';
import { allowedError, largestError, randomFloats, toDouble, toFloat } from './support/reference.js';

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b, 1), seed), shape);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

interface LayerCase {
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly headDim?: number;
  readonly bias?: boolean;
  /** Without it, x has no such axis. */
  readonly batch?: number;
  readonly length?: number;
  /** Of a context; without it, x is its own. */
  readonly contextLength?: number;
  readonly rules?: AttentionRules;
  readonly dropout?: { p: number; seed: number };
  readonly rotary?: PlainLayer['rotary'];
}

/** The case as the library takes it, and as the plain loops do. */
function set(on: Engine, one: LayerCase, seed = 1) {
  const { heads = 4, kvHeads = 2, headDim = 6, bias = true, batch, length = 20, contextLength, rules = {}, dropout, rotary } = one;
  const embedDim = 10;
  const layer = on.multiHeadAttention({ embedDim, numHeads: heads, numKvHeads: kvHeads, headDim, bias });
  const parameters = Object.fromEntries(Object.entries(layer.parameters).map(([name, { shape }], i) => [name, random(100 * seed + i, ...shape)]));
  layer.load(parameters);
  const axes = (rows: number) => [...(batch === undefined ? [] : [batch]), rows, embedDim];
  const [x, dOutput] = [random(100 * seed + 20, ...axes(length)), random(100 * seed + 21, ...axes(length))];
  const context = contextLength === undefined ? undefined : random(100 * seed + 22, ...axes(contextLength));
  const options = { ...rules, ...(dropout && { dropout }), ...(rotary && { rotary }), ...(context && { context }) };
  const sizes = { batch: batch ?? 1, heads, kvHeads, headDim, length, contextLength: contextLength ?? length, embedDim };
  const plain = (): PlainLayer => {
    const attended = makeCase({ batch: sizes.batch, heads, kvHeads, queryLen: length, keyLen: sizes.contextLength, dim: headDim, valueDim: headDim }, 1, rules);
    return { ...sizes, rules, rotary, dropout: dropout && observedDropout(engine, attended, dropout) };
  };
  const data = Object.fromEntries(Object.entries(parameters).map(([name, given]) => [name, given.data]));
  const numbers: LayerNumbers = { x: x.data, context: (context ?? x).data, parameters: data };
  return { layer, x, dOutput, options, plain, numbers };
}

const added = (a: ArrayLike<number>, b: ArrayLike<number>) => Float64Array.from(a, (x, i) => x + b[i]!);

/** What the library names, of the plain loops' gradients. */
function named({ dX, dContext, dParameters, dBias, dSinks }: LayerGradients, hasContext: boolean): Record<string, Float64Array> {
  return { ...(hasContext ? { dX, dContext } : { dX: added(dX, dContext) }), ...dParameters, ...(dBias.length > 0 && { dBias }), ...(dSinks.length > 0 && { dSinks }) };
}

const flat = ({ dParameters, ...others }: MultiHeadGradients) => ({ ...others, ...dParameters }) as Record<string, Tensor>;

function expectRight(what: string, one: LayerCase): void {
  const { layer, x, dOutput, options, plain, numbers } = set(engine, one);
  const made = flat(layer.backward(dOutput, x, options));
  const shapes = { dX: x.shape, dContext: options.context?.shape, dBias: one.rules?.bias?.shape, dSinks: one.rules?.sinks && [layer.numHeads] };
  const all = plain();
  const gradients = (order: number) => named(layerGradients(all, numbers, dOutput.data, { round: toFloat, backwards: (order & 1) !== 0, fromOutput: (order & 2) !== 0 }), options.context !== undefined);
  const exact = named(layerGradients(all, numbers, dOutput.data, { round: toDouble }), options.context !== undefined);
  const floats = upTo(4).map(gradients);
  assert.deepEqual(Object.keys(made).sort(), Object.keys(exact).sort(), what);
  for (const [name, { data, shape }] of Object.entries(made)) {
    assert.deepEqual(shape, { ...shapes, ...Object.fromEntries(Object.entries(layer.parameters).map(([n, p]) => [n, p.shape])) }[name], `${name}'s shape, ${what}`);
    const [error, allowed] = [largestError(data, exact[name]!), Math.max(...floats.map((float) => allowedError(float[name]!, exact[name]!)))];
    assert.ok(error <= allowed, `${name} is off by ${error}, allowed are ${allowed}, ${what}`);
  }
}

const bias = (...shape: number[]) => ({ data: random(9, ...shape).data.map((x, i) => (i % 7 === 3 ? -Infinity : x)), shape });
const mask = (...shape: number[]) => ({ data: Uint8Array.from(random(8, ...shape).data, (x) => Number(x > -0.6)), shape });
const positions = (count: number) => upTo(count).map((i) => (i * 7) % 11);

const ALL: AttentionRules = { scale: 0.4, softcap: 1.5, alibi: [0.1, 0.2, 0.3, 0.4], sinks: [0.5, -1, 0, 2], window: [7, 1], queryOffset: 2 };

const CASES: Record<string, LayerCase> = {
  'without options': {},
  'without biases': { bias: false },
  'of a batch': { batch: 2 },
  'of one head': { heads: 1, kvHeads: 1, headDim: 10 },
  'of as many key heads': { heads: 3, kvHeads: 3 },
  'of several tiles': { batch: 2, length: 140, rules: { causal: true } },
  'of a context': { contextLength: 31 },
  'of a context without biases, in a batch': { batch: 3, contextLength: 7, bias: false },
  'of one row': { length: 1 },
  causal: { rules: { causal: true, window: [5, 0] } },
  'causal by offsets': { batch: 2, contextLength: 31, rules: { causal: { offset: [3, -4] } } },
  'causal, the last query with the last key': { batch: 2, contextLength: 31, rules: { causal: 'bottom-right' } },
  keyLengths: { batch: 3, contextLength: 31, rules: { keyLengths: [31, 0, 4] } },
  sequences: { rules: { sequences: { query: [0, 3, 3, 20], key: [0, 3, 11, 20] } } },
  mask: { batch: 2, rules: { mask: mask(2, 1, 20, 20) } },
  bias: { batch: 2, rules: { bias: bias(4, 20, 20) } },
  'a broadcast bias': { rules: { bias: bias(1, 20) } },
  alibi: { rules: { alibi: true, causal: true } },
  'softcap and scale': { rules: { softcap: 0.7, scale: -0.8 } },
  sinks: { rules: { sinks: [0.5, -Infinity, 0, 2] } },
  dropout: { batch: 2, dropout: { p: 0.3, seed: 2 ** 40 + 3 } },
  'rotary of halves': { batch: 2, rotary: { pairing: 'halves', positions: positions(20), dims: 6 } },
  'rotary of neighbours': { rotary: { pairing: 'neighbours', positions: positions(20), dims: 4 }, bias: false },
  'rotary of a context': { contextLength: 20, rotary: { pairing: 'halves', positions: positions(20), dims: 2 } },
  'all at once': { batch: 2, rules: { ...ALL, bias: bias(4, 1, 20), mask: mask(20) }, dropout: { p: 0.2, seed: 5 }, rotary: { pairing: 'neighbours', positions: positions(20), dims: 6 } },
};

describe(`gradients of a layer, ${variant}`, () => {
  for (const [what, one] of Object.entries({
    'x its own context': { batch: 2, length: 5, rotary: { pairing: 'halves', positions: [3, 1, 4, 1, 5], dims: 4 }, rules: { ...ALL, bias: bias(4, 1, 5) } },
    'a context': { batch: 2, length: 3, contextLength: 5, rules: { ...ALL, bias: bias(4, 1, 5), causal: { offset: 2 } } as AttentionRules },
  } satisfies Record<string, LayerCase>)) {
    test(`the plain loops are right: finite differences in double precision, ${what}`, () => {
      const { queryOffset: _, ...rules } = one.rules as AttentionRules;
      const { plain, numbers, dOutput } = set(engine, { ...one, rules: what === 'a context' ? rules : one.rules });
      const layer: PlainLayer = { ...plain(), dropout: { p: 0.25, kept: (b, h, i, j) => (b + h + 2 * i + 3 * j) % 4 !== 0 } };
      const made = layerGradients(layer, numbers, dOutput.data, { round: toDouble });
      const loss = (changed: Partial<LayerNumbers>, more: Partial<PlainLayer> = {}) =>
        weightedSum(layerOutput({ ...layer, ...more }, { ...numbers, ...changed }, { round: toDouble }), dOutput.data);
      expectGradient(made.dX, numbers.x, (x) => loss({ x }), 'dX');
      expectGradient(made.dContext, numbers.context, (context) => loss({ context }), 'dContext');
      for (const [name, gradient] of Object.entries(made.dParameters)) {
        expectGradient(gradient, numbers.parameters[name as 'wq']!, (parameter) => loss({ parameters: { ...numbers.parameters, [name]: parameter } }), name);
      }
      const { bias: added } = layer.rules;
      const seen = [...added!.data].map((x) => (x === -Infinity ? 0 : x));
      const withBias = (data: Float64Array) => ({ rules: { ...layer.rules, bias: { ...added!, data: data.map((x, i) => (added!.data[i] === -Infinity ? -Infinity : x)) as never } } });
      expectGradient(made.dBias, seen, (data) => loss({}, withBias(data)), 'dBias');
      expectGradient(made.dSinks, layer.rules.sinks!, (sinks) => loss({}, { rules: { ...layer.rules, sinks: [...sinks] } }), 'dSinks');
    });
  }

  for (const [what, one] of Object.entries(CASES)) test(`as exact as a plain float program: ${what}`, () => expectRight(what, one));

  test('of self-attention dX is that of the same context, and what the context has', () => {
    const { layer, x, dOutput, options } = set(engine, CASES['all at once']!);
    const [own, apart] = [layer.backward(dOutput, x, options), layer.backward(dOutput, x, { ...options, context: x })];
    assert.deepEqual(own.dX.data, Float32Array.from(apart.dX.data, (term, i) => term + apart.dContext!.data[i]!));
    assert.deepEqual(own.dParameters, apart.dParameters);
    assert.ok(!('dContext' in own), 'there is a dContext of no context');
  });

  test('gradients by parameters come in the parameters’ order, and an optimizer takes both', () => {
    const { layer, x, dOutput } = set(engine, {});
    const { dParameters } = layer.backward(dOutput, x);
    assert.deepEqual(Object.keys(dParameters), Object.keys(layer.parameters));
    using optimizer = engine.adam({ lr: 0.01 });
    const loss = () => weightedSum(layer.forward(x).output.data, dOutput.data);
    const before = loss();
    optimizer.step(Object.values(layer.parameters as Record<string, Tensor>), Object.values(dParameters));
    assert.ok(loss() < before, `a step down the gradient took the loss from ${before} to ${loss()}`);
  });

  test('resident parameters and arguments give the same bits, and are not written to', () => {
    for (const one of [CASES['all at once']!, CASES['causal by offsets']!]) {
      const { layer, x, dOutput, options } = set(engine, one);
      const expected = layer.backward(dOutput, x, options);
      const before = Object.entries(layer.parameters).map(([name, { data, shape }]) => [name, tensor(data.slice(), shape)] as const);
      const resident = before.map(([name, given]) => [name, engine.resident(given)] as const);
      layer.load(Object.fromEntries(resident));
      const [given, from] = [engine.resident(dOutput), engine.resident(x)];
      assert.deepEqual(layer.backward(given, from, options), expected);
      assert.deepEqual(resident.map(([name, { data }]) => [name, data]), before.map(([name, { data }]) => [name, data]));
      assert.deepEqual([given.data, from.data], [dOutput.data, x.data]);
      for (const held of [given, from, ...resident.map(([, held]) => held)]) held.dispose();
    }
  });

  test('what asks for more than the output is passed over, and changes no bit', () => {
    const { layer, x, dOutput, options } = set(engine, CASES['all at once']!);
    const out = tensor(new Float32Array(x.data.length).fill(7), x.shape);
    const asked = layer.backward(dOutput, x, { ...options, weights: 'mean', scores: 'raw', logSumExp: true, out });
    assert.deepEqual(asked, layer.backward(dOutput, x, options));
    assert.ok(out.data.every((value) => value === 7), 'out was written to');
  });

  test('twice the gradient by the output is twice each gradient, bit for bit', () => {
    const { layer, x, dOutput, options } = set(engine, CASES['all at once']!);
    const [made, twice] = [dOutput, tensor(dOutput.data.map((value) => 2 * value), dOutput.shape)].map((given) => flat(layer.backward(given, x, options)));
    for (const [name, { data }] of Object.entries(made!)) assert.deepEqual(twice![name]!.data, data.map((value) => 2 * value), name);
  });

  test('a batch alone has the bits that it has among others', () => {
    const { layer, x, dOutput, options } = set(engine, { batch: 3, contextLength: 31, rotary: undefined, rules: { causal: 'bottom-right' } });
    const whole = layer.backward(dOutput, x, options);
    const batchOf = ({ data, shape: [, rows, dim] }: Tensor, b: number) => tensor(data.slice(b * rows! * dim!, (b + 1) * rows! * dim!), [1, rows!, dim!]);
    for (const b of upTo(3)) {
      const alone = layer.backward(batchOf(dOutput, b), batchOf(x, b), { ...options, context: batchOf(options.context!, b) });
      assert.deepEqual([alone.dX, alone.dContext], [batchOf(whole.dX, b), batchOf(whole.dContext!, b)], `batch ${b}`);
    }
  });

  test('axes of length 0 give gradients of zeros', () => {
    const layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 2 });
    const none = tensor(new Float32Array(0), [0, 4]);
    const { dX, dParameters } = layer.backward(none, none);
    assert.deepEqual(dX, none);
    const alone = layer.backward(random(1, 2, 4), random(2, 2, 4), { context: none });
    assert.deepEqual([alone.dX.data, alone.dContext], [new Float32Array(8), none]);
    for (const { data } of [...Object.values(dParameters), alone.dParameters.wk, alone.dParameters.wq]) assert.ok(data.every((value) => value === 0));
    assert.ok(alone.dParameters.bo!.data.every((value) => value !== 0));
  });

  test('memory does not grow with queries times keys', async () => {
    const length = 6144;
    // The scores of one head would take 151 MB.
    const small = await loadVariant({ maxMemory: 64 << 20, threads: 1 });
    const layer = small.multiHeadAttention({ embedDim: 4, numHeads: 2 });
    const { dX } = layer.backward(random(1, length, 4), random(2, length, 4), { window: [40, 0] });
    assert.ok(dX.data.every(Number.isFinite) && dX.data.some((value) => value !== 0));
    assert.ok(small.info().memory.used < 64 << 20, `${small.info().memory.used} bytes are in use`);
    small.dispose();
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const cases: LayerCase[] = [
      { heads: 8, kvHeads: 4, length: 150, rules: { sinks: upTo(8), causal: true }, dropout: { p: 0.3, seed: 7 } },
      { batch: 2, length: 70, contextLength: 140, bias: false, rules: { alibi: true } },
    ];
    const all = (on: Engine) => cases.map((one) => {
      const { layer, x, dOutput, options } = set(on, one);
      return layer.backward(dOutput, x, options);
    });
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = all(single);
    single.dispose();
    for (const threads of [1, 2, 3, 8]) {
      const many = await loadVariant({ threads });
      assert.deepEqual(all(many), expected, `${threads} threads gave other bits`);
      if (many !== engine) many.dispose();
    }
  });
});
