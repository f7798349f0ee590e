// `npm run gradients`: the loss's gradient by each input against its distance from the answer, at the start, for attention, RNN,
// LSTM and GRU at n = 16 to 256, five seeds. The curves come to build/gradients.csv, and what they say is printed.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildDist } from './build.mjs';
import { ensureNodeModules, ensureToolchain } from './setup.mjs';
import { main, project } from './steps.mjs';
import { csvOf, factorPerHop, gradientsByDistance, powerOfLength } from '../tests/learning/gradients.mjs';
import { addresses } from '../tests/learning/run.mjs';
import { gradientsTable } from '../tests/learning/gradients-table.mjs';

const SEEDS = [1, 2, 3, 4, 5];

main(async () => {
  await ensureToolchain();
  await ensureNodeModules();
  await buildDist();
  const [{ load }, tasks] = await Promise.all([import(addresses.qkv), import(addresses.tasks)]);
  const engine = await load({ variant: 'simd', threads: 1 });
  const curves = gradientsByDistance({ engine, tasks }, SEEDS);
  engine.dispose();
  await writeFile(join(project, 'build/gradients.csv'), csvOf(curves));
  console.log(gradientsTable(curves));
});
