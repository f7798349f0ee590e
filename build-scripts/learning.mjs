// `npm run learning`: what attention and recurrent networks learn on the tasks of qkv/tasks, with five seeds each; the table comes to
// build/learning.md. A run that was stopped goes on where it was. After "--":
//   --only=REGEX  those cases whose names, "recall: n 8, RNN" and so on, match
//   --seeds=N     so many seeds
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildDist } from './build.mjs';
import { ensureNodeModules, ensureToolchain } from './setup.mjs';
import { Failure, main, project, step } from './steps.mjs';
import { experiments } from '../tests/learning/experiments.mjs';
import { runJobs } from '../tests/learning/run.mjs';
import { learningTable } from '../tests/learning/table.mjs';

main(async () => {
  const jobs = chosenJobs();
  await ensureToolchain();
  await ensureNodeModules();
  await buildDist();
  const results = await step(`Training ${jobs.length} models, up to 15 minutes`, (progress) =>
    runJobs(jobs, (result, done) => progress(`${done} of ${jobs.length}, ${result.experiment}: ${result.case}`)));
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const table = learningTable(results, version);
  await writeFile(join(project, 'build/learning.md'), table);
  console.log(`\n${table}`);
});

function chosenJobs() {
  const { only, seeds } = readOptions();
  const jobs = experiments.flatMap(({ name, cases }) => cases.filter((one) => only.test(`${name}: ${one.name}`)).flatMap((one) =>
    Array.from({ length: seeds }, (_, i) => ({ experiment: name, case: one.name, seed: i + 1 }))));
  if (jobs.length > 0) return jobs;
  throw new Failure(`--only=${only.source} matches no case: ${experiments.flatMap(({ name, cases }) => cases.map((one) => `${name}: ${one.name}`)).join('; ')}.`);
}

function readOptions() {
  try {
    const { only = '', seeds = '5' } = parseArgs({ options: { only: { type: 'string' }, seeds: { type: 'string' } } }).values;
    if (!/^[1-9]\d*$/.test(seeds)) throw new Error(`--seeds=${seeds} is no whole number from 1`);
    return { only: new RegExp(only), seeds: Number(seeds) };
  } catch (error) {
    throw new Failure(`npm run learning takes "--" and --only=REGEX or --seeds=N: ${error.message}`);
  }
}
