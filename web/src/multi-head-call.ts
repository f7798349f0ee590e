import { expectOptions, expectShape, type Numbers, numbers } from './arguments.js';
import { AttentionCall } from './attention.js';
import { type AttentionHeads, attentionHeads, type Heads } from './heads.js';
import { LinearCall } from './linear.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { MultiHeadForwardOptions, ParameterName } from './multi-head.js';
import { RotaryCall } from './rotary.js';
import { SCORE_OPTIONS, type ScoreOptions } from './score-options.js';
import { sizeOf, type TensorLike } from './tensor.js';

/** What a layer is made of, its parameters checked. */
export interface LayerParts {
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly parameters: Readonly<Partial<Record<ParameterName, Numbers>>>;
}

/** What a call of a layer was given, checked; its context is x where there is none. */
export interface LayerArguments {
  readonly x: Numbers;
  readonly context: Numbers;
  readonly options: MultiHeadForwardOptions;
}

const OPTIONS = [...SCORE_OPTIONS, 'context', 'rotary', 'out'];

export function layerArguments(method: string, embedDim: number, xLike: TensorLike, options: MultiHeadForwardOptions = {}): LayerArguments {
  expectOptions(method, options, OPTIONS);
  const x = numbers(xLike, 'x', 2, 3);
  expectShape(x, 'x', [...x.shape.slice(0, -1), embedDim], "its last axis is the layer's embedDim");
  const context = options.context === undefined ? x : numbers(options.context, 'context', x.shape.length);
  expectShape(context, 'context', [...x.shape.slice(0, -2), null, embedDim], "x's batch, and the layer's embedDim");
  return { x, context, options };
}

export const rowsOf = ({ shape }: Numbers): number => sizeOf(shape.slice(0, -1));

/** Queries or keys that turn, forth and back. */
interface Turn {
  readonly call: RotaryCall;
  readonly heads: Heads;
}

function turnBlock(name: string, turn: Turn | undefined, rows: Block, backward: boolean): void {
  if (!turn) return;
  const [batch, count] = turn.heads.sizes;
  turn.call.run(name, batch, count, turn.heads.strides, rows, rows, backward);
}

/** From x to the heads' outputs side by side, over blocks of a frame: what a layer's two directions share. */
export class HeadsCall {
  readonly x: Block;
  readonly context: Block;
  readonly query: LinearCall;
  readonly key: LinearCall;
  readonly value: LinearCall;
  readonly heads: AttentionHeads;
  readonly attention: AttentionCall;
  /** The heads' outputs, (rows of x, numHeads * headDim). */
  readonly mixed: Block;
  /** Of queries and keys, where they turn. */
  readonly #turns: readonly Turn[];

  /** Reads `options`, which are those of the call or some of them, and reserves in the frame what is needed. */
  constructor(memory: EngineMemory, frame: Frame, layer: LayerParts, given: LayerArguments, options: ScoreOptions) {
    const { x, context } = given;
    const { wq, wk, wv, bq, bk, bv } = layer.parameters;
    this.query = new LinearCall(memory, frame, rowsOf(x), wq!, bq);
    this.key = new LinearCall(memory, frame, rowsOf(context), wk!, bk);
    this.value = new LinearCall(memory, frame, rowsOf(context), wv!, bv);
    const projected = (from: Numbers, { shape }: LinearCall) => ({ shape: [...from.shape.slice(0, -1), shape[1]!] });
    const { numHeads, numKvHeads } = layer;
    this.heads = attentionHeads(projected(x, this.query), projected(context, this.key), projected(context, this.value), { numHeads, numKvHeads });
    const { rotary } = given.options;
    const turn = (heads: Heads, from: string) => ({ heads, call: new RotaryCall(frame, rotary!, heads.sizes[2], heads.sizes[3], from) });
    this.#turns = rotary === undefined ? [] : [turn(this.heads.query, 'x'), turn(this.heads.key, context === x ? 'x' : 'context')];
    this.attention = new AttentionCall(memory, frame, this.heads, options);
    this.mixed = frame.output(this.heads.outputShape);
    this.x = frame.input(x);
    this.context = context === x ? this.x : frame.input(context);
  }

  run(name: string): void {
    const { query, key, value } = this;
    query.run(name, this.x);
    key.run(name, this.context);
    value.run(name, this.context);
    turnBlock(name, this.#turns[0], query.out, false);
    turnBlock(name, this.#turns[1], key.out, false);
    this.attention.run(name, query.out, key.out, value.out, this.mixed);
  }

  /** Gradients by queries and keys that were turned become those by the projections, in place. */
  turnBack(name: string, dQuery: Block, dKey: Block): void {
    turnBlock(name, this.#turns[0], dQuery, true);
    turnBlock(name, this.#turns[1], dKey, true);
  }
}
