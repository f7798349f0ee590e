// Repeats the benchmark in several processes of each host, within a time limit.
import { loadavg } from 'node:os';
import { isSlow } from './measure.mjs';
import { median } from './statistics.mjs';
import { bestOfEach } from './summary.mjs';

/** Minutes are for all hosts together; seconds for the rounds of a workload in one process. */
export const efforts = {
  full: { processes: 5, minutes: 14, seconds: 1.6, patience: 4 },
  quick: { processes: 2, minutes: 3, seconds: 0.6, patience: 1 },
};

/** So many processes run even where the time is over, as on a busy machine. */
const FEWEST_PROCESSES = 2;

const FEWEST_SECONDS = 0.3;
/** Slow calls are made in two processes, those slower than this, but for patient contestants, in one. */
const VERY_SLOW = 1;

/**
 * `chosen`: { workloads: names, contestantsOf(host): names, costs: whether they are measured }. `onStep(host, process, what)` says how far it is. Resolves
 * to { name, version, date, load, processes: [{ results, costs, ended }] } of each host.
 */
export async function runHosts(hosts, effort, chosen, onStep) {
  const measured = [];
  for (const host of hosts) {
    const plan = { workloads: chosen.workloads, contestants: chosen.contestantsOf(host), costs: chosen.costs, patience: effort.patience };
    const end = Date.now() + (effort.minutes * 60_000) / hosts.length;
    measured.push(await runHost(host, effort, plan, end, (...step) => onStep(host, ...step)));
  }
  return measured;
}

async function runHost(host, effort, chosen, end, onStep) {
  const state = { name: host.name, version: host.version, date: new Date().toISOString(), load: loadavg()[0], processes: [] };
  let seconds = effort.seconds;
  let took = 0;
  for (let i = 0; i < effort.processes; i++) {
    const started = Date.now();
    if (i >= FEWEST_PROCESSES && started + took > end) break;
    onStep(i + 1, 'starts');
    const measured = { results: [] };
    state.processes.push(measured);
    const plan = { ...chosen, seconds, check: i === 0, enough: enough(state.processes) };
    measured.ended = await host.run(plan, ({ costs, ...result }) => {
      if (costs) measured.costs = costs;
      else measured.results.push(result);
      onStep(i + 1, `timed ${costs ? 'costs besides arithmetic' : result.workload}`);
    });
    took = Date.now() - started;
    seconds = secondsLeft(effort, chosen.workloads.length, seconds, took, end - Date.now(), effort.processes - i - 1);
  }
  return state;
}

/** So much for each workload's rounds that the processes to come end in time, if all but the rounds takes as long as in the last. */
function secondsLeft(effort, workloads, seconds, lastTook, left, processes) {
  const besides = lastTook / 1000 - seconds * workloads;
  const each = (left / 1000 / Math.max(1, processes) - besides) / Math.max(1, workloads);
  return Math.max(FEWEST_SECONDS, Math.min(effort.seconds, each));
}

/**
 * "workload|contestant" of those that need no further process: slow, minor or skipped ones; and
 * "workload|contestant|formulation" of formulations that another one beat or that failed.
 */
function enough(processes) {
  const calls = new Map();
  const others = [];
  for (const { workload, entries } of processes.flatMap(({ results }) => results)) {
    const key = ({ contestant }) => `${workload}|${contestant}`;
    others.push(...entries.filter((entry) => entry.skipped).map(key));
    others.push(...entries.filter((entry) => entry.slower || entry.note).map((entry) => `${key(entry)}|${entry.formulation}`));
    for (const best of bestOfEach(entries)) calls.set(key(best), [...(calls.get(key(best)) ?? []), best]);
  }
  const isEnough = (made) => {
    const seconds = median(made.map((best) => best.seconds));
    const [{ minor, patient }] = made;
    return (minor || isSlow({ seconds, patient })) && made.length >= (seconds > VERY_SLOW && !patient ? 1 : 2);
  };
  return [...others, ...[...calls].filter(([, made]) => isEnough(made)).map(([key]) => key)];
}
