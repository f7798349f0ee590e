import { Adam, type AdamOptions } from './adam.js';
import { anyTensor } from './arguments.js';
import { attention, type AttentionOptions, type AttentionResult } from './attention.js';
import { attentionBackward, type AttentionGradients } from './attention-backward.js';
import { QkvError } from './errors.js';
import { explain, type ExplainOptions, type Explanation } from './explain.js';
import { KvCache, type KvCacheOptions } from './kv-cache.js';
import type { EngineMemory } from './memory.js';
import { MultiHeadAttention, type MultiHeadOptions } from './multi-head.js';
import { RecurrentCells } from './recurrent-cells.js';
import { ResidentTensor } from './resident.js';
import { SequenceModel } from './sequence-model.js';
import type { Readout, SequenceModelOptions } from './sequence-options.js';
import type { MaskLike, TensorLike } from './tensor.js';
import type { Choice, Variant } from './variants.js';

/** What an engine runs on; see engine.info(). */
export interface EngineInfo {
  /** Of the package. */
  version: string;
  /** The build in use. */
  variant: Variant;
  /** How many threads compute, the caller's included. */
  threads: number;
  /** Why a better variant or more threads were not taken. */
  reason?: string;
  /** Bytes: what the host has given to the engine so far, and the most that it may take. */
  memory: {
    /** Bytes that the host has given so far; they go back with dispose(). */
    used: number;
    /** Bytes that it may take at most. */
    limit: number;
  };
}

/** @internal What load() found and made. */
export interface EngineParts {
  version: string;
  memory: EngineMemory;
  choice: Choice;
  onDispose(): void;
}

/**
 * The operations, computed at once on the calling thread (and its helpers): a long call blocks it.
 * Arguments are never written to; results are plain memory that is yours.
 *
 * Every method throws {@link QkvError}: INVALID_ARGUMENT, SHAPE_MISMATCH, OUT_OF_MEMORY, or DISPOSED
 * after dispose(). After any of them the engine works on.
 */
export class Engine extends RecurrentCells {
  #parts: EngineParts | undefined;

