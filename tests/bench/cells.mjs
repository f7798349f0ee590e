// How numbers become cells, and cells a Markdown table.
import { compared } from './summary.mjs';

/** Without the columns that are empty in every row. */
export function table(titles, rows) {
  const used = titles.map((_, column) => rows.some((row) => row[column] !== ''));
  const line = (cells) => `| ${cells.filter((_, column) => used[column]).map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)];
}

/** Three digits. */
export function formatted(number) {
  if (number >= 100) return number.toFixed(0);
  return number.toFixed(number >= 10 ? 1 : 2);
}

export const ms = (seconds) => formatted(seconds * 1000);
export const us = (seconds) => (seconds * 1e6).toFixed(1);

/** Nothing where there is only one number. */
export const range = ([low, high]) => (low === high ? '' : ` (${low}-${high})`);

/** "2.1x (2.0-2.3)", of what compared() gives. */
export const times = (comparison) =>
  (comparison ? `${formatted(comparison.ratio)}x${range([comparison.lowest, comparison.highest].map(formatted))}` : '');

/** Our GFLOP/s as a share of the peak's within each process, in percent: { part, lowest, highest }. */
export function share(peak, row) {
  const comparison = compared(peak, row);
  if (!comparison) return undefined;
  const workPerTime = (row.gflops * row.seconds) / (peak.gflops * peak.seconds);
  const [part, lowest, highest] = [comparison.ratio, comparison.lowest, comparison.highest].map((ratio) => Math.round(100 * ratio * workPerTime));
  return { part, lowest, highest };
}

export const bytes = (count) => (count === undefined ? '' : `${(count / 2 ** 20).toFixed(1)} MiB`);

/** Every sentence of a row, with the formulations that it is about. */
export const notesOf = (row, say = (sentence) => sentence) => [
  ...row.notes.map(({ sentence, formulations }) => (formulations.length > 0 ? `${formulations.join(' and ')}: ${say(sentence)}` : say(sentence))),
  ...(row.skipped && !row.seconds ? [`about ${Math.round(row.skipped)} s, not waited for`] : []),
].join('; ');

/** What of an error belongs into a table: ONNX Runtime puts the place in its source before it. */
export const inFewWords = (sentence) => {
  const words = sentence.replace(/^.*ERROR_MESSAGE: /, '').replace(/^.*\(\) (?=\S)/, '');
  return words.length > 70 ? `${words.slice(0, 67)}...` : words;
};
