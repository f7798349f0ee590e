// Which adapter file answers for which operator.
import type { Engine } from 'qkv';

import { attention } from './attention.js';
import { attentionLayer } from './attention-layer.js';
import { adam, crossEntropy, gather } from './training.js';
import { graphRoutes } from './graph.js';
import { groupQueryAttention } from './group-query-attention.js';
import { multiHeadAttention } from './multi-head-attention.js';
import { OperatorNode, type Route } from './node.js';
import { recurrent } from './recurrent.js';
import { rotaryEmbedding } from './rotary.js';
import { gelu, layerNormalization, rmsNormalization, softmax, swish } from './rows.js';
import type { Case } from './suite.js';
import type { Value } from './values.js';

const OPERATORS: Readonly<Record<string, (engine: Engine, node: OperatorNode) => Route[]>> = {
  Attention: attention,
  GRU: recurrent,
  Gather: gather,
  Gelu: gelu,
  LSTM: recurrent,
  LayerNormalization: layerNormalization,
  RMSNormalization: rmsNormalization,
  RNN: recurrent,
  RotaryEmbedding: rotaryEmbedding,
  Softmax: softmax,
  SoftmaxCrossEntropyLoss: crossEntropy,
  Swish: swish,
  'com.microsoft.GroupQueryAttention': groupQueryAttention,
  'com.microsoft.MultiHeadAttention': multiHeadAttention,
  'composite.Adam': adam,
  'composite.MultiHeadAttentionLayer': attentionLayer,
};

export function runOperator(engine: Engine, node: OperatorNode): Route[] {
  const name = [node.domain, node.op].filter(Boolean).join('.');
  const operator = OPERATORS[name];
  if (!operator) throw new Error(`the adapter does not know the operator ${name}; it knows ${Object.keys(OPERATORS).join(', ')}`);
  const routes = operator(engine, node);
  node.expectAllRead();
  return routes;
}

/** Every way the adapter knows to compute the case's outputs with the library. */
export function runCase(engine: Engine, { op, domain, opset, attributes, graph, outputs }: Case, inputs: readonly (Value | null)[]): Route[] {
  if (op !== 'Graph' || domain !== 'composite') {
    return runOperator(engine, new OperatorNode({ op, domain, opset, attributes, inputs, wanted: outputs.map((output) => output !== null) }));
  }
  if (!graph || Object.keys(attributes).length > 0) {
    throw new Error('a Graph has no nodes, or attributes');
  }
  if (outputs.some((output) => output === null)) throw new Error('a composite case leaves an output out');
  return graphRoutes(engine, graph, opset, inputs, outputs.map((output) => output!.name), runOperator);
}
