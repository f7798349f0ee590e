// The gradients of composite cases: from the last node to the first, each by the library's own backward pass.
import type { Engine } from 'qkv';

import { Graph, type GraphNode, type RunOperator, type Shortcut, Values } from './graph.js';
import { layerShortcut } from './graph-layer.js';
import type { Backward } from './gradients.js';
import type { Route } from './node.js';
import { add } from './shapes.js';
import type { Case } from './suite.js';
import type { Floats, Value } from './values.js';

type Named = readonly (readonly [string, Floats])[];

/** Of one node: what it passes to each of its inputs. */
function backOf(values: Values, node: GraphNode, dOut: Floats, backward: Backward): Named {
  const { graph, engine } = values;
  const output = node.outputs[0]!;
  const layer = graph.linearOf(output);
  if (layer) {
    const { dX, dWeight, dBias } = engine.linearBackward(dOut, values.floats(layer.x), values.floats(layer.weight), layer.bias === undefined ? undefined : values.floats(layer.bias));
    return [[layer.x, dX], [layer.weight, dWeight], ...(dBias ? [[layer.bias!, dBias] as const] : [])];
  }
  if (node.domain === '' && node.op === 'Add') {
    return node.inputs.map((name) => {
      if (values.floats(name).shape.join() !== dOut.shape.join()) throw new Error(`${name} is added along axes that it has not, which the adapter does not sum`);
      return [name, dOut];
    });
  }
  const made = backward(engine, values.node(node), [dOut]);
  return made.flatMap((gradient, i) => (gradient ? [[node.inputs[i]!, gradient] as const] : []));
}

/** By every name that the loss depends on. The bias of a layer goes with its product, which then has none of its own. */
function gradientsOf(values: Values, upstream: Named, backward: Backward, shortcut?: Shortcut): ReadonlyMap<string, Floats> {
  const gradients = new Map<string, Floats>();
  const pass = (named: Named) => {
    for (const [name, term] of named) gradients.set(name, gradients.has(name) ? add(gradients.get(name)!, term) : term);
  };
  pass(upstream);
  for (const node of [...values.graph.nodes].reverse()) {
    const output = node.outputs[0]!;
    if (node.outputs.length !== 1) throw new Error(`${node.op} within a graph has ${node.outputs.length} outputs, expected 1`);
    const dOut = gradients.get(output);
    if (!dOut) continue;
    pass(shortcut?.output === output ? shortcut.back(values, dOut) : backOf(values, node, dOut, backward));
  }
  return gradients;
}

export function graphGradients(
  engine: Engine,
  { graph: nodes, opset, outputs }: Case,
  inputs: readonly (Value | null)[],
  upstream: readonly (Floats | null)[],
  run: RunOperator,
  backward: Backward,
): Route[] {
  const graph = new Graph(nodes!, opset, inputs, run);
  const from = upstream.flatMap((dOut, i) => (dOut ? [[outputs[i]!.name, dOut] as const] : []));
  const route = (name: string, shortcut?: Shortcut): Route => {
    const gradients = gradientsOf(new Values(engine, graph, inputs), from, backward, shortcut);
    return { name, outputs: inputs.map((input) => (input && gradients.get(input.name)) ?? null) };
  };
  const shortcut = layerShortcut(graph);
  return [route('one call an operator'), ...(shortcut ? [route("multiHeadAttention's backward", shortcut)] : [])];
}
