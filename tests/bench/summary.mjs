// What the processes of one host say together.
import { median, quantile } from './statistics.mjs';

/** Each contestant's fastest formulation in one process, with its median `seconds`; without those that `failed` in another. */
export function bestOfEach(entries, failed = () => false) {
  const best = new Map();
  for (const entry of entries.filter((one) => one.times && !failed(one))) {
    const seconds = median(entry.times);
    if (!(best.get(entry.contestant)?.seconds <= seconds)) best.set(entry.contestant, { ...entry, seconds });
  }
  return [...best.values()];
}

/**
 * Map of workload -> { difference, contestants: Map of name -> row }; a row is
 * { seconds, quartiles, perProcess: seconds by process, formulation, slower: other formulations' seconds, gflops,
 *   error?, extraBytes?, notes }, or
 * only { notes, skipped?: seconds } where nothing was timed.
 */
export function summarize({ processes }) {
  const summary = new Map();
  const failures = new Set();
  for (const [i, { results }] of processes.entries()) {
    for (const { workload, entries, difference } of results) {
      const known = summary.get(workload) ?? { contestants: new Map() };
      summary.set(workload, { ...known, ...(difference !== undefined && { difference }) });
      // Only the first process looks at results, so what it says of a formulation holds for all.
      const keyOf = ({ contestant, formulation }) => `${workload}|${contestant}|${formulation}`;
      for (const entry of entries.filter(({ note }) => note)) failures.add(keyOf(entry));
      gather(known.contestants, entries, i, (entry) => failures.has(keyOf(entry)));
    }
  }
  for (const { contestants } of summary.values()) {
    for (const [name, gathered] of contestants) contestants.set(name, rowOf(gathered));
  }
  return summary;
}

function gather(contestants, entries, process, failed) {
  for (const { contestant, formulation, note, skipped, slower } of entries) {
    const known = contestants.get(contestant) ?? { best: [], notes: new Map(), slower: new Map() };
    contestants.set(contestant, known);
    known.skipped ??= skipped;
    if (slower) known.slower.set(formulation, Math.min(slower, known.slower.get(formulation) ?? Infinity));
    if (note) known.notes.set(note, new Set([...(known.notes.get(note) ?? []), formulation]));
  }
  for (const entry of bestOfEach(entries, failed)) contestants.get(entry.contestant).best[process] = entry;
}

function rowOf({ best, notes, skipped, slower }) {
  const row = { notes: [...notes].map(([sentence, formulations]) => ({ sentence, formulations: [...formulations].filter(Boolean) })) };
  const measured = best.filter(Boolean);
  if (measured.length === 0) return { ...row, skipped };
  const seconds = median(measured.map((entry) => entry.seconds));
  const times = measured.flatMap((entry) => entry.times);
  const judged = measured.find(({ error }) => error !== undefined);
  return {
    ...row,
    seconds,
    quartiles: [quantile(times, 0.25), quantile(times, 0.75)],
    perProcess: best.map((entry) => entry?.seconds),
    slower,
    formulation: mostFrequent(measured.map(({ formulation }) => formulation)),
    gflops: measured[0].flops / seconds / 1e9,
    ...(judged && { error: judged.error }),
    extraBytes: measured.find(({ extraBytes }) => extraBytes !== undefined)?.extraBytes,
  };
}

const mostFrequent = (names) =>
  [...new Set(names)].sort((a, b) => names.filter((name) => name === b).length - names.filter((name) => name === a).length)[0];

/** How many times as long `row` takes as `base`, within each process that timed both: { ratio, lowest, highest }. */
export function compared(row, base) {
  const ratios = (row?.perProcess ?? []).map((seconds, i) => seconds / base?.perProcess?.[i]).filter(Number.isFinite);
  return ratios.length > 0 ? { ratio: median(ratios), lowest: Math.min(...ratios), highest: Math.max(...ratios) } : undefined;
}
