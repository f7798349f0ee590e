// The composite attention layer: projections with biases, attention, and a projection back.
import type { Engine, MultiHeadAttention } from 'qkv';

import type { OperatorNode, Route } from './node.js';
import type { Floats } from './values.js';

const NAMES = ['wq', 'bq', 'wk', 'bk', 'wv', 'bv', 'wo', 'bo'] as const;

function withLayer<Made>(engine: Engine, node: OperatorNode, use: (layer: MultiHeadAttention, x: Floats, options: object) => Made): Made {
  const [x, context] = [node.floats(0, 'x'), node.optionalFloats(1)];
  const numHeads = node.integer('num_heads');
  if (!numHeads) throw new Error('MultiHeadAttentionLayer has no num_heads');
  const numKvHeads = node.integer('kv_num_heads') ?? numHeads;
  const parameters = Object.fromEntries(NAMES.map((name, i) => [name, node.floats(i + 2, name)]));
  const layer = engine.multiHeadAttention({ embedDim: x.shape.at(-1)!, numHeads, numKvHeads, headDim: parameters['wq']!.shape[1]! / numHeads });
  try {
    layer.load(parameters);
    return use(layer, x, { causal: node.flag('is_causal') ? 'top-left' : false, ...(context && { context }) });
  } finally {
    layer.dispose();
  }
}

export const attentionLayer = (engine: Engine, node: OperatorNode): Route[] =>
  withLayer(engine, node, (layer, x, options) => [{ name: 'multiHeadAttention', outputs: [layer.forward(x, options).output] }]);

export const attentionLayerGradients = (engine: Engine, node: OperatorNode, [dOutput]: readonly (Floats | null)[]): (Floats | null)[] =>
  withLayer(engine, node, (layer, x, options) => {
    const { dX, dContext, dParameters } = layer.backward(dOutput!, x, options);
    return [dX, dContext ?? null, ...NAMES.map((name) => dParameters[name]!)];
  });
