import {
  type Argument, expectOptions, expectShape, type IndicesLike, indices, invalid, type List, nameAt, wholeNumber, wholeNumbers,
} from './arguments.js';
import { QkvError } from './errors.js';
import type { Frame } from './memory.js';
import type { SequenceSettings } from './sequence-options.js';
import { describe, showShape } from './tensor.js';

/** What a call of a model may be told of its tokens. */
export interface SequenceOptions {
  /** How many tokens of each sequence are valid: a list, or one number for all. What lies beyond has no effect. Default all. */
  lengths?: number | List | undefined;
  /**
   * Of readouts `'last'` and `'pointer'`: which position of each sequence is read, a list, or one number for all.
   * Default its last valid one.
   */
  at?: number | List | undefined;
  /**
   * Of attention that is not causal: tokens that keys and values are made from in place of the sequence itself,
   * (contextLength) or (batch, contextLength). A pointer then points into them.
   */
  context?: IndicesLike | undefined;
  /** How many tokens of each context are valid, as `lengths`. */
  contextLengths?: number | List | undefined;
}

/** What trainStep() may be told. */
export interface TrainStepOptions extends SequenceOptions {
  /** The learning rate of this step. Default that of the model's optimizer. */
  lr?: number | undefined;
}

const OPTIONS = ['lengths', 'at', 'context', 'contextLengths'];

/** Tokens and what belongs to them, checked. */
export interface SequenceInputs {
  /** [batch], or [] where the tokens have no such axis. */
  readonly lead: readonly number[];
  readonly batch: number;
  readonly length: number;
  readonly tokens: Int32Array;
  readonly lengths: Int32Array | undefined;
  readonly at: Int32Array | undefined;
  readonly context: Int32Array | undefined;
  readonly contextLengths: Int32Array | undefined;
  /** How many positions there are to look at: the context's, or else the sequence's. */
  readonly keyLength: number;
}

/** (length), or (batch, length). */
function readTokens(value: IndicesLike, name: string, { vocab, positions, maxLength }: SequenceSettings): Argument<Int32Array> {
  const tokens = indices(value, name, vocab);
  const { shape } = tokens;
  if (shape.length !== 1 && shape.length !== 2) {
    throw new QkvError('SHAPE_MISMATCH', `${name} has rank ${shape.length} with shape ${showShape(shape)}, expected rank 1 or 2.`);
  }
  const length = shape.at(-1)!;
  if (positions === 'learned' && length > maxLength!) {
    throw new QkvError('SHAPE_MISMATCH', `${name} has length ${length}, expected at most ${maxLength}, the model's maxLength.`);
  }
  return tokens;
}

/** One whole number for each sequence. */
function eachOf(value: number | List | undefined, name: string, least: number, most: number, meaning: string, batch: number): Int32Array | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'object' && value !== null) return wholeNumbers(value, name, least, most, meaning, batch);
  return new Int32Array(batch).fill(wholeNumber(value, name, least, most));
}

function readContext(value: IndicesLike | undefined, settings: SequenceSettings, lead: readonly number[]): Argument<Int32Array> | undefined {
  if (value === undefined) return undefined;
  const refuse = (why: string) => invalid(`context is given to a model ${why}, expected none.`);
  if (settings.mixer !== 'attention') refuse(`with mixer '${settings.mixer}'`);
  if (settings.causal) refuse('that is causal');
  const context = readTokens(value, 'context', settings);
  expectShape(context, 'context', [...lead, null], "the tokens' batch, and a length of its own");
  if (context.shape.at(-1) === 0) invalid('context has no tokens, expected at least one a sequence.');
  return context;
}

export function readInputs(method: string, settings: SequenceSettings, tokensLike: IndicesLike, options: SequenceOptions, more: readonly string[] = []): SequenceInputs {
  expectOptions(method, options, [...OPTIONS, ...more]);
  const { data: tokens, shape } = readTokens(tokensLike, 'tokens', settings);
  const isRead = settings.readout !== 'every';
  const lead = shape.slice(0, -1);
  const [batch = 1] = lead;
  const length = shape.at(-1)!;
  if (isRead && length === 0 && batch > 0) throw new QkvError('SHAPE_MISMATCH', `tokens has shape ${showShape(shape)}, expected a position to read in each sequence.`);
  const lengths = eachOf(options.lengths, 'lengths', isRead ? 1 : 0, length, 'how many tokens of each sequence are valid', batch);
  if (!isRead && options.at !== undefined) invalid(`at is ${describe(options.at)} with readout 'every', expected none: it reads all positions.`);
  const at = eachOf(options.at, 'at', 0, length - 1, 'a position of each sequence', batch);
  at?.forEach((position, i) => {
    if (lengths && position >= lengths[i]!) invalid(`at[${i}] is ${position}, expected a whole number from 0 to ${lengths[i]! - 1}: below the sequence's length.`);
  });
  const context = readContext(options.context, settings, lead);
  if (!context && options.contextLengths !== undefined) invalid('contextLengths is given without context, expected both or none.');
  const contextLength = context?.shape.at(-1)!;
  const contextLengths = eachOf(options.contextLengths, 'contextLengths', 0, contextLength, 'how many tokens of each context are valid', batch);
  return { lead, batch, length, tokens, lengths, at, context: context?.data, contextLengths, keyLength: context ? contextLength : length };
}

/** How many keys a pointer's row sees of each sequence; undefined: all. */
const keysOfPointer = ({ causal }: SequenceSettings, { at, lengths, context, contextLengths }: SequenceInputs) =>
  context ? contextLengths : causal && at ? at.map((position) => position + 1) : lengths;

/**
 * A class for each sequence, or a position that the row that is read sees; with readout 'every' a class for each token,
 * or -1 for none.
 */
export function readTargets(settings: SequenceSettings, inputs: SequenceInputs, value: number | IndicesLike): Int32Array {
  const { lead, batch, length, keyLength } = inputs;
  if (settings.readout === 'every') {
    const targets = indices(value as IndicesLike, 'targets', settings.classes!, -1);
    expectShape(targets, 'targets', [...lead, length], "the tokens' shape, a class for each token or -1 for none");
    return targets.data;
  }
  const isPointer = settings.readout === 'pointer';
  const most = (isPointer ? keyLength : settings.classes!) - 1;
  const isOne = lead.length === 0 && (typeof value !== 'object' || value === null);
  const targets = isOne
    ? Int32Array.of(wholeNumber(value as number, 'targets', 0, most))
    : wholeNumbers(value as List, 'targets', 0, most, `a ${isPointer ? 'position' : 'class'} for each sequence`, batch);
  const valid = isPointer && keysOfPointer(settings, inputs);
  if (valid) targets.forEach((target, i) => wholeNumber(target, isOne ? 'targets' : nameAt('targets', i, [batch]), 0, valid[i]! - 1));
  return targets;
}

/** The inputs as the core's call has them. */
export const inputFields = (frame: Frame, { batch, length, tokens, lengths, at, context, contextLengths, keyLength }: SequenceInputs) => ({
  batch,
  length,
  tokens: frame.input(tokens),
  lengths: frame.input(lengths),
  readAt: frame.input(at),
  context: frame.input(context),
  contextLength: context ? keyLength : 0,
  contextLengths: frame.input(contextLengths),
});
