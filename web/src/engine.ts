import { attention, type AttentionOptions, type AttentionResult } from './attention.js';
import { QkvError } from './errors.js';
import { explain, type ExplainOptions, type Explanation } from './explain.js';
import type { EngineMemory } from './memory.js';
import { rnn, type RnnOptions, type RnnParameters, type RnnResult, rnnStep } from './recurrent.js';
import type { Tensor, TensorLike } from './tensor.js';
import type { Choice, Variant } from './variants.js';

export interface EngineInfo {
  /** Of the package. */
  version: string;
  variant: Variant;
  threads: number;
  /** Why a better variant or more threads were not taken. */
  reason?: string;
  /** Bytes: what the host has given to the engine so far, and the most that it may take. */
  memory: { used: number; limit: number };
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
export class Engine {
  #parts: EngineParts | undefined;

  /** @internal Use load(). */
  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  /**
   * Scaled dot-product attention (Vaswani et al., 2017, section 3.2.1):
   * `output = softmax(scale * query . key^T) . value`, softmax over the visible keys.
   *
   * @param query (length, dim), (heads, length, dim) or (batch, heads, length, dim)
   * @param key the query's rank, batch and dim; heads that divide the query's: query head h reads key
   *   head floor(h / (heads / keyHeads))
   * @param value the key's shape but for its dim, which may be any
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
   * One head of self-attention with every step kept: project, score, scale, softmax, mix.
   * `weights` and `output` are those of attention() over the projections.
   *
   * @param x (length, embedDim)
   */
  explain(x: TensorLike, options: ExplainOptions): Explanation {
    const { memory } = this.#alive('explain');
    return explain(memory, x, options);
  }

  /**
   * A plain recurrent network (Elman, 1990) over whole sequences:
   * `h_t = tanh(x_t . wx + bx + h_(t-1) . wh + bh)`.
   *
   * @param x (length, inputDim) or (batch, length, inputDim); a sequence of length 0 keeps its h0
   */
  rnn(x: TensorLike, parameters: RnnParameters, options?: RnnOptions): RnnResult {
    const { memory } = this.#alive('rnn');
    return rnn(memory, x, parameters, options);
  }

  /**
   * One step of {@link rnn}, with the same bits.
   *
   * @param x (inputDim) or (batch, inputDim)
   * @param state the state before the step: (hidden) or (batch, hidden)
   */
  rnnStep(x: TensorLike, state: { h: TensorLike }, parameters: RnnParameters): { h: Tensor } {
    const { memory } = this.#alive('rnnStep');
    return rnnStep(memory, x, state, parameters);
  }

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

  [Symbol.dispose](): void {
    this.dispose();
  }

  #alive(method: string): EngineParts {
    if (this.#parts) return this.#parts;
    throw new QkvError('DISPOSED', `${method}: this engine was disposed; load() gives a new one.`);
  }
}
