// Keeps what was measured, host by host, and writes it as tables.
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, release, type } from 'node:os';
import { join } from 'node:path';
import { Failure, project } from '../../build-scripts/steps.mjs';
import { readmeTable } from './readme-table.mjs';
import { benchTable, detailTable } from './table.mjs';

const built = join(project, 'build/bench');
/** Of full and quick runs, host by host. */
const resultsFile = join(built, 'results.json');
/** Of the tables' rows. */
const hostOrder = ['Node', 'Chromium', 'Firefox'];
const markers = ['<!-- bench -->', '<!-- /bench -->'];

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** Writes build/NAME.md and build/NAME-all.md; resolves to the first one's text. With `keep` other hosts' last results are in it too. */
export async function writeTables(hosts, { keep }) {
  const name = keep ? 'bench' : 'bench-only';
  const others = keep && existsSync(resultsFile) ? readJson(resultsFile).filter((known) => hosts.every((host) => host.name !== known.name)) : [];
  const rank = ({ name: host }) => hostOrder.indexOf(host.split(' ')[0]);
  const all = [...others, ...hosts].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  await mkdir(built, { recursive: true });
  if (keep) await writeFile(resultsFile, JSON.stringify(all));
  const table = benchTable(machine(), packages(), all);
  await writeFile(join(project, `build/${name}.md`), table);
  await writeFile(join(project, `build/${name}-all.md`), detailTable(all));
  return table;
}

function machine() {
  return { processor: cpus()[0]?.model ?? 'an unknown processor', cores: availableParallelism(), system: `${type()} ${release()}` };
}

/** The machine and how busy it is, for what is printed and not kept. */
export function machineLine() {
  const { processor, cores, system } = machine();
  return `${processor}, ${cores} cores, ${system}, ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, load ${loadavg()[0].toFixed(1)}`;
}

function packages() {
  const { dependencies } = readJson(join(project, 'tests/bench/package.json'));
  return { qkv: readJson(join(project, 'package.json')).version, ...dependencies };
}

/** Puts what was measured last, in short, between the markers of README.md. */
export async function updateReadme() {
  const readme = join(project, 'README.md');
  if (!existsSync(resultsFile)) throw new Failure('Nothing has been measured yet: run "npm run bench" first.');
  const text = readFileSync(readme, 'utf8');
  const [start, end] = [text.indexOf(markers[0]) + markers[0].length, text.indexOf(markers[1])];
  if (start < markers[0].length || end < start) throw new Failure(`README.md needs ${markers[0]} and, after it, ${markers[1]}: put them where the table is to be.`);
  await writeFile(readme, `${text.slice(0, start)}\n${readmeTable(machine(), packages(), readJson(resultsFile))}${text.slice(end)}`);
}
