import { expectOptions, wholeNumber } from '../arguments.js';
import { orders } from './chance.js';
import { makeTask } from './make-task.js';
import { sampled } from './sampled.js';
import type { Task } from './task.js';

/** Options of {@link directedRelation}. */
export interface DirectedRelationOptions {
  /** Animals in a ring, from 3 to `animals`. */
  length: number;
  /** How many different animals there are, from 6 to 16. Default 8. */
  animals?: number | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

const ANIMALS = [
  'dog', 'cat', 'fox', 'hen', 'wolf', 'hare', 'owl', 'mouse', 'bear', 'goat', 'lynx', 'duck', 'hawk', 'frog', 'pike', 'seal',
] as const;

/**
 * Who chased whom: animals stand in a ring, each chases the next one and the last the first. Each animal is asked whom it
 * chases: `dog cat fox` is `cat fox dog`. Scores have to tell the one ahead from the one behind. Where query and key are
 * one projection they cannot: score(i, j) is score(j, i), and to look ahead everywhere around the ring of n animals
 * takes score(1, 2) < score(2, 3) < ... < score(n, 1) < score(1, 2). At least one of them looks the wrong way.
 * Held out are rings, whichever animal they begin with.
 *
 * @param options how many animals
 * @throws QkvError INVALID_ARGUMENT: a size out of range, fewer than 64 different sequences, an unknown option
 */
export function directedRelation(options: DirectedRelationOptions): Task<'every'> {
  expectOptions('directedRelation', options, ['length', 'animals', 'seed']);
  const { length, animals = 8, seed = 0 } = options;
  wholeNumber(animals, 'animals', 6, ANIMALS.length);
  wholeNumber(length, 'length', 3, animals);
  const rows = sampled((chance) => {
    const tokens = chance.some(length, animals);
    const from = (start: number) => [...tokens.slice(start), ...tokens.slice(0, start)];
    return { tokens, target: from(1), facts: from(tokens.indexOf(Math.min(...tokens))) };
  }, seed, orders(length, animals), `length ${length} and animals ${animals}`);
  const words = ANIMALS.slice(0, animals);
  return makeTask({ name: 'directedRelation', readout: 'every', length, words, answers: words }, rows, () => ({}));
}
