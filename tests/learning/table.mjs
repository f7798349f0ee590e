// The results as one Markdown table: a row for each case, the median and range over its seeds.
import { cpus } from 'node:os';
import { table } from '../bench/cells.mjs';
import { median } from '../bench/statistics.mjs';
import { experiments } from './experiments.mjs';

const COLUMNS = ['steps', 'held out'];

/** `results` as runJobs() gives them. */
export function learningTable(results, version) {
  const chosen = experiments.filter(({ name }) => results.some(({ experiment }) => experiment === name));
  const rows = chosen.flatMap(({ name, cases }) => cases.flatMap((one) => {
    const runs = results.filter((result) => result.experiment === name && result.case === one.name);
    return runs.length > 0 ? [rowOf(name, one, runs)] : [];
  }));
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0);
  const seeds = new Set(results.map(({ seed }) => seed)).size;
  return [
    `Median, and the lowest and the highest of ${seeds} seeds, each of which changes the starting weights, the examples and the split. qkv ${version}, build simd, one`,
    `thread each, ${cpus()[0]?.model ?? 'an unknown processor'}; ${Math.round(seconds)} s of training. Width 32, batches of 32, Adam with a rate of 3e-3. Learned: 95 % of the`,
    'examples of the last 20 steps were right; "-": not within the steps allowed.', '',
    ...chosen.map(({ name, about }) => `- ${name}: ${about}`), '',
    ...table(['experiment', 'case', 'learned', 'steps to 95 %', 'of at most', 'held-out accuracy', 'besides', 'seconds'], rows), '',
  ].join('\n');
}

function rowOf(name, { name: title, cap }, runs) {
  const numbers = (key) => runs.map((run) => run.numbers[key]);
  const others = Object.keys(runs[0].numbers).filter((key) => !COLUMNS.includes(key));
  const steps = numbers('steps');
  return [
    name, title, `${steps.filter((step) => step !== null).length} of ${runs.length}`, spread(steps.map((step) => step ?? Infinity), whole), String(cap),
    'held out' in runs[0].numbers ? spread(numbers('held out'), share) : '',
    others.map((key) => `${key} ${spread(numbers(key), share)}`).join('; '),
    spread(runs.map((run) => run.seconds), (seconds) => seconds.toFixed(1)),
  ];
}

const whole = (steps) => (Number.isFinite(steps) ? String(Math.round(steps)) : '-');
const share = (number) => number.toFixed(2);

/** "78 (70 to 91)"; one number where all are the same. */
function spread(values, show) {
  const [lowest, middle, highest] = [Math.min(...values), median(values), Math.max(...values)].map((value) => show(value));
  return lowest === highest ? middle : `${middle} (${lowest} to ${highest})`;
}
