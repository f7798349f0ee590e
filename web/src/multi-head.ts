import { type Destination, destination, expectOptions, expectShape, flag, invalid, type Numbers, numbers, oneOf, wholeNumber } from './arguments.js';
import { AttentionCall, type AttentionResult } from './attention.js';
import { SCORE_OPTIONS, type ScoreOptions } from './score-options.js';
import { QkvError } from './errors.js';
import { attentionHeads, expectGroups, type Heads } from './heads.js';
import { LinearCall } from './linear.js';
import type { EngineMemory } from './memory.js';
import { importParameters, type ParameterSource } from './multi-head-import.js';
import { randomNumbers } from './random.js';
import { ResidentTensor } from './resident.js';
import { RotaryCall, type RotaryOptions } from './rotary.js';
import { allocate, LONGEST_AXIS, sizeOf, Tensor, type TensorLike } from './tensor.js';

/** Sizes of a layer and where its weights start. */
export interface MultiHeadOptions {
  /** Features of x and of the output. */
  embedDim: number;
  /** Heads of the query. */
  numHeads: number;
  /** Divides numHeads, which is the default; fewer are grouped heads (Ainslie et al., "GQA", 2023). */
  numKvHeads?: number | undefined;
  /** Dimensions of each head's query, key and value. Default embedDim / numHeads, which has to be whole. */
  headDim?: number | undefined;
  /** Whether the four projections add a bias. Default true. */
  bias?: boolean | undefined;
  /** A whole number that says where the weights start. Default 0. */
  seed?: number | undefined;
}

/** What a layer learns: weights are (in, out), as in `x . weight + bias`. Resident where load() was given that. */
export interface MultiHeadParameters {
  /** (embedDim, numHeads * headDim) */
  wq: Tensor | ResidentTensor;
  /** (embedDim, numKvHeads * headDim) */
  wk: Tensor | ResidentTensor;
  /** (embedDim, numKvHeads * headDim) */
  wv: Tensor | ResidentTensor;
  /** (numHeads * headDim, embedDim) */
  wo: Tensor | ResidentTensor;
  /** (numHeads * headDim), where the layer has biases, as the next three. */
  bq?: Tensor | ResidentTensor;
  /** (numKvHeads * headDim) */
  bk?: Tensor | ResidentTensor;
  /** (numKvHeads * headDim) */
  bv?: Tensor | ResidentTensor;
  /** (embedDim) */
  bo?: Tensor | ResidentTensor;
}

export type ParameterName = keyof MultiHeadParameters;

/** What one call of a layer may be told: attention's options, and these. */
export interface MultiHeadForwardOptions extends ScoreOptions {
  /** What keys and values are made from, for cross-attention: (contextLength, embedDim), with x's batch. Default x. */
  context?: TensorLike | undefined;
  /**
   * Turns queries and keys of each head before the scores, as rotary() does; of a context the keys by the same
   * offset, so that positions are for self-attention.
   */
  rotary?: RotaryOptions | undefined;
  /** Float32 memory of the output's shape to write the output to: wholly, or not at all after an error. */
  out?: Destination | undefined;
}

const FORWARD_OPTIONS = [...SCORE_OPTIONS, 'context', 'rotary', 'out'];

/**
 * A layer of multi-head attention (Vaswani et al., 2017, section 3.2.2). For each head:
 *
 *     query = x . wq + bq
 *     key = context . wk + bk
 *     value = context . wv + bv
 *     output = (heads' attention side by side) . wo + bo
 *
 * with x as its own context where none is given. Made by engine.multiHeadAttention().
 */
export class MultiHeadAttention {
  /** Features of x and of the output. */
  readonly embedDim: number;
  /** Heads of the query. */
  readonly numHeads: number;
  /** Heads of key and value. */
  readonly numKvHeads: number;
  /** Dimensions of each head. */
  readonly headDim: number;
  #parameters: Readonly<MultiHeadParameters>;
  readonly #alive: (method: string) => EngineMemory;
  #disposed = false;

