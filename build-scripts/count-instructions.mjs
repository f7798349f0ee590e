// How many instructions each case of tests/native/counts takes, by callgrind: a number that a busy machine does not
// change. `node build-scripts/count-instructions.mjs` prints them; with --write it keeps them for the test, check-instructions.mjs.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildPreset } from './build.mjs';
import { ensureToolchain, toolchain } from './setup.mjs';
import { Failure, main, project, run, runAny } from './steps.mjs';

export const keptFile = 'tests/native/counts/instructions.json';
export const writeCommand = 'node build-scripts/count-instructions.mjs --write';

const program = 'build/native/qkv_counts';
const profiles = 'build/counts';

/** { compiler, counts: instructions by the case's name }, as they were when they were last written. */
export const keptCounts = () => JSON.parse(readFileSync(join(project, keptFile), 'utf8'));

/** Builds the program; resolves to a sentence where its instructions cannot be held against the kept ones. */
export async function whyNotCounted() {
  const { code } = await runAny(toolchain, ['valgrind', '--version']);
  if (code !== 0) return 'valgrind is not installed';
  await buildPreset('native', 'qkv_counts');
  const [compiler] = (await run(toolchain, [program])).split('\n');
  const kept = keptCounts().compiler;
  return compiler === kept ? undefined : `the numbers are of ${kept}, and this is ${compiler}`;
}

/** Runs the built program under callgrind: { compiler, counts }, as above. */
export async function countInstructions() {
  const folder = join(project, profiles);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const counted = 'qkv_counted';
  const output = await run(toolchain, [
    'valgrind', '--quiet', '--tool=callgrind', `--toggle-collect=${counted}`, `--dump-after=${counted}`,
    '--compress-strings=no', '--compress-pos=no', `--callgrind-out-file=${profiles}/profile`, program,
  ]);
  const [compiler, ...names] = output.trim().split('\n');
  return { compiler, counts: Object.fromEntries(names.map((name, i) => [name, ownInstructions(join(folder, `profile.${i + 1}`))])) };
}

/**
 * The instructions of the program itself: the C library picks its memcpy by the processor, so what is spent there is
 * left out. Format: https://valgrind.org/docs/manual/cl-format.html
 */
function ownInstructions(profile) {
  if (!existsSync(profile)) throw new Failure(`callgrind has not written ${profile}: each case has to be one call of qkv_counted.`);
  let [sum, own, ofCall] = [0, false, false];
  for (const line of readFileSync(profile, 'utf8').split('\n')) {
    if (line.startsWith('ob=')) own = line.endsWith(program);
    // The line after "calls=" is the cost of the function called, which is counted where that stands.
    if (own && !ofCall && /^\d+ \d+$/.test(line)) sum += Number(line.split(' ')[1]);
    ofCall = line.startsWith('calls=');
  }
  return sum;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(async () => {
    await ensureToolchain();
    await buildPreset('native', 'qkv_counts');
    const measured = await countInstructions();
    for (const [name, count] of Object.entries(measured.counts)) console.log(`${String(count).padStart(10)}  ${name}`);
    if (process.argv.includes('--write')) writeFileSync(join(project, keptFile), `${JSON.stringify(measured, null, 2)}\n`);
  });
}
