import { expectOptions, oneOf, wholeNumber } from '../arguments.js';
import { type Chance, orders } from './chance.js';
import { letters, MOST, QUESTION } from './letters.js';
import { makeTask } from './make-task.js';
import { sampled } from './sampled.js';
import type { Examples, Integers, Task } from './task.js';

/** Options of {@link reorder}. */
export interface ReorderOptions {
  /** Tokens of a sequence, from 1 to 65536. */
  length: number;
  /** Tokens of its context, from `length` to 65536. Default `length`. */
  contextLength?: number | undefined;
  /** How many different symbols there are, from 2 to 65536. Default 8. */
  symbols?: number | undefined;
  /**
   * Which position of the context each token asks for. `'given'`: each says so by its number, in any order, none twice;
   * `'reversed'`: all say `?`, and the first asks for the last. Default `'given'`.
   */
  order?: 'given' | 'reversed' | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

/** Examples of {@link reorder}. */
export interface ReorderExamples extends Examples {
  /** (count, length): the position of the context that is right, for each token. */
  readonly alignment: Integers;
}

/**
 * A text in another order, for cross-attention: each token asks for the symbol at one position of the context, so that
 * the weights have to be the alignment of the two (Bahdanau et al., 2015). `3 1 2` with context `A B C` is `C A B`.
 * Held out are contexts, whatever they are asked.
 *
 * @param options how long both are, of how many symbols, in which order
 * @throws QkvError INVALID_ARGUMENT: a size out of range, fewer than 64 different examples, an unknown option
 */
export function reorder(options: ReorderOptions): Task<'every', ReorderExamples> {
  expectOptions('reorder', options, ['length', 'contextLength', 'symbols', 'order', 'seed']);
  const { length, contextLength = length, symbols = 8, order = 'given', seed = 0 } = options;
  wholeNumber(length, 'length', 1, MOST);
  wholeNumber(contextLength, 'contextLength', length, MOST);
  wholeNumber(symbols, 'symbols', 2, MOST);
  const isGiven = oneOf(order, 'order', ['given', 'reversed']) === 'given';
  const reversed = Array.from({ length }, (_, i) => contextLength - 1 - i);
  const ways = isGiven ? orders(length, contextLength) : 1;
  const sizes = `${isGiven ? `length ${length}, ` : ''}contextLength ${contextLength} and symbols ${symbols}`;
  const rows = sampled((chance: Chance) => {
    const context = chance.list(contextLength, symbols);
    const alignment = isGiven ? chance.some(length, contextLength) : reversed;
    const tokens = alignment.map((position) => symbols + (isGiven ? position : 0));
    return { tokens, context, alignment, target: alignment.map((position) => context[position]!), ...(isGiven && { facts: context }) };
  }, seed, symbols ** contextLength * ways, sizes);
  const answers = letters(symbols);
  const questions = isGiven ? Array.from({ length: contextLength }, (_, i) => String(i + 1)) : [QUESTION];
  return makeTask(
    { name: 'reorder', readout: 'every', length, words: [...answers, ...questions], answers }, rows,
    (column) => ({ alignment: column(({ alignment }) => alignment) }));
}
