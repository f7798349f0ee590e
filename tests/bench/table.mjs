// The Markdown that a reader sees: one table of all hosts, what it was measured on, and a longer table of everything.
import { compared, summarize } from './summary.mjs';
import { workloads } from './workloads.mjs';

const ours = 'qkv relaxed';
const onnx = 'onnxruntime-web';
const peers = [onnx, 'TensorFlow.js', 'jax-js', 'plain JavaScript'];
const natives = ['qkv native', 'Eigen', 'onnxruntime-node'];

/** `machine`: { processor, cores, system }; `packages`: names with versions; `hosts`: what runHosts gives, each with `effort`. */
export function benchTable(machine, packages, hosts) {
  const titles = [
    '', 'host', '**relaxed**', 'of peak', 'simd', 'relaxed-mt, 2 threads', 'simd-mt, 2 threads', ...peers, `${onnx} / simd`,
    'native qkv', 'native Eigen', 'onnxruntime-node', 'extra memory', 'difference',
  ];
  const rows = eachRow(hosts, (workload, host, { contestants, difference }) => {
    const row = (name) => contestants.get(name);
    return [[
      workload, host.name, time(row(ours)), share(row('peak relaxed'), row(ours)),
      ...['qkv simd', 'qkv relaxed-mt 2', 'qkv simd-mt 2'].map((name) => time(row(name))),
      ...peers.map((name) => peer(row(name), row(ours))),
      times(compared(row(onnx), row('qkv simd'))),
      ...natives.map((name) => peer(row(name), row(ours))),
      bytes(row(ours)?.extraBytes), difference?.toExponential(1) ?? '',
    ]];
  });
  return [...header(machine, packages, hosts), '', ...table(titles, rows), ''].join('\n');
}

/** Every contestant of every host, one a line. */
export function detailTable(hosts) {
  const titles = [
    'workload', 'host', 'contestant', 'ms', 'quartiles', 'medians of the processes', 'GFLOP/s', '/ relaxed', 'off by', 'extra memory',
    'best formulation', 'slower ones, in a trial', 'notes',
  ];
  const rows = eachRow(hosts, (workload, host, { contestants }) => [...contestants].map(([name, row]) => [
    workload, host.name, name, ...timesOf(row), times(compared(row, contestants.get(ours))), row.error?.toExponential(1) ?? '',
    bytes(row.extraBytes), row.formulation ?? '',
    [...(row.slower ?? [])].map(([formulation, seconds]) => `${formulation} ${ms(seconds)}`).join('; '), notesOf(row),
  ]));
  return [...table(titles, rows), ''].join('\n');
}

function timesOf({ seconds, quartiles, perProcess, gflops }) {
  if (!seconds) return ['', '', '', ''];
  return [ms(seconds), quartiles.map(ms).join(' to '), perProcess.map((one) => (one ? ms(one) : '')).join(', '), gflops.toFixed(1)];
}

/** Without the columns that are empty in every row. */
function table(titles, rows) {
  const used = titles.map((_, column) => rows.some((row) => row[column] !== ''));
  const line = (cells) => `| ${cells.filter((_, column) => used[column]).map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)];
}

function eachRow(hosts, lines) {
  const summaries = hosts.map((host) => ({ host, summary: summarize(host) }));
  return workloads.flatMap(({ name }) =>
    summaries.filter(({ summary }) => summary.has(name)).flatMap(({ host, summary }) => lines(name, host, summary.get(name))));
}

function header({ processor, cores, system }, packages, hosts) {
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`).join(', ');
  return [
    `Milliseconds on ${processor}, ${cores} cores, ${system}; ${versions}. One thread unless a column says otherwise.`,
    '',
    ...hosts.map(({ name, version, date, load, effort, processes }) => {
      const ended = processes.flatMap(({ ended }, i) => (ended ? [`; process ${i + 1} ${ended}`] : [])).join('');
      const when = `${date.slice(0, 16).replace('T', ' ')} UTC`;
      return `- ${name}: ${version}, ${when}, load ${load.toFixed(1)} before, ${processes.length} process${processes.length === 1 ? '' : 'es'}${effort === 'quick' ? ', a quick run' : ''}${ended}`;
    }),
    '',
    'A time is the median over processes of their medians, with quartiles of all rounds; a call goes from plain arrays to plain arrays.',
    'Contestants take turns in each process. 2.1x: that many times as long as relaxed within one process, the median over',
    'processes, with the lowest and highest. Of peak: GFLOP/s against a loop of nothing but relaxed multiply-adds in the same',
    'rounds. Extra memory: what an engine takes beyond inputs and outputs, its first 2 MiB included. Difference: the largest',
    'between all results.',
  ];
}

const ms = (seconds) => formatted(seconds * 1000);

function formatted(number) {
  if (number >= 100) return number.toFixed(0);
  return number.toFixed(number >= 10 ? 1 : 2);
}

/** The time, and what failed. */
function time(row) {
  if (!row) return '';
  return [row.seconds && `${ms(row.seconds)}${range(row.quartiles.map(ms))}`, notesOf(row)].filter(Boolean).join(', ');
}

/** A peer's time, how many times ours it is, and what failed. */
function peer(row, base) {
  if (!row?.seconds) return time(row);
  return [time({ ...row, notes: [] }), `**${times(compared(row, base))}**`, notesOf(row)].filter(Boolean).join(', ');
}

/** Nothing where there is only one number. */
const range = ([low, high]) => (low === high ? '' : ` (${low}-${high})`);

const times = (comparison) =>
  (comparison ? `${formatted(comparison.ratio)}x${range([comparison.lowest, comparison.highest].map(formatted))}` : '');

const notesOf = ({ notes, skipped, seconds }) => [
  ...notes.map(({ sentence, formulations }) => (formulations.length > 0 ? `${formulations.join(' and ')}: ${sentence}` : sentence)),
  ...(skipped && !seconds ? [`about ${Math.round(skipped)} s, not waited for`] : []),
].join('; ');

/** Our GFLOP/s as a share of the peak's, within each process. */
function share(peak, row) {
  const comparison = compared(peak, row);
  if (!comparison) return '';
  const workPerTime = (row.gflops * row.seconds) / (peak.gflops * peak.seconds);
  const part = (ratio) => Math.round(100 * ratio * workPerTime);
  return `${part(comparison.ratio)} %${range([comparison.lowest, comparison.highest].map(part))}`;
}

const bytes = (count) => (count === undefined ? '' : `${(count / 2 ** 20).toFixed(1)} MiB`);
