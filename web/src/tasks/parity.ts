import { expectOptions, wholeNumber } from '../arguments.js';
import { MOST } from './letters.js';
import { makeTask } from './make-task.js';
import { sampled } from './sampled.js';
import type { Task } from './task.js';

/** Options of {@link parity}. */
export interface ParityOptions {
  /** The most bits of a sequence, from 1 to 65536. */
  length: number;
  /** The fewest bits, from 1 to `length`. Default 1. */
  shortest?: number | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

/** Of shorter ones a few would be held out, and make up much of what is tested. */
const FEWEST_HELD_OUT = 8;

/**
 * Parity: whether the number of ones is even or odd, asked at the last bit. `1 0 1 1` is `odd`. A recurrent network
 * needs one bit of memory, whatever the length; one layer of attention cannot do it for every length (Hahn,
 * "Theoretical Limitations of Self-Attention", 2020). To test at a length that was never trained, make a second task
 * of it: `parity({ length: 120, shortest: 120 }).heldOut()`. Held out are sequences; of fewer
 * than 8 bits only where there are no longer ones.
 *
 * @param options how many bits
 * @throws QkvError INVALID_ARGUMENT: a size out of range, fewer than 64 different sequences, an unknown option
 */
export function parity(options: ParityOptions): Task<'last'> {
  expectOptions('parity', options, ['length', 'shortest', 'seed']);
  const { length, shortest = 1, seed = 0 } = options;
  wholeNumber(length, 'length', 1, MOST);
  wholeNumber(shortest, 'shortest', 1, length);
  const rows = sampled((chance) => {
    const tokens = chance.list(shortest + chance.below(length - shortest + 1), 2);
    return { tokens, target: tokens.reduce((odd, bit) => odd ^ bit, 0) };
  }, seed, 2 ** (length + 1) - 2 ** shortest, `length ${length} and shortest ${shortest}`, ({ tokens }) => tokens.length >= Math.min(length, FEWEST_HELD_OUT));
  const description = { name: 'parity', readout: 'last', length, words: ['0', '1'], answers: ['even', 'odd'], ragged: shortest < length } as const;
  return makeTask(description, rows, () => ({}));
}
