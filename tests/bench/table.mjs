// The Markdown of build/: one table of all hosts, what it was measured on, and a longer table of everything.
import { bytes, inFewWords, ms, notesOf, range, share, table, times } from './cells.mjs';
import { costsTable } from './costs-table.mjs';
import { compared, summarize } from './summary.mjs';
import { workloads } from './workloads.mjs';

const ours = 'qkv relaxed';
const onnx = 'onnxruntime-web';
const peers = [onnx, 'TensorFlow.js', 'jax-js', 'plain JavaScript', 'Eigen as WebAssembly'];
const natives = ['qkv native', 'Eigen native', 'onnxruntime-node'];

/** `machine`: { processor, cores, system }; `packages`: names with versions; `hosts`: what runHosts gives, each with `effort`. */
export function benchTable(machine, packages, hosts) {
  const titles = [
    '', 'host', '**relaxed**', 'of peak', 'simd', 'relaxed-mt, 2 threads', 'simd-mt, 2 threads', ...peers, `${onnx} / simd`,
    'native qkv', 'native Eigen', 'onnxruntime-node', 'extra memory', 'difference',
  ];
  const rows = eachRow(hosts, (workload, host, { contestants, difference }) => {
    const row = (name) => contestants.get(name);
    return [[
      workload, host.name, time(row(ours)), partOf(share(row('peak relaxed'), row(ours))),
      ...['qkv simd', 'qkv relaxed-mt 2', 'qkv simd-mt 2'].map((name) => time(row(name))),
      ...peers.map((name) => peer(row(name), row(ours))),
      times(compared(row(onnx), row('qkv simd'))),
      ...natives.map((name) => peer(row(name), row(ours))),
      bytes(row(ours)?.extraBytes), difference?.toExponential(1) ?? '',
    ]];
  });
  return [...header(machine, packages, hosts), '', ...(rows.length > 0 ? [...table(titles, rows), ''] : []), ...costsTable(hosts)].join('\n');
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

function eachRow(hosts, lines) {
  const summaries = hosts.map((host) => ({ host, summary: summarize(host) }));
  return workloads.flatMap(({ name }) =>
    summaries.filter(({ summary }) => summary.has(name)).flatMap(({ host, summary }) => lines(name, host, summary.get(name))));
}

function header(machine, packages, hosts) {
  return [
    `Milliseconds on ${measuredOn(machine, packages)}. One thread unless a column says otherwise.`,
    '',
    ...hosts.map(hostLine),
    '',
    'A time is the median over processes of their medians, with quartiles of all rounds; a call goes from plain arrays to plain arrays.',
    'Contestants take turns in each process. 2.1x: that many times as long as relaxed within one process, the median over',
    'processes, with the lowest and highest. Of peak: GFLOP/s against a loop of nothing but relaxed multiply-adds in the same',
    'rounds. Extra memory: what an engine takes beyond inputs and outputs, its first 2 MiB included. Difference: the largest',
    'between all results.',
  ];
}

export function measuredOn({ processor, cores, system }, packages) {
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`).join(', ');
  return `${processor}, ${cores} cores, ${system}; ${versions}`;
}

/** When and how a host was measured. */
export function hostLine({ name, version, date, load, effort, processes }) {
  const ended = processes.flatMap(({ ended }, i) => (ended ? [`; process ${i + 1} ${ended}`] : [])).join('');
  const when = `${date.slice(0, 16).replace('T', ' ')} UTC`;
  return `- ${name}: ${version}, ${when}, load ${load.toFixed(1)} before, ${processes.length} process${processes.length === 1 ? '' : 'es'}${effort === 'quick' ? ', a quick run' : ''}${ended}`;
}

/** The time, and what failed. */
function time(row) {
  if (!row) return '';
  return [row.seconds && `${ms(row.seconds)}${range(row.quartiles.map(ms))}`, notesOf(row, inFewWords)].filter(Boolean).join(', ');
}

/** A peer's time, how many times ours it is, and what failed. */
function peer(row, base) {
  if (!row?.seconds) return time(row);
  const ratio = times(compared(row, base));
  return [time({ ...row, notes: [] }), ratio && `**${ratio}**`, notesOf(row, inFewWords)].filter(Boolean).join(', ');
}

const partOf = (percent) => (percent ? `${percent.part} %${range([percent.lowest, percent.highest])}` : '');
