// All that one process, or one page, times: each workload with every contestant.
import { Comparison } from './compare.mjs';
import { contestants } from './contestants/index.mjs';
import { measureCosts } from './costs.mjs';
import { makeInputs } from './inputs.mjs';
import { hopeful, inTurns, trial } from './measure.mjs';
import { workloads } from './workloads.mjs';

/**
 * `plan`:
 *   workloads, contestants  names
 *   seconds                 for the rounds of one workload
 *   check                   whether results are compared, and our memory is counted
 *   enough                  "workload|contestant" and "workload|contestant|formulation" of those that need no more times
 *   costs                   whether what our calls cost besides arithmetic is measured, before all else
 *   patience                seconds beyond which a call is not waited for, but that of a patient contestant
 * `environment` loads libraries, see contestants/index.mjs. `report` gets { costs }, then { workload, entries, difference }
 * of one workload after another.
 */
export async function runSession(plan, environment, report) {
  if (plan.costs) await report({ costs: await costsOrNote(environment) });
  const open = [];
  for (const contestant of contestants.filter(({ name }) => plan.contestants.includes(name))) {
    open.push(await opened(contestant, environment));
  }
  for (const workload of workloads.filter(({ name }) => plan.workloads.includes(name))) {
    const skipped = ({ name }) => plan.enough.includes(`${workload.name}|${name}`);
    await report(await timeWorkload(workload, open.filter((contestant) => !skipped(contestant)), plan));
  }
  for (const contestant of open) await contestant.close?.();
}

async function costsOrNote(environment) {
  try {
    return await measureCosts(environment);
  } catch (error) {
    return { note: sentenceOf(error) };
  }
}

async function opened(contestant, environment) {
  try {
    return { ...contestant, ...(await contestant.open(environment)) };
  } catch (error) {
    return { ...contestant, missing: sentenceOf(error) };
  }
}

async function timeWorkload(workload, contestantsOpen, plan) {
  const inputs = makeInputs(workload);
  const comparison = plan.check && new Comparison(workload, inputs);
  const [trials, entries] = [[], []];
  for (const contestant of contestantsOpen.filter((contestant) => takesPart(contestant, workload))) {
    const skipped = await tooSlow(workload, contestant, plan.patience);
    if (contestant.missing) entries.push({ contestant: contestant.name, note: contestant.missing });
    else if (skipped) entries.push({ contestant: contestant.name, skipped });
    else await enter(workload, contestant, inputs, plan, comparison, trials, entries);
  }
  const racing = hopeful(trials);
  for (const { entrant, contestant, formulation, seconds } of trials.filter((one) => !racing.includes(one))) {
    await letGo(entrant);
    entries.push({ contestant, formulation, slower: seconds });
  }
  await inTurns(racing, plan.seconds);
  for (const { entrant, failure, ...entry } of racing) {
    await letGo(entrant);
    entries.push(failure ? { ...entry, times: undefined, note: sentenceOf(failure) } : entry);
  }
  for (const { name, extraBytes } of plan.check ? contestantsOpen : []) {
    const entry = entries.find((one) => one.contestant === name && one.times);
    if (entry && extraBytes) entry.extraBytes = await extraBytes(workload, inputs);
  }
  return { workload: workload.name, entries, ...(comparison && { difference: comparison.largestDifference }) };
}

const takesPart = ({ only, gradients = false }, workload) => (gradients || !workload.gradients) && (only?.(workload) ?? true);

/** The seconds that a call would take, where they are more than `patience`. Only attention has sizes for that. */
async function tooSlow({ kind, flops, denseFlops }, contestant, patience) {
  if (kind !== 'attention' || contestant.patient || contestant.missing) return undefined;
  contestant.speed ??= await speedOf(contestant);
  const seconds = (contestant.dense ? denseFlops : flops) / contestant.speed;
  return seconds > patience ? seconds : undefined;
}

/** FLOP/s in the smallest workload. */
async function speedOf({ prepare, compiles }) {
  const [smallest] = workloads;
  let seconds = Infinity;
  try {
    for (const entrant of await prepare(smallest, makeInputs(smallest))) {
      seconds = Math.min(seconds, (await trial(entrant, compiles)).seconds);
      await letGo(entrant);
    }
  } catch {
    // What fails is found out, and said, in the workloads.
    return Infinity;
  }
  return smallest.flops / seconds;
}

/** Adds a trial for each formulation that works, and an entry with a note for each that does not. */
async function enter(workload, contestant, inputs, { enough }, comparison, trials, entries) {
  const { name, patient = false, minor = false } = contestant;
  const fail = (formulation, error) => entries.push({ contestant: name, ...(formulation && { formulation }), note: sentenceOf(error) });
  let entrants;
  try {
    entrants = await contestant.prepare(workload, inputs);
  } catch (error) {
    return fail(undefined, error);
  }
  for (const entrant of entrants) {
    try {
      if (entrant.error) throw entrant.error;
      if (enough.includes(`${workload.name}|${name}|${entrant.formulation}`)) {
        await letGo(entrant);
        continue;
      }
      const { result, ...trialTimes } = await trial(entrant, contestant.compiles);
      const judged = comparison && entrant.read ? comparison.add(await entrant.read(result)) : {};
      if (judged.wrong) throw new Error(`wrong result: ${judged.wrong}`);
      trials.push({ contestant: name, formulation: entrant.formulation, flops: entrant.flops ?? workload.flops, patient, minor, entrant, ...trialTimes, ...judged });
    } catch (error) {
      await letGo(entrant);
      fail(entrant.formulation, error);
    }
  }
}

async function letGo(entrant) {
  try {
    await entrant.release?.();
  } catch {
    // After a failure there may be nothing left to release.
  }
}

/** An error's message without the places in source files that it names, on one line. */
function sentenceOf(error) {
  const message = typeof error === 'number' ? `the WebAssembly threw ${error}` : String(error?.message ?? error);
  return message.replace(/\S*\/\S+\.(h|cc|cpp|mjs|js)(:\d+)?\s*/g, '').replace(/\s+/g, ' ').trim().slice(0, 200);
}
