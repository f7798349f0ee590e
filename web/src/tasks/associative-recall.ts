import { expectOptions, wholeNumber } from '../arguments.js';
import { orders } from './chance.js';
import { letters, MOST } from './letters.js';
import { makeTask } from './make-task.js';
import { sampled } from './sampled.js';
import type { Task } from './task.js';

/** Options of {@link associativeRecall}. */
export interface AssociativeRecallOptions {
  /** Keys with a value each in a sequence, from 1 to 16384. */
  pairs: number;
  /** How many different keys there are, from `pairs` to 65536. Default 8, or `pairs` where that is more. */
  keys?: number | undefined;
  /** How many different values there are, from 2 to 65536. Default 8. */
  values?: number | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

/**
 * Associative recall: keys, each followed by its value, then one of the keys again; the answer is its value (Ba et al.,
 * "Using Fast Weights to Attend to the Recent Past", 2016). `B 3 A 1 D 3 A` is `1`. Attention takes two layers, one in
 * which values meet the key before them and one that finds the key; it learns that soonest with `causal: true`.
 * Held out are pairs with the question: the same ones in another order are held out too.
 *
 * @param options how many pairs, of how many keys and values
 * @throws QkvError INVALID_ARGUMENT: a size out of range, fewer than 64 different sequences, an unknown option
 */
export function associativeRecall(options: AssociativeRecallOptions): Task<'last'> {
  expectOptions('associativeRecall', options, ['pairs', 'keys', 'values', 'seed']);
  const { pairs, keys = Math.max(8, pairs), values = 8, seed = 0 } = options;
  wholeNumber(pairs, 'pairs', 1, MOST / 4);
  wholeNumber(keys, 'keys', pairs, MOST);
  wholeNumber(values, 'values', 2, MOST);
  const rows = sampled((chance) => {
    const [chosen, their] = [chance.some(pairs, keys), chance.list(pairs, values)];
    const asked = chance.below(pairs);
    const facts = chosen.map((key, i) => key * values + their[i]!).sort((a, b) => a - b);
    const tokens = [...chosen.flatMap((key, i) => [key, keys + their[i]!]), chosen[asked]!];
    return { tokens, target: their[asked]!, facts: [...facts, chosen[asked]!] };
  }, seed, orders(pairs, keys) * values ** pairs * pairs, `pairs ${pairs}, keys ${keys} and values ${values}`);
  const answers = Array.from({ length: values }, (_, i) => String(i));
  const words = [...letters(keys), ...answers];
  return makeTask({ name: 'associativeRecall', readout: 'last', length: 2 * pairs + 1, words, answers }, rows, () => ({}));
}
