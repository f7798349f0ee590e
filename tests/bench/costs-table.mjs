// The small table: what our calls cost besides arithmetic.
import { formatted, ms, range, table, times, us } from './cells.mjs';
import { median } from './statistics.mjs';
import { compared, summarize } from './summary.mjs';

/** Two threads are held against one at the first of these that was timed. */
const forThreads = ['attention 12 x 1024 x 64', 'attention 12 x 512 x 64'];

/** Of each host a row, where anything was measured. */
export function costsTable(hosts) {
  const titles = ['', '`load()` from bytes, ms', 'first call / warm call of 12 x 512 x 64', 'its backward / forward', 'a call of 16 x 64, us', 'of that beside arithmetic and copies', 'waking the pool, us', 'relaxed / relaxed-mt with 2 threads', ''];
  const rows = hosts.map((host) => {
    const all = host.processes.flatMap(({ costs }) => (costs && !costs.note ? [costs] : []));
    const over = (of, format) => summed(all.map(of).filter(Number.isFinite), format);
    const note = host.processes.map(({ costs }) => costs?.note).find(Boolean) ?? '';
    return [
      host.name, over(({ load }) => load, ms), over(({ first, warm }) => first / warm, formatted), over(({ forward, backward }) => backward / forward, formatted),
      over(({ call }) => call, us), over(({ beside }) => beside, us), over(({ waking }) => waking, us), threadsGain(host), note,
    ];
  }).filter((row) => row.slice(1).some((cell) => cell !== ''));
  if (rows.length === 0) return [];
  return [
    'Costs besides arithmetic, of relaxed: each the median over processes, with the lowest and the highest. Copies: what is',
    'copied into the engine and out. Waking: what a small call takes more with two threads, both asleep, than with one.',
    '', ...table(titles, rows), '',
  ];
}

const summed = (numbers, format) =>
  (numbers.length > 0 ? `${format(median(numbers))}${range([Math.min(...numbers), Math.max(...numbers)].map(format))}` : '');

function threadsGain(host) {
  const summary = summarize(host);
  for (const workload of forThreads) {
    const contestants = summary.get(workload)?.contestants;
    const gain = compared(contestants?.get('qkv relaxed'), contestants?.get('qkv relaxed-mt 2'));
    if (gain) return `${times(gain)} at ${workload.replace('attention ', '')}`;
  }
  return '';
}
