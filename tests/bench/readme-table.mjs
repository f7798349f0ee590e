// The table that README.md shows: a line for each workload, of the newest Node, with the browsers' ratios beside it.
import { bytes, inFewWords, ms, notesOf, share, table } from './cells.mjs';
import { costsTable } from './costs-table.mjs';
import { compared, summarize } from './summary.mjs';
import { hostLine, measuredOn } from './table.mjs';
import { workloads } from './workloads.mjs';

const ours = 'qkv relaxed';
const onnx = 'onnxruntime-web';
/** Whose times are shown as a multiple of ours: the contestant, and its column's title. */
const others = [
  [onnx, onnx], ['TensorFlow.js', 'TensorFlow.js'], ['jax-js', 'jax-js'], ['plain JavaScript', 'plain JS'],
  ['Eigen as WebAssembly', 'Eigen, our build'], ['qkv native', 'qkv, native'], ['onnxruntime-node', 'onnxruntime-node'],
];

/** `machine`, `packages` and `hosts` as in table.mjs. */
export function readmeTable(machine, packages, hosts) {
  const summaries = hosts.map((host) => ({ host, summary: summarize(host) }));
  // Hosts come sorted, so that the last Node is the newest.
  const main = summaries.findLast(({ host }) => host.name.startsWith('Node')) ?? summaries[0];
  const beside = summaries.filter((one) => one !== main);
  const notes = [];
  const rows = workloads.filter(({ name }) => main.summary.has(name)).map(({ name }) => {
    const { contestants } = main.summary.get(name);
    const row = (contestant) => contestants.get(contestant);
    const elsewhere = beside.map(({ summary }) => summary.get(name)?.contestants);
    return [
      name, timeOf(row(ours)), percent(share(row('peak relaxed'), row(ours))), timeOf(row('qkv simd')), timeOf(row('qkv relaxed-mt 2')),
      ...others.map(([contestant]) => [ratio(row(contestant), row(ours)), noteNumber(notes, contestant, row(contestant))].filter(Boolean).join(' ')),
      ...elsewhere.map((of) => ratio(of?.get(onnx), of?.get(ours))),
      bytes(row(ours)?.extraBytes),
    ];
  });
  const titles = [
    main.host.name, 'relaxed, ms', 'of peak', 'simd, ms', '2 threads, ms', ...others.map(([, title]) => title),
    ...beside.map(({ host }) => `${onnx} in ${host.name}`), 'extra memory',
  ];
  return [
    `Measured on ${measuredOn(machine, packages)}:`, '', ...hosts.map(hostLine), '', ...table(titles, rows), '',
    ...notes.map((sentence, i) => `- (${i + 1}) ${sentence}`), ...(notes.length > 0 ? [''] : []), ...costsTable(hosts),
  ].join('\n');
}

const timeOf = (row) => (row?.seconds ? ms(row.seconds) : '');
const percent = (of) => (of ? `${of.part} %` : '');

/** In bold where the other one is faster. */
function ratio(row, base) {
  const comparison = compared(row, base);
  if (!comparison) return row?.skipped ? 'too slow' : '';
  const text = `${comparison.ratio.toFixed(comparison.ratio < 10 ? 2 : 0)}x`;
  return comparison.ratio < 1 ? `**${text}**` : text;
}

/** "(1)" where something failed: the number of its sentence among `notes`, which it joins. */
function noteNumber(notes, contestant, row) {
  if (!row || row.notes.length === 0) return '';
  const sentence = `${contestant}: ${notesOf(row, inFewWords)}`;
  if (!notes.includes(sentence)) notes.push(sentence);
  return `(${notes.indexOf(sentence) + 1})`;
}
