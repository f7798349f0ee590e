import { invalid, wholeNumber } from '../arguments.js';
import { Chance, everyWay, hashed } from './chance.js';
import type { Row, Source } from './make-task.js';

/** Enough that there is something to train on and something to test. */
const FEWEST = 64;
/** One sequence in so many is held out. */
const HELD_OUT_PART = 5;
/** Of so many sequences all that are held out are found by trying every choice, in less than a second. */
const ENUMERABLE = 2 ** 16;
/** After so many repeated ones drawing gives way to what is left. */
const PATIENCE = 64;
/**
 * Of more sequences one in so many may be asked for. A fifth is held out, so that where all are equally likely five draws of
 * six are new until then, and one of several where they are not.
 */
const DRAWN_PART = 32;
/** The most that are drawn: a set that tells which came before takes their memory. */
const MOST_DRAWN = 2 ** 20;

/**
 * Rows that `draw` makes, of which a hash holds out a fifth: a row's facts alone and the seed decide, so that no row is
 * on both sides, nor in a task of the same kind and seed with other lengths.
 *
 * @param sequences how many different rows there are
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
  const isEnumerable = sequences <= ENUMERABLE;
  const whole = ({ tokens, context = [] }: Row) => [...tokens, -1, ...context];
  let salt = seed;
  const isHeldOut = (row: R) => mayHoldOut(row) && hashed(row.facts ?? whole(row), salt) % HELD_OUT_PART === 0;
  const anyHeldOut = () => {
    for (const row of everyWay(draw)) if (isHeldOut(row)) return true;
    return false;
  };
  // Of few facts all may be on the other side.
  while (isEnumerable && !anyHeldOut()) salt++;

  const stream = (heldOut: boolean) => {
    const chance = new Chance(seed, Number(heldOut));
    return () => {
      for (;;) {
        const row = draw(chance);
        if (isHeldOut(row) === heldOut) return row;
      }
    };
  };
  let found: R[] | undefined;
  const all = () => (found ??= new Chance(seed, 2).shuffled([...everyWay(draw)].filter(isHeldOut)));
  function* heldOut(): Generator<R, void> {
    const before = new Set<string>();
    const isNew = (row: R) => before.size < before.add(whole(row).join()).size;
    const next = stream(true);
    // As they are drawn to train on, so that frequent ones come first.
    for (let repeated = 0; !isEnumerable || repeated < PATIENCE; repeated++) {
      const row = next();
      if (!isNew(row)) continue;
      repeated = 0;
      yield row;
    }
    yield* all().filter(isNew);
  }
  return {
    train: stream(false),
    heldOut,
    heldOutCount: () => (isEnumerable ? all().length : Math.min(Math.floor(sequences / DRAWN_PART), MOST_DRAWN)),
  };
}
