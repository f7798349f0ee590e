// Attention within a graph, from its input to its output projection, as the library's layer.
import type { MultiHeadAttention, MultiHeadForwardOptions, MultiHeadGradients } from 'qkv';

import { attentionOptions } from './attention.js';
import type { Graph, GraphNode, Linear, Shortcut, Values } from './graph.js';
import { OperatorNode } from './node.js';
import { rotationOf, rowsOf } from './rotary.js';
import { reshape } from './shapes.js';
import { type Floats, integersOf } from './values.js';

type Shape = readonly number[];

interface Layer extends Record<'q' | 'k' | 'v' | 'o', Linear> {
  node: GraphNode;
  rotary: GraphNode | undefined;
}

/**
 * Where the projections are linear layers of the shapes that a layer has, all or none with a bias, keys and
 * values have one source, and query and key are turned by the same positions for all batches or not at all.
 */
export function layerShortcut(graph: Graph): Shortcut | undefined {
  const node = graph.nodes.find(({ op, domain }) => op === 'Attention' && domain === '');
  if (!node || node.inputs[4] || node.outputs.length !== 1) return undefined;
  const rotations = node.inputs.slice(0, 2).map((name) => graph.makerOf(name)).map((maker) => (maker?.op === 'RotaryEmbedding' ? maker : undefined));
  if (!sameRotation(graph, rotations)) return undefined;
  const [q, k, v] = node.inputs.slice(0, 3).map((name, i) => graph.linearOf(rotations[i]?.inputs[0] ?? name));
  const product = graph.usersOf(node.outputs[0]!)[0]?.outputs[0];
  const sum = product && graph.usersOf(product)[0]?.outputs[0];
  const output = [sum, product].find((name) => name && graph.linearOf(name)?.x === node.outputs[0]);
  const o = output === undefined ? undefined : graph.linearOf(output);
  if (!q || !k || !v || !o || output === undefined || k.x !== v.x || (rotations[0] && k.x !== q.x)) return undefined;
  if ([q, k, v].some(({ bias }) => (bias === undefined) !== (o.bias === undefined))) return undefined;
  const [wq, wk, wv, wo] = [q, k, v, o].map(({ weight }) => graph.shapeOf(weight)!) as [Shape, Shape, Shape, Shape];
  if (`${wk}` !== `${wv}` || `${wo}` !== `${[...wq].reverse()}` || wk[0] !== wq[0]) return undefined;
  const layer: Layer = { node, rotary: rotations[0], q, k, v, o };
  return {
    output,
    make: (values) => withLayer(values, layer, (made, x, options) => made.forward(x, options).output),
    back: (values, dOutput) => withLayer(values, layer, (made, x, options) => gradientsOf(layer, made.backward(dOutput, x, options))),
  };
}

function sameRotation(graph: Graph, [query, key]: (GraphNode | undefined)[]): boolean {
  if (!query || !key) return query === key;
  const told = (node: GraphNode) => JSON.stringify([node.attributes, node.inputs.slice(1)]);
  const ids = graph.inputs.find((input) => input?.name === query.inputs[3]);
  const rows = ids ? rowsOf(integersOf(ids), ids.shape[1]!) : [];
  const shared = ids ? rows.every((row) => row.join() === rows[0]!.join()) : graph.shapeOf(query.inputs[1])?.[0] === 1;
  return shared && told(query) === told(key);
}

/** By the names of what the layer was given. */
function gradientsOf({ q, k, v, o }: Layer, { dX, dContext, dParameters }: MultiHeadGradients): (readonly [string, Floats])[] {
  return [
    [q.x, dX],
    ...(dContext ? [[k.x, dContext] as const] : []),
    ...Object.entries({ q, k, v, o }).flatMap(([part, { weight, bias }]) => {
      const by = (kind: string) => dParameters[`${kind}${part}` as 'wq' | 'bq']!;
      return [[weight, by('w')] as const, ...(bias === undefined ? [] : [[bias, by('b')] as const])];
    }),
  ];
}

type Use<Made> = (layer: MultiHeadAttention, x: Floats, options: MultiHeadForwardOptions) => Made;

function withLayer<Made>(values: Values, { node, rotary, q, k, v, o }: Layer, use: Use<Made>): Made {
  const { engine } = values;
  const weight = (linear: Linear) => values.floats(linear.weight);
  // The attention's own inputs are what the layer computes: only its options are wanted here.
  const bare = new OperatorNode({
    op: node.op,
    domain: node.domain,
    opset: values.graph.opset,
    attributes: node.attributes,
    inputs: node.inputs.map((name, i) => (i < 3 || name === '' ? null : values.of(name))),
    wanted: [true],
  });
  const [numHeads, numKvHeads] = [bare.integer('q_num_heads'), bare.integer('kv_num_heads')];
  if (!numHeads || !numKvHeads) throw new Error('attention within a graph has no q_num_heads and kv_num_heads');
  const [x, context] = [values.floats(q.x), k.x === q.x ? undefined : values.floats(k.x)];
  const headDim = weight(q).shape[1]! / numHeads;
  const layer = engine.multiHeadAttention({ embedDim: x.shape[2]!, numHeads, numKvHeads, headDim, bias: o.bias !== undefined });
  const linears = Object.entries({ q, k, v, o });
  try {
    layer.load(
      Object.fromEntries(linears.flatMap(([name, linear]) => [
        [`w${name}`, weight(linear)],
        ...(linear.bias === undefined ? [] : [[`b${name}`, values.floats(linear.bias)]]),
      ])),
      { from: 'qkv' },
    );
    const lengths = { query: x.shape[1]!, key: (context ?? x).shape[1]!, past: 0 };
    const options = attentionOptions(bare, lengths);
    bare.expectAllRead();
    const turned = rotary && rotaryOption(values, rotary, x, numHeads * headDim);
    return use(layer, x, { ...options, ...(context && { context }), ...(turned && { rotary: turned }) });
  } finally {
    layer.dispose();
  }
}

/** The layer turns all batches by the same positions. */
function rotaryOption(values: Values, node: GraphNode, x: Floats, width: number) {
  const bare = values.node({ ...node, inputs: ['', ...node.inputs.slice(1)] });
  const { cos, sin, positions, interleaved, dims } = rotationOf(bare, { data: x.data, shape: [...x.shape.slice(0, 2), width] }).rotation;
  const one = (cache: Floats) => (cache.shape.length === 3 ? reshape(cache, cache.shape.slice(1)) : cache);
  const pairing = interleaved ? 'neighbours' : 'halves';
  return { cos: one(cos), sin: one(sin), positions: positions?.[0], pairing, dims } as const;
}
