import { type Destination, destination, expectOptions, numbers } from './arguments.js';
import { type AttentionExtras, attentionExtras } from './attention-extras.js';
import { type AttentionRules, attentionRules } from './attention-rules.js';
import { type AttentionHeads, attentionHeads, type HeadLayout } from './heads.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { Calls } from './module.js';
import { SCORE_OPTIONS, type ScoreOptions } from './score-options.js';
import type { Tensor, TensorLike } from './tensor.js';

/** What attention() may be told: layout, masks, what is done with the scores, what else to give back. */
export interface AttentionOptions extends ScoreOptions, HeadLayout {
  /** Float32 memory of the output's shape to write the output to: wholly, or not at all after an error. */
  out?: Destination | undefined;
}

/**
 * What was computed: `output`, and where the options ask for them `weights`, `scores` and `logSumExp`, whose shapes
 * {@link ScoreOptions} says. `heads?` in them is there but for rank-2 arguments without numHeads, `batch?` with
 * rank 4 and with projections of rank 3.
 */
export type AttentionResult<Options extends object = ScoreOptions> = {
  /**
   * The query's shape with the value's dim. A row that sees no key is 0. Weights are applied before
   * they are divided by their sum, so a row's values may not sum to more than a float holds.
   */
  output: Tensor;
} & Wanted<Options, 'weights', NonNullable<ScoreOptions['weights']>> &
  Wanted<Options, 'scores', NonNullable<ScoreOptions['scores']>> &
  Wanted<Options, 'logSumExp', true>;

/** An extra that is there or may be there, by what the options say. */
type Wanted<Options, Name extends Extra, Yes> = Options extends Record<Name, Yes>
  ? Record<Name, Tensor>
  : Partial<Record<Name, Tensor>>;

const EXTRAS = ['weights', 'scores', 'logSumExp'] as const;
type Extra = (typeof EXTRAS)[number];

/**
 * What the options say, as sets of fields of a call, in the frame where it is more than a number. Sets, here and below,
 * and not one object: V8 11 (Node 20) takes longer to spread one of so many fields than for a short attention.
 */
export const ruleFields = (frame: Frame, { fields, inputs, strides }: AttentionRules): readonly Calls['attention'][] => [
  fields,
  {
    mask: frame.input(inputs.mask),
    maskStrides: strides.mask,
    bias: frame.input(inputs.bias),
    biasStrides: strides.bias,
    alibiSlopes: frame.input(inputs.alibiSlopes),
    sinks: frame.input(inputs.sinks),
    queryOffsets: frame.input(inputs.queryOffsets),
    keyLengths: frame.input(inputs.keyLengths),
    sequenceQueries: frame.input(inputs.sequenceQueries),
    sequenceKeys: frame.input(inputs.sequenceKeys),
  },
];

export function tensorFields(heads: AttentionHeads, query: Block, key: Block, value: Block, out: Block): Calls['attention'] {
  return {
    query,
    queryStrides: heads.query.strides,
    key,
    keyStrides: heads.key.strides,
    value,
    valueStrides: heads.value.strides,
    out,
    outStrides: heads.output.strides,
  };
}

/** One attention over blocks of a frame: what attention(), explain(), the layer and the cache share. */
export class AttentionCall {
  readonly #frame: Frame;
  readonly #heads: AttentionHeads;
  readonly #extras: AttentionExtras;
  readonly #blocks: Readonly<Record<Extra, Block>>;
  readonly #fields: readonly Calls['attention'][];

  /** Reads the options and reserves in the frame what they need. */
  constructor(memory: EngineMemory, frame: Frame, heads: AttentionHeads, options: ScoreOptions) {
    const { sizes, rowsShape } = heads;
    const rules = attentionRules(options, sizes, rowsShape.length);
    const extras = attentionExtras(options, sizes, rowsShape);
    const extra = (name: Extra) => frame.output(extras[name]?.shape ?? [], extras[name] !== undefined);
    const blocks = { weights: extra('weights'), scores: extra('scores'), logSumExp: extra('logSumExp') };
    const isMean = extras.weights?.mean === true;
    const rows = extras.weights ? sizes.batch * sizes.numHeads * sizes.queryLen : 0;
    this.#frame = frame;
    this.#heads = heads;
    this.#extras = extras;
    this.#blocks = blocks;
    const extraFields = {
      weights: isMean ? undefined : blocks.weights,
      meanWeights: isMean ? blocks.weights : undefined,
      weightHeads: frame.input(extras.weightHeads),
      weightHeadCount: extras.weightHeads?.length,
      weightQueries: frame.input(extras.weightQueries),
      weightQueryCount: extras.weightQueries?.length,
      scores: blocks.scores,
      scoreStage: extras.scores?.stage,
      logSumExp: blocks.logSumExp,
    };
    const scratch = frame.workspace(memory.module.attentionWorkspaceBytes(sizes.headDim, sizes.valueDim, rows));
    this.#fields = [sizes, ...ruleFields(frame, rules), extraFields, scratch];
  }

  /** `changes` is what differs from the options. */
  run(name: string, query: Block, key: Block, value: Block, out: Block, changes: Calls['attention'] = {}): void {
    const tensors = tensorFields(this.#heads, query, key, value, out);
    this.#frame.run(name, 'attention', ...this.#fields, tensors, changes);
  }

  /** The extras that the options asked for. */
  extras(): Partial<Record<Extra, Tensor>> {
    const made: Partial<Record<Extra, Tensor>> = {};
    for (const name of EXTRAS) {
      const extra = this.#extras[name];
      if (extra) made[name] = this.#frame.read(this.#blocks[name], extra.shape);
    }
    return made;
  }
}

export const ATTENTION_OPTIONS = [...SCORE_OPTIONS, 'layout', 'numHeads', 'numKvHeads', 'out'];

export function attention(
  memory: EngineMemory,
  queryLike: TensorLike,
  keyLike: TensorLike,
  valueLike: TensorLike,
  options: AttentionOptions = {},
): AttentionResult {
  expectOptions('attention', options, ATTENTION_OPTIONS);
  const query = numbers(queryLike, 'query', 2, 3, 4);
  const rank = query.shape.length;
  const key = numbers(keyLike, 'key', rank);
  const value = numbers(valueLike, 'value', rank);
  const heads = attentionHeads(query, key, value, options);
  const out = destination(options.out, heads.outputShape);
  const frame = memory.frame();
  const blocks = [query, key, value].map((given) => frame.input(given)) as [Block, Block, Block];
  const output = frame.output(heads.outputShape);
  const call = new AttentionCall(memory, frame, heads, options);
  call.run('attention', ...blocks, output);
  // The output last: reading an extra may fail, and `out` is whole or untouched.
  const extras = call.extras();
  return { output: frame.read(output, heads.outputShape, out), ...extras };
}
