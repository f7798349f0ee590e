import { expectOptions, wholeNumber } from '../arguments.js';
import { letters, MOST } from './letters.js';
import { makeTask } from './make-task.js';
import { sampled } from './sampled.js';
import type { Task } from './task.js';

/** Options of {@link recall}. */
export interface RecallOptions {
  /** Tokens of a sequence, from 2 to 65536: the first one is asked for at the last one. */
  length: number;
  /** How many different tokens there are, from 2 to 65536. Default 8. */
  symbols?: number | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

/**
 * Recall over a distance: random symbols, and at the last one the answer is what the first one was. Attention looks
 * there in one step, however far it is; a recurrent network has to carry it past all the others (Hochreiter &
 * Schmidhuber, 1997, section 5). `C A A B` is `C`. Held out are sequences.
 *
 * @param options how long, of how many symbols
 * @throws QkvError INVALID_ARGUMENT: a size out of range, fewer than 64 different sequences, an unknown option
 */
export function recall(options: RecallOptions): Task<'last'> {
  expectOptions('recall', options, ['length', 'symbols', 'seed']);
  const { length, symbols = 8, seed = 0 } = options;
  wholeNumber(length, 'length', 2, MOST);
  wholeNumber(symbols, 'symbols', 2, MOST);
  const rows = sampled((chance) => {
    const tokens = chance.list(length, symbols);
    return { tokens, target: tokens[0]! };
  }, seed, symbols ** length, `length ${length} and symbols ${symbols}`);
  const words = letters(symbols);
  return makeTask({ name: 'recall', readout: 'last', length, words, answers: words }, rows, () => ({}));
}
