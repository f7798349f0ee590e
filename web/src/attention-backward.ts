import { expectOptions, expectShape, numbers } from './arguments.js';
import { ATTENTION_OPTIONS, type AttentionOptions, ruleFields, tensorFields } from './attention.js';
import { attentionRules } from './attention-rules.js';
import { type AttentionHeads, attentionHeads } from './heads.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { Calls } from './module.js';
import type { ScoreOptions } from './score-options.js';
import type { Tensor, TensorLike } from './tensor.js';

/**
 * The loss's gradients by what attention() was given, each of the shape of what it is the gradient by. With P the
 * weights, P' those after dropout, and D the row sums of P * dP (Dao, "FlashAttention-2", 2023, section 3.1.2):
 *
 *     dValue = P'^T . dOutput        dP = dropout(dOutput . value^T)
 *     dS = P * (dP - D)              dBias = dS
 *     dQuery = scale * dS . key      dKey = scale * dS^T . query
 *     dSinks = -(the sink's weight) * D, summed over the rows
 *
 * and a softcap's slope, 1 - (capped / softcap)^2, multiplies dS on its way to query and key. Where a key is hidden
 * nothing passes: NaN or Infinity there has no effect.
 */
export interface AttentionGradients {
  /** The query's shape. A row that sees no key is 0. */
  dQuery: Tensor;
  /** The key's shape, summed over the query heads that read a key head. A key that no query sees is 0. */
  dKey: Tensor;
  /** The value's shape, likewise. */
  dValue: Tensor;
  /** The bias's shape, where there is one: summed over the axes that it broadcasts along, 0 where it is -Infinity. */
  dBias?: Tensor;
  /** (numHeads), where there are sinks; 0 where one is -Infinity. */
  dSinks?: Tensor;
}

/** The blocks of a backward pass; the last three are written to. */
export type BackwardBlocks = Readonly<Record<'dOutput' | 'query' | 'key' | 'value' | 'dQuery' | 'dKey' | 'dValue', Block>>;

/** One backward pass of attention over blocks of a frame. */
export class AttentionBackwardCall {
  readonly #frame: Frame;
  readonly #heads: AttentionHeads;
  readonly #biasShape: readonly number[] | undefined;
  readonly #hasSinks: boolean;
  readonly #dBias: Block;
  readonly #dSinks: Block;
  readonly #fields: readonly Calls['attentionBackward'][];

  /** Reads the options and reserves in the frame what they need. */
  constructor(memory: EngineMemory, frame: Frame, heads: AttentionHeads, options: ScoreOptions) {
    const { sizes, rowsShape } = heads;
    const rules = attentionRules(options, sizes, rowsShape.length);
    this.#frame = frame;
    this.#heads = heads;
    this.#biasShape = rules.biasShape;
    this.#hasSinks = rules.inputs.sinks !== undefined;
    this.#dBias = frame.output(rules.biasShape ?? [], rules.biasShape !== undefined);
    this.#dSinks = frame.output([sizes.numHeads], this.#hasSinks);
    const rows = sizes.batch * sizes.numHeads * sizes.queryLen;
    const bytes = memory.module.attentionBackwardWorkspaceBytes(rows, sizes.keyLen, sizes.headDim, sizes.valueDim);
    this.#fields = [sizes, ...ruleFields(frame, rules), frame.workspace(bytes), { dBias: this.#dBias, dSinks: this.#dSinks }];
  }

  run(name: string, { dOutput, query, key, value, ...gradients }: BackwardBlocks): void {
    const tensors = tensorFields(this.#heads, query, key, value, dOutput);
    this.#frame.run(name, 'attentionBackward', ...this.#fields, tensors, gradients);
  }

  /** The gradients by what the options hold. */
  ofOptions(): Pick<AttentionGradients, 'dBias' | 'dSinks'> {
    return {
      ...(this.#biasShape && { dBias: this.#frame.read(this.#dBias, this.#biasShape) }),
      ...(this.#hasSinks && { dSinks: this.#frame.read(this.#dSinks, [this.#heads.sizes.numHeads]) }),
    };
  }
}

export function attentionBackward(
  memory: EngineMemory,
  dOutputLike: TensorLike,
  queryLike: TensorLike,
  keyLike: TensorLike,
  valueLike: TensorLike,
  options: AttentionOptions = {},
): AttentionGradients {
  expectOptions('attentionBackward', options, ATTENTION_OPTIONS);
  const query = numbers(queryLike, 'query', 2, 3, 4);
  const rank = query.shape.length;
  const key = numbers(keyLike, 'key', rank);
  const value = numbers(valueLike, 'value', rank);
  const heads = attentionHeads(query, key, value, options);
  const dOutput = numbers(dOutputLike, 'dOutput', rank);
  expectShape(dOutput, 'dOutput', heads.outputShape, "the output's shape");
  const frame = memory.frame();
  const inputs = { dOutput: frame.input(dOutput), query: frame.input(query), key: frame.input(key), value: frame.input(value) };
  const [dQuery, dKey, dValue] = [frame.output(query.shape), frame.output(key.shape), frame.output(value.shape)];
  const call = new AttentionBackwardCall(memory, frame, heads, options);
  call.run('attentionBackward', { ...inputs, dQuery, dKey, dValue });
  return {
    dQuery: frame.read(dQuery, query.shape),
    dKey: frame.read(dKey, key.shape),
    dValue: frame.read(dValue, value.shape),
    ...call.ofOptions(),
  };
}
