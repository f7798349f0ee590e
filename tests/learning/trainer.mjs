// A thread that trains: it gets { experiment, case, seed } and answers with what came of it.
import { parentPort, workerData } from 'node:worker_threads';
import { experiments } from './experiments.mjs';

const [qkv, tasks] = await Promise.all([import(workerData.qkv), import(workerData.tasks)]);
// The same bits on every machine.
const engine = await qkv.load({ variant: 'simd', threads: 1 });

parentPort.on('message', ({ experiment, case: name, seed }) => {
  const { run } = experiments.find((one) => one.name === experiment).cases.find((one) => one.name === name);
  const started = performance.now();
  const numbers = run({ engine, qkv, tasks, seed });
  parentPort.postMessage({ experiment, case: name, seed, numbers, seconds: (performance.now() - started) / 1000 });
});
