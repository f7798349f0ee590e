// What a layer of multi-head attention refuses of weights, ours and those of other libraries.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, type MultiHeadAttention, tensor, type Tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongNames, wrongTensor } from '../support/wrong.js';

let engine: Engine;
// Two heads of three dims over one head of keys, so that no two sizes are equal.
let layer: MultiHeadAttention;
let withoutBias: MultiHeadAttention;
before(async () => {
  engine = await loadVariant();
  layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, numKvHeads: 1, headDim: 3 });
  withoutBias = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, numKvHeads: 1, headDim: 3, bias: false });
});
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
type Weights = Record<string, unknown>;
// As JavaScript would call it, without TypeScript to help.
const loadInto = (into: MultiHeadAttention, parameters: unknown, options?: unknown) =>
  (into.load as (...args: unknown[]) => unknown).call(into, parameters, options);

const GOOD: Record<string, Record<string, Tensor>> = {
  qkv: { wq: zeros(4, 6), wk: zeros(4, 3), wv: zeros(4, 3), wo: zeros(6, 4), bq: zeros(6), bk: zeros(3), bv: zeros(3), bo: zeros(4) },
  pytorch: {
    'q_proj.weight': zeros(6, 4), 'k_proj.weight': zeros(3, 4), 'v_proj.weight': zeros(3, 4), 'out_proj.weight': zeros(4, 6),
    in_proj_bias: zeros(12), 'out_proj.bias': zeros(4),
  },
  keras: {
    'query/kernel': zeros(4, 2, 3), 'key/kernel': zeros(4, 1, 3), 'value/kernel': zeros(4, 1, 3), 'attention_output/kernel': zeros(2, 3, 4),
    'query/bias': zeros(2, 3), 'key/bias': zeros(1, 3), 'value/bias': zeros(1, 3), 'attention_output/bias': zeros(4),
  },
  onnx: { weights: zeros(4, 12), bias: zeros(12), wo: zeros(6, 4), bo: zeros(4) },
};

/** The weights of a source with some of them changed. */
const changed = (from: string, weights: Weights) => () => loadInto(layer, { ...GOOD[from], ...weights }, { from });

/** Each of a source's weights with its axes in another order, or with one axis of 1 more. */
const misfits = (from: string): Refusal[] => Object.entries(GOOD[from]!).flatMap(([name, { shape }]) => {
  const wrong = [[...shape].reverse(), [...shape.slice(1), shape[0]! + 1], [1, ...shape]].filter((other) => other.join() !== shape.join() && other.length < 4);
  return wrong.map((other): Refusal => [
    `${name} (${other.join(', ')})`, changed(from, { [name]: zeros(...other) }), 'SHAPE_MISMATCH',
    new RegExp(`^${name.replace('.', '\\.')} has shape \\(${other.join(', ')}\\), expected \\(${shape.join(', ')}\\): the layer's sizes as '${from}' has them`)]);
});

const missing = (from: string, name: string, expected: string): Refusal => [
  `no ${name}`, changed(from, { [name]: undefined }), 'INVALID_ARGUMENT', new RegExp(`^parameters has no ${expected}, expected all of wq, wk, wv and wo`)];

const noBias = (from: string, name: string): Refusal => [
  `${name} for a layer without`, () => loadInto(withoutBias, GOOD[from], { from }), 'INVALID_ARGUMENT',
  new RegExp(`^parameters has ${name}, but the layer was made with bias: false, expected only weights`)];

const twice = (from: string, weights: Weights, names: string): Refusal => [
  `${names} together`, changed(from, weights), 'INVALID_ARGUMENT', new RegExp(`^parameters has ${names}, expected one of them`)];

refuses('multiHeadAttention refuses weights', {
  engine: () => engine,
  untouched: () => [layer, withoutBias].flatMap(({ parameters }) => Object.values(parameters).map(({ data }) => data as Float32Array)),
  next: () => {
    const { wq, bq } = layer.parameters;
    const parameters = { ...layer.parameters } as unknown as Record<string, Tensor>;
    layer.load(parameters);
    assert.deepEqual([layer.parameters.wq, layer.parameters.bq], [wq, bq]);
    assert.deepEqual(layer.forward([[1, 2, 3, 4]]).output.shape, [1, 4]);
  },
  tables: {
    parameters: wrongNames('load: parameters', (parameters) => loadInto(layer, parameters), 'wq, wk, wv, wo, bq', true),
    options: wrongNames('load: options', (options) => loadInto(layer, GOOD['qkv'], options), 'from'),
    from: [
      ...wrongChoice('from', (from) => loadInto(layer, GOOD['qkv'], { from }), "'qkv' or 'pytorch' or 'keras' or 'onnx'"),
      ['names of another', () => loadInto(layer, GOOD['keras'], { from: 'pytorch' }), 'INVALID_ARGUMENT', /^load: parameters has no "query\/kernel"; it may have wq, .*q_proj_weight/],
    ],
    'our own': [
      ...wrongTensor('wq', (wq) => changed('qkv', { wq })(), 'rank 1 or 2 or 3', [[], [1, 1, 4, 6]], false),
      ...wrongTensor('bo', (bo) => changed('qkv', { bo })(), 'rank 1 or 2 or 3', [[]], false),
      ...misfits('qkv'),
      ...['wq', 'wk', 'wv', 'wo'].map((name) => missing('qkv', name, name)),
      noBias('qkv', 'bq'),
    ],
    "PyTorch's": [
      ...wrongTensor('in_proj_bias', (given) => changed('pytorch', { in_proj_bias: given })(), 'rank 1 or 2 or 3', [[]], false),
      ...misfits('pytorch'),
      missing('pytorch', 'k_proj.weight', 'wk or k_proj_weight or k_proj\\.weight'),
      missing('pytorch', 'out_proj.weight', 'wo or out_proj_weight or out_proj\\.weight or o_proj\\.weight'),
      noBias('pytorch', 'out_proj\\.bias'),
      twice('pytorch', { q_proj_weight: zeros(6, 4) }, 'q_proj_weight and q_proj\\.weight'),
      twice('pytorch', { in_proj_weight: zeros(12, 4) }, 'q_proj\\.weight and in_proj_weight'),
      twice('pytorch', { 'v_proj.bias': zeros(3) }, 'v_proj\\.bias and in_proj_bias'),
      ['a packed weight of other sizes', () => loadInto(layer, { in_proj_weight: zeros(18, 4) }, { from: 'pytorch' }), 'SHAPE_MISMATCH', /^in_proj_weight has shape \(18, 4\), expected \(12, 4\): the layer's sizes as 'pytorch' has them/],
    ],
    "Keras's": [
      ...misfits('keras'),
      ['heads and dims swapped', changed('keras', { 'query/kernel': zeros(4, 3, 2) }), 'SHAPE_MISMATCH', /^query\/kernel has shape \(4, 3, 2\), expected \(4, 2, 3\)/],
      ['heads and dims in one', changed('keras', { 'query/kernel': zeros(4, 6) }), 'SHAPE_MISMATCH', /^query\/kernel has shape \(4, 6\), expected \(4, 2, 3\)/],
      missing('keras', 'value/kernel', 'wv or value/kernel'),
      noBias('keras', 'query/bias'),
    ],
    "ONNX's": [
      ...misfits('onnx'),
      missing('onnx', 'weights', 'wq'),
      missing('onnx', 'wo', 'wo'),
      noBias('onnx', 'bo'),
      twice('onnx', { wk: zeros(4, 3) }, 'wk and weights'),
    ],
  },
});
