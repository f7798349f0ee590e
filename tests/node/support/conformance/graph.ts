// Composite cases: a graph of operators, each of which the library computes.
import type { Engine } from 'qkv';

import { layerShortcut } from './graph-layer.js';
import { type Attribute, OperatorNode, type Route } from './node.js';
import { add } from './shapes.js';
import { type Floats, floatsOf, type Value } from './values.js';

export interface GraphNode {
  readonly op: string;
  readonly domain: string;
  readonly opset?: number;
  readonly attributes: Readonly<Record<string, Attribute>>;
  /** Names of the case's inputs and of others' outputs; '' is one left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

export type RunOperator = (engine: Engine, node: OperatorNode) => Route[];

/** Several nodes as one call: the name of what they make, and the gradients by name of all that they take. */
export interface Shortcut {
  readonly output: string;
  make(values: Values): Floats;
  back(values: Values, dOutput: Floats): (readonly [string, Floats])[];
}

const asValue = (name: string, { data, shape }: Floats): Value => ({ name, dtype: 'float32', data, shape });

/** The values of a graph by name, each computed when it is first asked for. */
export class Values {
  readonly #known = new Map<string, Value>();

  constructor(
    readonly engine: Engine,
    readonly graph: Graph,
    inputs: readonly (Value | null)[],
    readonly shortcut?: Shortcut,
  ) {
    for (const input of inputs) if (input) this.#known.set(input.name, input);
  }

  of(name: string): Value {
    if (!this.#known.has(name)) this.#compute(name);
    return this.#known.get(name)!;
  }

  floats(name: string): Floats {
    return floatsOf(this.of(name));
  }

  /** A node with the values of its inputs. */
  node({ op, domain, opset, attributes, inputs, outputs }: GraphNode): OperatorNode {
    return new OperatorNode({
      op,
      domain,
      opset: opset ?? this.graph.opset,
      attributes,
      inputs: inputs.map((name) => (name === '' ? null : this.of(name))),
      wanted: outputs.map((name) => name !== ''),
    });
  }

  #compute(name: string): void {
    const node = this.graph.makerOf(name);
    if (!node) throw new Error(`nothing in the graph makes ${name}`);
    if (this.shortcut?.output === name) {
      this.#known.set(name, asValue(name, this.shortcut.make(this)));
      return;
    }
    const outputs = this.#outputsOf(node);
    node.outputs.forEach((output, i) => {
      if (outputs[i]) this.#known.set(output, asValue(output, outputs[i]));
    });
    if (!this.#known.has(name)) throw new Error(`${node.op} did not return ${name}`);
  }

  #outputsOf(node: GraphNode): readonly (Floats | null)[] {
    const own = node.domain === '' && (node.op === 'MatMul' || node.op === 'Add');
    if (!own) return this.graph.run(this.engine, this.node(node))[0]!.outputs;
    // The bias of a layer goes into its linear; any other sum is a residual connection.
    const layer = this.graph.linearOf(node.outputs[0]!);
    if (layer) {
      const bias = layer.bias === undefined ? undefined : this.floats(layer.bias);
      return [this.engine.linear(this.floats(layer.x), this.floats(layer.weight), bias)];
    }
    return [add(this.floats(node.inputs[0]!), this.floats(node.inputs[1]!))];
  }
}

/** The names of x . weight + bias. */
export interface Linear {
  x: string;
  weight: string;
  bias?: string;
}

export class Graph {
  constructor(
    readonly nodes: readonly GraphNode[],
    readonly opset: number,
    readonly inputs: readonly (Value | null)[],
    readonly run: RunOperator,
  ) {
    for (const { op, domain, attributes, inputs: names } of nodes) {
      if (domain !== '' || (op !== 'MatMul' && op !== 'Add')) continue;
      if (Object.keys(attributes).length > 0 || names.length !== 2) throw new Error(`${op} has other than two inputs and no attribute`);
    }
  }

  makerOf(name: string): GraphNode | undefined {
    return this.nodes.find(({ outputs }) => outputs.includes(name));
  }

  usersOf(name: string): GraphNode[] {
    return this.nodes.filter(({ inputs }) => inputs.includes(name));
  }

  /** Of one of the case's inputs. */
  shapeOf(name: string | undefined): readonly number[] | undefined {
    return this.inputs.find((input) => input?.name === name)?.shape;
  }

  /** The layer that makes `name`: a MatMul, or an Add of a vector to one. */
  linearOf(name: string): Linear | undefined {
    const node = this.makerOf(name);
    if (node?.domain !== '') return undefined;
    const [first, second] = node.inputs as [string, string];
    if (node.op === 'MatMul') {
      if (this.shapeOf(second)?.length !== 2) throw new Error(`MatMul has ${second}, expected a weight of rank 2 among the inputs`);
      return { x: first, weight: second };
    }
    if (node.op !== 'Add') return undefined;
    const [product, bias] = this.shapeOf(first)?.length === 1 ? [second, first] : [first, second];
    if (this.shapeOf(bias)?.length !== 1 || this.makerOf(product)?.op !== 'MatMul') return undefined;
    return { ...this.linearOf(product)!, bias };
  }
}

export function graphRoutes(
  engine: Engine,
  nodes: readonly GraphNode[],
  opset: number,
  inputs: readonly (Value | null)[],
  outputs: readonly string[],
  run: RunOperator,
): Route[] {
  const graph = new Graph(nodes, opset, inputs, run);
  const values = new Values(engine, graph, inputs);
  // All of them, needed or not, so that none is passed over in silence.
  for (const name of nodes.flatMap((node) => node.outputs)) if (name !== '') values.of(name);
  const routes: Route[] = [{ name: 'one call an operator', outputs: outputs.map((name) => values.floats(name)) }];
  const shortcut = layerShortcut(graph);
  if (shortcut) {
    const shorter = new Values(engine, graph, inputs, shortcut);
    routes.push({ name: 'multiHeadAttention', outputs: outputs.map((name) => shorter.floats(name)) });
  }
  return routes;
}
