import type { IndicesLike } from './arguments.js';
import { embedding, embeddingBackward, type EmbeddingGradient } from './embedding.js';
import {
  gelu, geluBackward, type GeluOptions, layerNorm, layerNormBackward, type LayerNormGradients, type LayerNormOptions,
  rmsNorm, rmsNormBackward, type RmsNormGradients, type RmsNormOptions, silu, siluBackward, softmax, softmaxBackward,
  type XGradient,
} from './layers.js';
import { linear, linearBackward, type LinearGradients } from './linear.js';
import { crossEntropy, type CrossEntropyResult } from './loss.js';
import type { EngineMemory } from './memory.js';
import { rotary, rotaryBackward, type RotaryOptions } from './rotary.js';
import type { Tensor, TensorLike } from './tensor.js';

/**
 * What layers are made of, and the gradients of each: `dOut`, the loss's gradient by an operation's result, becomes
 * those by its arguments. Part of {@link Engine}.
 */
export class BuildingBlocks {
  readonly #memory: (method: string) => EngineMemory;

  /** @internal `memory` throws where the engine was disposed. */
  constructor(memory: (method: string) => EngineMemory) {
    this.#memory = memory;
  }

  /**
   * A linear layer: `x . weight + bias`.
   *
   * @param x (..., inDim)
   * @param weight (inDim, outDim)
   * @param bias (outDim), default 0
   * @returns (..., outDim)
   */
  linear(x: TensorLike, weight: TensorLike, bias?: TensorLike): Tensor {
    const memory = this.#memory('linear');
    return linear(memory, x, weight, bias);
  }

  /**
   * The gradients of {@link linear}: `dX = dOut . weight^T`, `dWeight = x^T . dOut`, `dBias` the sum of dOut's rows.
   *
   * @param dOut the loss's gradient by the output, (..., outDim)
   * @param x (..., inDim)
   * @param weight (inDim, outDim)
   * @param bias (outDim), where linear() had one: only its shape matters
   */
  linearBackward(dOut: TensorLike, x: TensorLike, weight: TensorLike, bias?: TensorLike): LinearGradients {
    const memory = this.#memory('linearBackward');
    return linearBackward(memory, dOut, x, weight, bias);
  }

  /**
   * Softmax over the last axis (Bridle, 1990): `exp(x_j) / sum_k exp(x_k)`, the row's largest subtracted first.
   * A row of nothing but -Infinity gives zeros.
   *
   * @param x (..., columns)
   * @returns x's shape
   */
  softmax(x: TensorLike): Tensor {
    const memory = this.#memory('softmax');
    return softmax(memory, x);
  }

  /**
   * The gradient of {@link softmax}: `dX = out * (dOut - sum of out * dOut)`, each row by itself. 0 where x is
   * -Infinity, whatever dOut is there.
   *
   * @param dOut the loss's gradient by the output, x's shape
   * @param x (..., columns), what softmax() was given
   */
  softmaxBackward(dOut: TensorLike, x: TensorLike): XGradient {
    const memory = this.#memory('softmaxBackward');
    return softmaxBackward(memory, dOut, x);
  }

  /**
   * Softmax and cross-entropy in one, and their gradient: `loss` is the mean over the rows of
   * `log sum_k exp(logits_k) - logits_target`, `dLogits = (softmax(logits) - [the target]) / rows`.
   * A logit of -Infinity is a class that cannot be: its gradient is 0, and as a target it makes the loss Infinity. No
   * rows have the loss 0.
   *
   * @param logits (..., classes)
   * @param targets a class for each row, from 0 below classes: logits' axes but the last, or a list
   * @throws QkvError INVALID_ARGUMENT: a target that is no class; SHAPE_MISMATCH: not one for each row
   */
  crossEntropy(logits: TensorLike, targets: IndicesLike): CrossEntropyResult {
    const memory = this.#memory('crossEntropy');
    return crossEntropy(memory, logits, targets);
  }

  /**
   * Layer normalization (Ba, Kiros & Hinton, 2016) over the last axis:
   * `(x - mean) / sqrt(variance + eps) * gamma + beta`, the variance divided by the number of columns.
   *
   * @param x (..., columns)
   * @param options gamma, beta and eps; by default ones, zeros and 1e-5
   * @returns x's shape
   */
  layerNorm(x: TensorLike, options?: LayerNormOptions): Tensor {
    const memory = this.#memory('layerNorm');
    return layerNorm(memory, x, options);
  }

  /**
   * The gradients of {@link layerNorm}: with `scaled = (x - mean) / root` and `g = dOut * gamma`,
   * `dX = (g - mean of g - scaled * mean of (g * scaled)) / root`; `dGamma` and `dBeta` are the sums over the rows
   * of `dOut * scaled` and of `dOut`.
   *
   * @param dOut the loss's gradient by the output, x's shape
   * @param x (..., columns)
   * @param options those of layerNorm(); of beta only the shape matters
   */
  layerNormBackward(dOut: TensorLike, x: TensorLike, options?: LayerNormOptions): LayerNormGradients {
    const memory = this.#memory('layerNormBackward');
    return layerNormBackward(memory, dOut, x, options);
  }

