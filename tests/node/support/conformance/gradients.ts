// Which adapter function answers for the gradients of which operator: given those by its outputs, those by its
// inputs.
import type { Engine } from 'qkv';

import { attentionOptions, pastOf } from './attention.js';
import { attentionLayerGradients } from './attention-layer.js';
import { graphGradients } from './graph-gradients.js';
import { OperatorNode, type Route } from './node.js';
import { recurrentGradients } from './recurrent.js';
import { approximateOf, asRows, axisLast, axisOf, expectFloat32 } from './rows.js';
import { runOperator } from './operators.js';
import { concatLength, reshape, splitLength, transpose } from './shapes.js';
import type { Case } from './suite.js';
import { lookupOf, lossesOf } from './training.js';
import { type Floats, floatsOf, type Value } from './values.js';

/** One for each input, null where there is none. */
export type Gradients = (Floats | null)[];
export type Backward = (engine: Engine, node: OperatorNode, upstream: readonly (Floats | null)[]) => Gradients;

function softmax(engine: Engine, node: OperatorNode, [dOut]: readonly (Floats | null)[]): Gradients {
  const x = node.floats(0, 'input');
  const order = axisLast(node, x.shape.length);
  return [transpose(engine.softmaxBackward(transpose(dOut!, order), transpose(x, order)).dX, order)];
}

function norm(engine: Engine, node: OperatorNode, [dOut]: readonly (Floats | null)[]): Gradients {
  expectFloat32(node);
  const x = node.floats(0, 'X');
  const [scale, bias] = [node.floats(1, 'Scale'), node.optionalFloats(2)];
  const { rows, parameter } = asRows(x, axisOf(node, x.shape.length));
  const options = { gamma: parameter(scale), eps: node.number('epsilon') ?? 1e-5 };
  const upstream = reshape(dOut!, rows.shape);
  const { dX, dGamma, dBeta } = node.op === 'LayerNormalization'
    ? engine.layerNormBackward(upstream, rows, { ...options, beta: parameter(bias) })
    : { ...engine.rmsNormBackward(upstream, rows, options), dBeta: undefined };
  return [reshape(dX, x.shape), reshape(dGamma!, scale.shape), dBeta ? reshape(dBeta, bias!.shape) : null];
}

const gelu: Backward = (engine, node, [dOut]) =>
  [engine.geluBackward(dOut!, node.floats(0, 'X'), { approximate: approximateOf(node) }).dX];

function gather(engine: Engine, node: OperatorNode, [dOut]: readonly (Floats | null)[]): Gradients {
  const { table, indices } = lookupOf(node);
  return [engine.embeddingBackward(dOut!, table, indices).dTable, null];
}

/** Of rank 3 the heads are side by side; a past comes before the keys and values of rank 4. */
function attention(engine: Engine, node: OperatorNode, [dOutput]: readonly (Floats | null)[]): Gradients {
  const [query, key, value] = [node.floats(0, 'Q'), node.floats(1, 'K'), node.floats(2, 'V')];
  const past = pastOf(node, 4);
  const counts = { numHeads: node.integer('q_num_heads'), numKvHeads: node.integer('kv_num_heads') };
  const all = past ? { key: concatLength(past.key, key), value: concatLength(past.value, value) } : { key, value };
  const pastLength = past?.key.shape[2] ?? 0;
  const lengths = { query: query.shape.at(-2)!, key: all.key.shape.at(-2)!, past: pastLength };
  const options = { ...attentionOptions(node, lengths), ...(query.shape.length === 3 ? counts : {}) };
  const { dQuery, dKey, dValue, dBias } = engine.attentionBackward(dOutput!, query, all.key, all.value, options);
  const dMask = dBias ? reshape(dBias, node.optional(3)!.shape) : null;
  if (!past) return [dQuery, dKey, dValue, ...(dMask ? [dMask] : [])];
  const [[dPastKey, dNewKey], [dPastValue, dNewValue]] = [splitLength(dKey, pastLength), splitLength(dValue, pastLength)];
  return [dQuery, dNewKey, dNewValue, dMask, dPastKey, dPastValue];
}

/** The loss is the last thing computed: its gradient multiplies what crossEntropy() gives. */
function crossEntropy(engine: Engine, node: OperatorNode, [dOut]: readonly (Floats | null)[]): Gradients {
  const { reduction, dLogits: { data, shape } } = lossesOf(engine, node);
  const factor = (i: number) => dOut!.data[reduction === 'none' ? Math.floor(i / shape[1]!) : 0]!;
  return [{ data: Float32Array.from(data, (x, i) => x * factor(i)), shape }, null];
}

const OPERATORS: Readonly<Record<string, Backward>> = {
  Attention: attention,
  GRU: recurrentGradients,
  Gather: gather,
  Gelu: gelu,
  LSTM: recurrentGradients,
  LayerNormalization: norm,
  RMSNormalization: norm,
  RNN: recurrentGradients,
  Softmax: softmax,
  SoftmaxCrossEntropyLoss: crossEntropy,
  'composite.MultiHeadAttentionLayer': attentionLayerGradients,
};

/** Whether the adapter knows the gradients of an operator. */
export const hasGradients = (op: string): boolean => op === 'Graph' || Object.keys(OPERATORS).some((name) => name.split('.').at(-1) === op);

const backward: Backward = (engine, node, upstream) => {
  const operator = OPERATORS[[node.domain, node.op].filter(Boolean).join('.')];
  if (!operator) throw new Error(`the adapter does not know the gradients of ${node.op}; it knows ${Object.keys(OPERATORS).join(', ')}`);
  const gradients = operator(engine, node, upstream);
  node.expectAllRead();
  return gradients;
};

/** Every way the adapter knows to compute the gradients by the case's inputs with the library. */
export function runGradients(engine: Engine, one: Case, inputs: readonly (Value | null)[], upstream: readonly (Value | null)[]): Route[] {
  const dOutputs = upstream.map((value) => value && floatsOf(value));
  if (one.op === 'Graph' && one.domain === 'composite') return graphGradients(engine, one, inputs, dOutputs, runOperator, backward);
  const { op, domain, opset, attributes, outputs } = one;
  const node = new OperatorNode({ op, domain, opset, attributes, inputs, wanted: outputs.map((output) => output !== null) });
  return [{ name: 'the backward pass', outputs: backward(engine, node, dOutputs) }];
}
