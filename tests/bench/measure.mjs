// Times what contestants have prepared for one workload: a trial, then rounds in which they take turns.

/** A turn takes at least this long: as many calls as that needs. In seconds, as all times here. */
const TURN = 0.005;
const WARM = 0.06;
/** Slower calls are too few for rounds, but for one of those that matter most, the patient ones. */
const SLOW = { patient: 0.4, other: 0.15 };
const VERY_SLOW = 1;
const ROUNDS = { least: 3, most: 21 };
/** Formulations that are slower than their contestant's best by this much in the trial do not run on. */
const HOPELESS = 1.25;

export const isSlow = ({ seconds, patient }) => seconds > (patient ? SLOW.patient : SLOW.other);

/**
 * Calls until warm: { first, seconds (of the fastest call), result (of the last) }. `compiles`: the first call does
 * more than compute, so that another one has to follow even where it is slow.
 */
export async function trial(entrant, compiles) {
  const [first, firstResult] = await oneCall(entrant);
  let [seconds, result, calls] = [first, firstResult, 1];
  for (let total = first; total < WARM || (calls === 1 && (compiles || total < SLOW.patient)); calls++) {
    const [next, latest] = await oneCall(entrant);
    seconds = Math.min(seconds, next);
    result = latest;
    total += next;
  }
  return { first, seconds, result };
}

async function oneCall(entrant) {
  if (entrant.time) return [await entrant.time(1), await entrant.call()];
  const start = performance.now();
  const result = await entrant.call();
  return [(performance.now() - start) / 1000, result];
}

/** The formulations that may still be their contestant's best. */
export const hopeful = (trials) => trials.filter(({ contestant, seconds }) => {
  const best = Math.min(...trials.filter((other) => other.contestant === contestant).map((other) => other.seconds));
  return seconds <= HOPELESS * best;
});

/** Fills `times`, seconds per call in each round, of every trial, or `failure`. `budget`: seconds for all rounds together. */
export async function inTurns(trials, budget) {
  const quick = trials.filter((one) => !isSlow(one));
  const all = quick.reduce((sum, { seconds }) => sum + Math.max(seconds, TURN), 0);
  const rounds = Math.min(ROUNDS.most, Math.max(ROUNDS.least, Math.floor(budget / all)));
  const roundsOf = (one) => (isSlow(one) ? Number(one.patient && one.seconds <= VERY_SLOW) : rounds);
  for (const one of trials) one.times = isSlow(one) ? [one.seconds] : [];
  for (let round = 0; round < rounds; round++) {
    const inOrder = trials.filter((one) => round < roundsOf(one));
    // Nobody always follows the same neighbour's use of the caches.
    for (const one of round % 2 === 0 ? inOrder : inOrder.reverse()) await takeTurn(one);
  }
}

async function takeTurn(one) {
  if (one.failure) return;
  try {
    one.times.push(await secondsPerCall(one.entrant, Math.ceil(TURN / one.seconds)));
  } catch (error) {
    one.failure = error;
  }
}

async function secondsPerCall(entrant, calls) {
  if (entrant.time) return (await entrant.time(calls)) / calls;
  const start = performance.now();
  for (let i = 0; i < calls; i++) {
    const result = entrant.call();
    // Those that need not wait are not made to.
    if (typeof result?.then === 'function') await result;
  }
  return (performance.now() - start) / 1000 / calls;
}
