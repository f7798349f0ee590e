import { expectOptions, wholeNumber } from '../arguments.js';
import type { Chance } from './chance.js';
import { letters, MOST, QUESTION } from './letters.js';
import { makeTask } from './make-task.js';
import { sampled } from './sampled.js';
import type { Task } from './task.js';

/** Options of {@link twoQuestions}. */
export interface TwoQuestionsOptions {
  /** Places of each half, from 2 to 16384; a sequence has two halves and the question's token. */
  half: number;
  /** How many different symbols there are, from 2 to 256; there are as many answers as pairs of them. Default 6. */
  symbols?: number | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

const GAP = '.';

/**
 * Two questions at once: which symbol stands in the left half, and which in the right one? Each stands in one or more
 * places, at random, among gaps. The answer is the pair: `. B . B  D . . . ?` is `BD`. One head looks at both
 * halves with the same weights, and what it brings is nearly the same for BD and DB: it can only tell them apart by how
 * much it brings of each, and how often they stand there changes that too. Two heads take a half each.
 * Held out are sequences, of symbols that are trained on in other places.
 *
 * @param options how long, of how many symbols
 * @throws QkvError INVALID_ARGUMENT: a size out of range, fewer than 64 different sequences, an unknown option
 */
export function twoQuestions(options: TwoQuestionsOptions): Task<'last'> {
  expectOptions('twoQuestions', options, ['half', 'symbols', 'seed']);
  const { half, symbols = 6, seed = 0 } = options;
  wholeNumber(half, 'half', 2, MOST / 4);
  wholeNumber(symbols, 'symbols', 2, 256);
  const [gap, question] = [symbols, symbols + 1];
  const side = (chance: Chance) => {
    const symbol = chance.below(symbols);
    const places = chance.subset(half);
    return { symbol, tokens: Array.from({ length: half }, (_, i) => (places.has(i) ? symbol : gap)) };
  };
  const rows = sampled((chance) => {
    const [left, right] = [side(chance), side(chance)];
    return { tokens: [...left.tokens, ...right.tokens, question], target: left.symbol * symbols + right.symbol };
  }, seed, (symbols * (2 ** half - 1)) ** 2, `half ${half} and symbols ${symbols}`);
  const names = letters(symbols);
  const answers = names.flatMap((left) => names.map((right) => left + right));
  return makeTask(
    { name: 'twoQuestions', readout: 'last', length: 2 * half + 1, words: [...names, GAP, QUESTION], answers }, rows, () => ({}));
}