  /**
   * Root mean square normalization (Zhang & Sennrich, 2019) over the last axis:
   * `x / sqrt(mean of x^2 + eps) * gamma`.
   *
   * @param x (..., columns)
   * @param options gamma and eps; by default ones and 1e-5
   * @returns x's shape
   */
  rmsNorm(x: TensorLike, options?: RmsNormOptions): Tensor {
    const memory = this.#memory('rmsNorm');
    return rmsNorm(memory, x, options);
  }

  /**
   * The gradients of {@link rmsNorm}: with `scaled = x / root` and `g = dOut * gamma`,
   * `dX = (g - scaled * mean of (g * scaled)) / root`; `dGamma` is the sum over the rows of `dOut * scaled`.
   *
   * @param dOut the loss's gradient by the output, x's shape
   * @param x (..., columns)
   * @param options those of rmsNorm()
   */
  rmsNormBackward(dOut: TensorLike, x: TensorLike, options?: RmsNormOptions): RmsNormGradients {
    const memory = this.#memory('rmsNormBackward');
    return rmsNormBackward(memory, dOut, x, options);
  }

  /**
   * Gaussian error linear units (Hendrycks & Gimpel, 2016): x times the share of the normal distribution
   * below x, `x (1 + erf(x / sqrt 2)) / 2`, unless `approximate` says otherwise.
   *
   * @param x any shape
   * @param options which formula
   * @returns x's shape
   */
  gelu(x: TensorLike, options?: GeluOptions): Tensor {
    const memory = this.#memory('gelu');
    return gelu(memory, x, options);
  }

  /**
   * The gradient of {@link gelu}: dOut times the slope of the formula at x.
   *
   * @param dOut the loss's gradient by the output, x's shape
   * @param x any shape
   * @param options those of gelu()
   */
  geluBackward(dOut: TensorLike, x: TensorLike, options?: GeluOptions): XGradient {
    const memory = this.#memory('geluBackward');
    return geluBackward(memory, dOut, x, options);
  }

  /**
   * Sigmoid linear units (Hendrycks & Gimpel, 2016), also called swish: `x / (1 + exp(-x))`.
   *
   * @param x any shape
   * @returns x's shape
   */
  silu(x: TensorLike): Tensor {
    const memory = this.#memory('silu');
    return silu(memory, x);
  }

  /**
   * The gradient of {@link silu}: `dOut * s * (1 + x * (1 - s))` with `s = 1 / (1 + exp(-x))`.
   *
   * @param dOut the loss's gradient by the output, x's shape
   * @param x any shape
   */
  siluBackward(dOut: TensorLike, x: TensorLike): XGradient {
    const memory = this.#memory('siluBackward');
    return siluBackward(memory, dOut, x);
  }

  /**
   * Rows of a table, `out[i] = table[indices[i]]`: learned embeddings, learned positions.
   *
   * @param table (rows, dim)
   * @param indices whole numbers from 0 below rows, of any shape; a typed array is a list of them
   * @returns (...shape of indices, dim)
   * @throws QkvError INVALID_ARGUMENT: an index that is not in the table
   */
  embedding(table: TensorLike, indices: IndicesLike): Tensor {
    const memory = this.#memory('embedding');
    return embedding(memory, table, indices);
  }

  /**
   * The gradient of {@link embedding}: each row of dTable is the sum of dOut over the indices that named it.
   *
   * @param dOut the loss's gradient by the output, (...shape of indices, dim)
   * @param table (rows, dim): only its shape matters
   * @param indices those of embedding()
   */
  embeddingBackward(dOut: TensorLike, table: TensorLike, indices: IndicesLike): EmbeddingGradient {
    const memory = this.#memory('embeddingBackward');
    return embeddingBackward(memory, dOut, table, indices);
  }

  /**
   * Rotary positions (Su et al., "RoFormer", 2021): pair i of a row's dimensions, (a, b), becomes
   * `(a cos - b sin, a sin + b cos)` of the angle `position / base^(2i / dims)`.
   *
   * @param x (..., length, dim)
   * @param options positions and pairing, which has no default
   * @returns x's shape
   * @throws QkvError INVALID_ARGUMENT: no pairing, an odd `dims`, positions out of range, options that
   *   exclude each other; SHAPE_MISMATCH: positions, cos or sin that do not fit x
   */
  rotary(x: TensorLike, options: RotaryOptions): Tensor {
    const memory = this.#memory('rotary');
    return rotary(memory, x, options);
  }

  /**
   * The gradient of {@link rotary}: pair i of dOut, (a, b), becomes `(a cos + b sin, b cos - a sin)`.
   *
   * @param dOut the loss's gradient by the output, x's shape
   * @param x (..., length, dim): only its shape matters
   * @param options those of rotary()
   */
  rotaryBackward(dOut: TensorLike, x: TensorLike, options: RotaryOptions): XGradient {
    const memory = this.#memory('rotaryBackward');
    return rotaryBackward(memory, dOut, x, options);
  }
}
