import type { Readout } from '../sequence-options.js';

/** Whole numbers with a shape, as tokens and targets: what engine.sequenceModel() and engine.embedding() take. */
export interface Integers {
  /** Row by row. */
  readonly data: Int32Array<ArrayBuffer>;
  /** The length of each axis; their product is the data's length. */
  readonly shape: readonly number[];
}

/** What a model has to be told beside tokens and targets: its methods take it as it is. */
export interface ExampleOptions {
  /** (count): how many of each row's tokens are the sequence; the rest is token 0 and means nothing. Default all. */
  readonly lengths?: Int32Array<ArrayBuffer>;
  /** (count): the position that the answer is read at. Default each sequence's last. */
  readonly at?: Int32Array<ArrayBuffer>;
  /** (count, contextLength): the tokens that keys and values are made from, for cross-attention. Default the sequence itself. */
  readonly context?: Integers;
}

/** Examples of a task, a row of tokens each, and what is right: `model.trainStep(tokens, targets, options)`. */
export interface Examples {
  /** (count, length), each from 0 below {@link TaskModel.vocab}. */
  readonly tokens: Integers;
  /**
   * What is right, by {@link TaskModel.readout}. `'last'`: (count), a class; `'every'`: (count, length), a class for each
   * position; `'pointer'`: (count), a position. Classes are from 0 below {@link TaskModel.classes}.
   */
  readonly targets: Integers;
  /** What else the model has to know; `{}` in most tasks. */
  readonly options: ExampleOptions;
}

/** What a model has to be like: `engine.sequenceModel({ ...task.model, embedDim: 32, mixer: 'attention' })`. */
export interface TaskModel<Read extends Readout = Readout> {
  /** How many different tokens there are. */
  readonly vocab: number;
  /** How many different answers there are; not there for a pointer, which answers with a position. */
  readonly classes?: number;
  /** Where its answer is read. */
  readonly readout: Read;
}

/**
 * Something to learn, with as many examples as are asked for. All of it follows from the options and the seed: the
 * same on every host, in every run. Held-out examples are never among those to train on.
 */
export interface Task<Read extends Readout = Readout, Kind extends Examples = Examples> {
  /** The function that made it. */
  readonly name: string;
  /** Options of a model that can learn it. */
  readonly model: TaskModel<Read>;
  /** How many tokens a row has; sequences may be shorter, see {@link ExampleOptions.lengths}. */
  readonly length: number;
  /** Each token in letters. */
  readonly words: readonly string[];
  /** Each class in letters; of positions there are none. */
  readonly answers: readonly string[];
  /**
   * Examples to train on, others with every call.
   *
   * @param count how many
   * @throws QkvError INVALID_ARGUMENT: a count that is no whole number from 1
   */
  batch(count: number): Kind;
  /**
   * Examples that batch() never gives, none of them twice, the same with every call; fewer are the first of more.
   *
   * @param count how many. Default 256, or all of them where the task has fewer
   * @throws QkvError INVALID_ARGUMENT: a count that is no whole number from 1, or more than there are. Of more than
   *   65536 different sequences at most one in 32 may be asked for, and at most 2^20
   */
  heldOut(count?: number): Kind;
  /**
   * The tokens of a text, for sequences of one's own.
   *
   * @param text some of `words`, with spaces between them
   * @throws QkvError INVALID_ARGUMENT: a word that is none of these
   */
  encode(text: string): Int32Array<ArrayBuffer>;
  /**
   * Tokens in letters, with spaces between them.
   *
   * @param tokens a list of them, each from 0 below `model.vocab`
   * @throws QkvError INVALID_ARGUMENT: a token that is not
   */
  decode(tokens: readonly number[] | Int32Array): string;
}
