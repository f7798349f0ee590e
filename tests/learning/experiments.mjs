/**
 * All that is trained: { name, about, cases }, each case { name, cap, run({ engine, qkv, tasks, seed }) }, which gives numbers by name; null is
 * "not within the cap", a number of steps.
 */
import { headsExperiment } from './heads.mjs';
import { parityExperiment } from './parity.mjs';
import { positionsExperiment } from './positions.mjs';
import { pronounExperiment } from './pronoun.mjs';
import { recallExperiment } from './recall.mjs';
import { relationExperiment } from './relation.mjs';

export const experiments = [recallExperiment, parityExperiment, pronounExperiment, relationExperiment, headsExperiment, positionsExperiment];
