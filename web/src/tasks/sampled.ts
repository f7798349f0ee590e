import { invalid, wholeNumber } from '../arguments.js';
import { Chance, hashed } from './chance.js';
import type { Row, Source } from './make-task.js';

/** Enough that neither side of the split is ever empty. */
const FEWEST = 64;
/** One sequence in so many is held out. */
const HELD_OUT_PART = 5;

/**
 * Rows that `draw` makes, of which a hash holds out a fifth: a row alone and the seed decide, so that no row is on both
 * sides, nor in a task of the same kind and seed with other lengths.
 *
 * @param sequences how many different rows there are, or about so
 * @param sizes the options that say so, for the message
 * @param mayHoldOut whether a row is of a kind of which there are enough. Default all are
 */
export function sampled<R extends Row>(
  draw: (chance: Chance) => R,
  seed: number,
  sequences: number,
  sizes: string,
  mayHoldOut: (row: R) => boolean = () => true,
): Source<R> {
  wholeNumber(seed, 'seed', 0);
  if (sequences < FEWEST) {
    invalid(`${sizes} make ${sequences} different sequences, expected at least ${FEWEST}, so that some can be held out.`);
  }
  const hash = ({ tokens, context = [] }: Row) => hashed([...tokens, -1, ...context], seed);
  const isHeldOut = (row: R) => mayHoldOut(row) && hash(row) % HELD_OUT_PART === 0;
  const stream = (heldOut: boolean) => {
    const chance = new Chance(seed, Number(heldOut));
    return () => {
      for (;;) {
        const row = draw(chance);
        if (isHeldOut(row) === heldOut) return row;
      }
    };
  };
  return { train: stream(false), heldOut: (count) => Array.from({ length: count }, stream(true)) };
}
