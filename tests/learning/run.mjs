// Trains every case with every seed in a few threads, and keeps each result as it comes: a run that was stopped goes on.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { experiments } from './experiments.mjs';
import { Failure, project } from '../../build-scripts/steps.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const folder = join(project, 'build/learning');
const file = join(folder, 'results.json');
const entry = (name) => join(project, 'dist', name);
const MOST_THREADS = 2;

/** Where the package is, for import(). */
export const addresses = { qkv: pathToFileURL(entry('index.js')).href, tasks: pathToFileURL(entry('tasks.js')).href };

/** A result is of one build of the package, and of its experiment as it was. */
function identityOf(experiment) {
  const hash = createHash('sha256');
  const sources = ['train.mjs', `${experiment}.mjs`].map((name) => join(here, name));
  for (const path of [entry('index.js'), entry('tasks.js'), entry('qkv-simd.wasm'), ...sources]) hash.update(readFileSync(path));
  return hash.digest('hex');
}

const sameJob = (a) => (b) => a.experiment === b.experiment && a.case === b.case && a.seed === b.seed;

/** Resolves to all that is known of `jobs`, { experiment, case, seed }, as { ...job, numbers, seconds }. `onResult(result, done)` sees each as it comes, and how many are done. */
export async function runJobs(jobs, onResult) {
  mkdirSync(folder, { recursive: true });
  const identities = Object.fromEntries(experiments.map(({ name }) => [name, identityOf(name)]));
  const kept = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
  const results = kept.filter(({ experiment, identity }) => identity === identities[experiment]);
  const waiting = jobs.filter((job) => !results.some(sameJob(job)));
  let done = jobs.length - waiting.length;
  const keep = (result) => {
    results.push({ ...result, identity: identities[result.experiment] });
    onResult(result, ++done);
    writeFileSync(file, JSON.stringify(results));
  };
  const threads = Math.min(MOST_THREADS, availableParallelism(), waiting.length);
  await Promise.all(Array.from({ length: threads }, () => trainAll(waiting, keep)));
  return results.filter((result) => jobs.some(sameJob(result)));
}

/** One thread's share: the next job as long as there is one. */
function trainAll(waiting, keep) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('trainer.mjs', import.meta.url), { workerData: addresses });
    const next = () => {
      const job = waiting.shift();
      if (job) worker.postMessage(job);
      else worker.terminate().then(resolve);
      return job;
    };
    let job = next();
    worker.on('message', (result) => {
      keep(result);
      job = next();
    });
    worker.on('error', (error) => reject(new Failure(`${job?.experiment}, ${job?.case}, seed ${job?.seed}: ${error.message}`, error.stack)));
  });
}