  /** @internal Use load(). */
  constructor(parts: EngineParts) {
    super((method) => this.#alive(method).memory);
    this.#parts = parts;
  }

  /**
   * Scaled dot-product attention (Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1):
   * `output = softmax(scale * query . key^T) . value`, softmax over the visible keys. See
   * {@link ScoreOptions} for what may be done with the scores, {@link HeadLayout} for other layouts.
   *
   * @param query (length, dim), (heads, length, dim) or (batch, heads, length, dim)
   * @param key the query's rank, batch and dim; heads that divide the query's: query head h reads key
   *   head floor(h / (heads / keyHeads))
   * @param value the key's shape but for its dim, which may be any
   * @param options default: every query sees every key, and nothing but the output is given back
   * @returns output, the query's shape with the value's dim, and the extras that were asked for
   * @throws QkvError SHAPE_MISMATCH: arguments that do not fit together, a mask or bias that does not
   *   broadcast, a list of another length; INVALID_ARGUMENT: an option out of its range, two that exclude
   *   each other, or one that is not known; OUT_OF_MEMORY
   */
  attention<const Options extends AttentionOptions = {}>(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    options?: Options,
  ): AttentionResult<Options> {
    const { memory } = this.#alive('attention');
    return attention(memory, query, key, value, options) as AttentionResult<Options>;
  }

  /**
   * The gradients of {@link attention}; see {@link AttentionGradients} for the formulas. Scores are made again, so that
   * memory grows as the lengths and not as their product.
   *
   * @param dOutput the loss's gradient by the output, of its shape
   * @param query what attention() was given, as the next three
   * @param key the query's rank, batch and dim
   * @param value the key's shape but for its dim
   * @param options the same; what they ask for besides the output (weights, scores, logSumExp, out) is passed over
   * @throws QkvError as attention(); SHAPE_MISMATCH: a dOutput that has not the output's shape
   */
  attentionBackward(
    dOutput: TensorLike,
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    options?: AttentionOptions,
  ): AttentionGradients {
    const { memory } = this.#alive('attentionBackward');
    return attentionBackward(memory, dOutput, query, key, value, options);
  }

  /**
   * Self-attention with every step kept: project, score, scale, softmax, mix (Vaswani et al., 2017, section
   * 3.2.1). Of one head, or of `numHeads`. `weights` and `output` are those of attention() over the
   * projections.
   *
   * @param x (length, embedDim)
   * @param options the projections, and attention's options but for layout, out and the extras
   */
  explain(x: TensorLike, options: ExplainOptions): Explanation {
    const { memory } = this.#alive('explain');
    return explain(memory, x, options);
  }

  /**
   * A layer of multi-head attention (Vaswani et al., 2017, section 3.2.2): projections of x into the queries,
   * keys and values of every head, attention, and a projection back.
   *
   * @param options sizes, and where the weights start
   * @throws QkvError INVALID_ARGUMENT: a size that is no whole number, heads that do not divide
   */
  multiHeadAttention(options: MultiHeadOptions): MultiHeadAttention {
    this.#alive('multiHeadAttention');
    return new MultiHeadAttention((method) => this.#alive(method).memory, options);
  }

  /**
   * Keys and values of past positions kept in the engine's memory, for decoding token by token (Shazeer, "Fast
   * Transformer Decoding", 2019).
   *
   * @param options sizes; batch * numKvHeads * capacity * (headDim + valueDim) floats are taken at once
   * @throws QkvError INVALID_ARGUMENT: a size that is no whole number; OUT_OF_MEMORY
   */
  kvCache(options: KvCacheOptions): KvCache {
    this.#alive('kvCache');
    return new KvCache((method) => this.#alive(method).memory, options);
  }

  /**
   * A copy of a tensor in the engine's memory, for what goes into many calls: weights of layers, tables, a context.
   * Wherever a tensor goes, it may go instead, and is used where it lies. The results are the same bits.
   *
   * @param tensor numbers or booleans of any shape; its memory stays yours
   * @returns what takes memory until it is disposed, or the engine is
   * @throws QkvError OUT_OF_MEMORY
   */
  resident(tensor: MaskLike): ResidentTensor<Uint8Array<ArrayBuffer>>;
  resident(tensor: TensorLike): ResidentTensor;
  resident(tensor: TensorLike | MaskLike): ResidentTensor<Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>> {
    this.#alive('resident');
    return new ResidentTensor((method) => this.#alive(method).memory, anyTensor(tensor, 'tensor'));
  }

  /**
   * An optimizer that steps parameters down their gradients, in place (Kingma & Ba, "Adam", 2015).
   *
   * @param options how far; by default as in the paper, without decay or clipping
   * @throws QkvError INVALID_ARGUMENT: an option out of its range
   */
  adam(options: AdamOptions = {}): Adam {
    this.#alive('adam');
    return new Adam((method) => this.#alive(method).memory, options);
  }

  /**
   * A model that learns about sequences of tokens: an embedding, positions, layers of attention or of a recurrent
   * cell, and a readout. One call is one step of training, wholly in the core.
   *
   * @param options what it is made of, and how it starts and steps
   * @throws QkvError INVALID_ARGUMENT: an option out of its range, or one that this mixer or readout does not have;
   *   OUT_OF_MEMORY
   */
  sequenceModel<const Kind extends Readout>(options: SequenceModelOptions & {
    /** Decides what forward() gives. */
    readout: Kind;
  }): SequenceModel<Kind> {
    this.#alive('sequenceModel');
    return new SequenceModel((method) => this.#alive(method).memory, options);
  }

  /** Which build and how many threads it is, why not a better one, and how much memory it has. */
  info(): EngineInfo {
    const { version, choice, memory } = this.#alive('info');
    return { version, ...choice, memory: { used: memory.used, limit: memory.limit } };
  }

  /** Gives all memory and workers back. Disposing twice is harmless. */
  dispose(): void {
    const parts = this.#parts;
    this.#parts = undefined;
    parts?.memory.module.PThread?.terminateAllThreads();
    parts?.onDispose();
  }

  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  #alive(method: string): EngineParts {
    if (this.#parts) return this.#parts;
    throw new QkvError('DISPOSED', `${method}: this engine was disposed; load() gives a new one.`);
  }
}