  /** @internal Use engine.multiHeadAttention(). */
  constructor(alive: (method: string) => EngineMemory, options: MultiHeadOptions) {
    expectOptions('multiHeadAttention', options, ['embedDim', 'numHeads', 'numKvHeads', 'headDim', 'bias', 'seed']);
    const { embedDim, numHeads, numKvHeads = numHeads, bias = true, seed = 0 } = options;
    this.#alive = alive;
    this.embedDim = wholeNumber(embedDim, 'embedDim', 0, LONGEST_AXIS);
    this.numHeads = wholeNumber(numHeads, 'numHeads', 1, LONGEST_AXIS);
    this.numKvHeads = wholeNumber(numKvHeads, 'numKvHeads', 1, LONGEST_AXIS);
    expectGroups(numHeads, numKvHeads, `numHeads is ${numHeads} and numKvHeads is ${numKvHeads}`);
    const { headDim = embedDim / numHeads } = options;
    if (options.headDim === undefined && !Number.isInteger(headDim)) {
      invalid(`embedDim is ${embedDim} with ${numHeads} heads, expected a multiple of numHeads, or headDim given.`);
    }
    this.headDim = wholeNumber(headDim, 'headDim', 0, LONGEST_AXIS);
    const random = randomNumbers(wholeNumber(seed, 'seed', 0));
    const start = ([inDim, outDim]: readonly number[]) => {
      const data = allocate(inDim! * (outDim ?? 1), 'multiHeadAttention');
      const bound = Math.sqrt(6 / (inDim! + outDim!));
      return outDim === undefined ? data : data.map(() => bound * (2 * random() - 1));
    };
    flag(bias, 'bias');
    const entries = Object.entries(this.#shapes(bias)).map(([name, shape]) => [name, new Tensor(start(shape), Object.freeze(shape))]);
    this.#parameters = Object.freeze(Object.fromEntries(entries)) as Readonly<MultiHeadParameters>;
  }

  /**
   * The weights in use: change their data, and the next call knows (of resident ones it is a copy). They start
   * uniform between -b and b, `b = sqrt(6 / (in + out))` (Glorot & Bengio, 2010, section 4.2.1), and biases from 0.
   */
  get parameters(): Readonly<MultiHeadParameters> {
    return this.#parameters;
  }

  #shapes(bias: boolean): Partial<Record<ParameterName, number[]>> {
    const { embedDim } = this;
    const [queryDim, keyDim] = [this.numHeads * this.headDim, this.numKvHeads * this.headDim];
    return {
      wq: [embedDim, queryDim],
      wk: [embedDim, keyDim],
      wv: [embedDim, keyDim],
      wo: [queryDim, embedDim],
      ...(bias && { bq: [queryDim], bk: [keyDim], bv: [keyDim], bo: [embedDim] }),
    };
  }

