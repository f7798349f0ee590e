import { type Destination, destination, expectOptions, flag, invalid, type Numbers, numbers, oneOf, wholeNumber } from './arguments.js';
import type { AttentionResult } from './attention.js';
import { QkvError } from './errors.js';
import { expectGroups } from './heads.js';
import { LinearCall } from './linear.js';
import type { EngineMemory } from './memory.js';
import { multiHeadBackward, type MultiHeadGradients } from './multi-head-backward.js';
import { HeadsCall, layerArguments, type LayerParts, rowsOf } from './multi-head-call.js';
import { importParameters, type ParameterSource } from './multi-head-import.js';
import { randomNumbers } from './random.js';
import { ResidentTensor } from './resident.js';
import type { RotaryOptions } from './rotary.js';
import type { ScoreOptions } from './score-options.js';
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
    const given = layerArguments('forward', this.embedDim, x, options);
    const { shape } = given.x;
    const out = destination(given.options.out, shape);
    const parts = this.#parts();
    const frame = memory.frame();
    const call = new HeadsCall(memory, frame, parts, given, given.options);
    const output = new LinearCall(memory, frame, rowsOf(given.x), parts.parameters.wo!, parts.parameters.bo);
    call.run('forward');
    output.run('forward', call.mixed);
    const extras = call.attention.extras();
    return { output: frame.read(output.out, shape, out), ...extras } as AttentionResult<Options>;
  }

  /**
   * The gradients of {@link forward}; see {@link MultiHeadGradients} for the formulas. Projections and scores are made
   * again, so that memory grows as the lengths and not as their product.
   *
   * @param dOutput the loss's gradient by the output, of x's shape
   * @param x what forward() was given
   * @param options the same; what they ask for besides the output (weights, scores, logSumExp, out) is passed over
   * @throws QkvError as forward(); SHAPE_MISMATCH: a dOutput that has not x's shape
   */
  backward(dOutput: TensorLike, x: TensorLike, options?: MultiHeadForwardOptions): MultiHeadGradients {
    const memory = this.#use('backward');
    const given = layerArguments('backward', this.embedDim, x, options);
    return multiHeadBackward(memory, dOutput, this.#parts(), given);
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

  #parts(): LayerParts {
    const names = Object.keys(this.parameters) as ParameterName[];
    const { numHeads, numKvHeads } = this;
    return { numHeads, numKvHeads, parameters: Object.fromEntries(names.map((name) => [name, this.#parameter(name)])) };
  }

  #use(method: string): EngineMemory {
    if (this.#disposed) throw new QkvError('DISPOSED', `multiHeadAttention.${method}: this layer was disposed; engine.multiHeadAttention() gives a new one.`);
    return this.#alive(`multiHeadAttention.${method}`);
  }
}