  /**
   * Projections, attention and the projection back.
   *
   * @param x (length, embedDim) or (batch, length, embedDim)
   * @param options attention's options, a context, rotary positions
   * @returns output of x's shape; weights, scores and logSumExp as attention() gives them for `numHeads` heads
   */
  forward<const Options extends MultiHeadForwardOptions = {}>(x: TensorLike, options?: Options): AttentionResult<Options> {
    const memory = this.#use('forward');
    const given: MultiHeadForwardOptions = options === undefined ? {} : options;
    expectOptions('forward', given, FORWARD_OPTIONS);
    const rows = numbers(x, 'x', 2, 3);
    expectShape(rows, 'x', [...rows.shape.slice(0, -1), this.embedDim], "its last axis is the layer's embedDim");
    const context = given.context === undefined ? rows : numbers(given.context, 'context', rows.shape.length);
    expectShape(context, 'context', [...rows.shape.slice(0, -2), null, this.embedDim], "x's batch, and the layer's embedDim");
    const out = destination(given.out, rows.shape);

    const frame = memory.frame();
    const project = (from: Numbers, weight: ParameterName, bias: ParameterName) =>
      new LinearCall(memory, frame, sizeOf(from.shape.slice(0, -1)), this.#parameter(weight)!, this.#parameter(bias));
    const [query, key, value] = [project(rows, 'wq', 'bq'), project(context, 'wk', 'bk'), project(context, 'wv', 'bv')] as const;
    const shapeOf = (from: Numbers, { shape }: LinearCall) => ({ shape: [...from.shape.slice(0, -1), shape[1]!] });
    const heads = attentionHeads(shapeOf(rows, query), shapeOf(context, key), shapeOf(context, value), this);
    const turn = ({ out: rows }: LinearCall, { sizes: [batch, count, length, dim], strides }: Heads) => {
      if (given.rotary === undefined) return undefined;
      const call = new RotaryCall(frame, given.rotary, length, dim);
      return () => call.run('forward', batch, count, strides, rows, rows);
    };
    const turns = [turn(query, heads.query), turn(key, heads.key)];
    const attention = new AttentionCall(memory, frame, heads, given);
    const mixed = frame.output(heads.outputShape);
    const output = project(rows, 'wo', 'bo');
    const xBlock = frame.input(rows);
    const contextBlock = context === rows ? xBlock : frame.input(context);

    query.run('forward', xBlock);
    key.run('forward', contextBlock);
    value.run('forward', contextBlock);
    for (const run of turns) run?.();
    attention.run('forward', query.out, key.out, value.out, mixed);
    output.run('forward', mixed);
    const extras = attention.extras();
    return { output: frame.read(output.out, rows.shape, out), ...extras } as AttentionResult<Options>;
  }

  /**
   * Takes weights over, all or, after an error, none of them. Those of other libraries are known by their
   * names and laid out as there:
   * - `'qkv'` (default): {@link MultiHeadParameters}.
   * - `'pytorch'`, weights (out, in): `in_proj_weight`, `in_proj_bias`, `out_proj.weight`, `out_proj.bias`, or
   *   `q_proj_weight`, `k_proj_weight`, `v_proj_weight`; or `q_proj.weight`, `q_proj.bias` and so on.
   * - `'keras'`: `query/kernel` (embedDim, heads, headDim), `query/bias` (heads, headDim), `key/...`,
   *   `value/...`, `attention_output/kernel` (heads, headDim, embedDim), `attention_output/bias`.
   * - `'onnx'`, weights (in, out): `weights` (embedDim, query | key | value) and `bias` as of com.microsoft's
   *   Attention, with `wo` and `bo`.
   *
   * Each of them also knows our names for weights in its own layout. Biases that are not given become 0.
   *
   * Numbers are copied into the layer's parameters. Those of engine.resident() whose layout is ours become the
   * parameters instead, so that no call has to copy them into the engine's memory; disposing them stays yours.
   *
   * @param parameters by name; float32, or converted to it
   * @param options whose names and layouts these are
   * @throws QkvError INVALID_ARGUMENT: a name that is not known, a weight that is missing, biases for a layer
   *   without; SHAPE_MISMATCH: another shape than the layer's
   */
  load(parameters: Readonly<Record<string, TensorLike>>, options: {
    /** Default `'qkv'`. */
    from?: ParameterSource;
  } = {}): void {
    const memory = this.#use('load');
    expectOptions('load', options, ['from']);
    const { from = 'qkv' } = options;
    oneOf(from, 'from', ['qkv', 'pytorch', 'keras', 'onnx']);
    const shapes = this.#shapes(this.parameters.bq !== undefined);
    const imported = importParameters(parameters, from, shapes, this);
    const entries = Object.entries(shapes) as [ParameterName, readonly number[]][];
    const loaded = entries.map(([name, shape]): [ParameterName, Tensor | ResidentTensor] => {
      const resident = imported[name]?.resident;
      if (resident) ResidentTensor.blockIn(memory, resident);
      return [name, resident ? (resident.tensor as ResidentTensor) : this.#writable(name, Object.freeze(shape))];
    });
    for (const [name, parameter] of loaded) {
      const given = imported[name];
      if (parameter instanceof Tensor) given ? parameter.data.set(given.data) : parameter.data.fill(0);
    }
    this.#parameters = Object.freeze(Object.fromEntries(loaded)) as unknown as Readonly<MultiHeadParameters>;
  }

  /** The parameter to copy numbers into; a new one in place of a resident one. */
  #writable(name: ParameterName, shape: readonly number[]): Tensor {
    const current = this.#parameters[name];
    if (!(current instanceof Tensor)) return new Tensor(allocate(sizeOf(shape), 'load'), shape);
    this.#parameter(name);
    return current;
  }

  /** Ends the layer: later calls are refused. Disposing twice is harmless. */
  dispose(): void {
    this.#disposed = true;
  }

  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Checked anew, since their buffers are the user's to transfer away. */
  #parameter(name: ParameterName): Numbers | undefined {
    const given = this.parameters[name];
    return given && numbers(given, `parameters.${name}`, given.shape.length);
  }

  #use(method: string): EngineMemory {
    if (this.#disposed) throw new QkvError('DISPOSED', `multiHeadAttention.${method}: this layer was disposed; engine.multiHeadAttention() gives a new one.`);
    return this.#alive(`multiHeadAttention.${method}`);
  }
}
