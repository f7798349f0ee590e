// `npm test`: sets up what is missing, builds and runs every suite, and ends with one line of counts.
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { Failure, main, project, report } from './steps.mjs';
import { layers } from './suites.mjs';

main(() => withLock(join(project, 'build/test.lock'), async () => {
  const chosen = chosenLayers();
  for (const setUp of new Set(chosen.flatMap((layer) => layer.setUp))) await setUp();
  const results = [];
  for (const suite of chosen.flatMap((layer) => layer.suites)) results.push(await runSuite(suite));
  return summarize(results);
}));

function chosenLayers() {
  const names = process.argv.slice(2);
  if (names.every((name) => Object.hasOwn(layers, name))) return names.length ? names.map((name) => layers[name]) : Object.values(layers);
  throw new Failure(`npm test takes one or more of: ${Object.keys(layers).join(', ')} (after "--").`);
}

async function runSuite({ name, skip, run }) {
  console.log(`\n== ${name}`);
  const skipped = (note) => ({ name, passed: 0, failed: 0, skipped: 1, note });
  if (skip) return skipped(skip);
  try {
    const result = await run();
    return result.skip ? skipped(result.skip) : { name, output: result.output, ...judge(result) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    report(error);
    return { name, passed: 0, failed: 1, skipped: 0, note: 'could not be run' };
  }
}

// A crash, a time-out and a suite without a test count as one failed test.
function judge({ code, signal, timedOut, output }) {
  const counts = readCounts(output.replace(/\x1b\[[\d;]*m/g, ''));
  const ending = timedOut ? 'took too long' : signal ? `crashed (${signal})` : `ended with exit code ${code}`;
  if (code !== 0 && counts.failed === 0) return { ...counts, failed: 1, note: ending };
  if (counts.passed + counts.failed === 0) return { ...counts, failed: 1, note: 'ran no test' };
  return counts;
}

function readCounts(output) {
  const doctest = [...output.matchAll(/^\[doctest\] test cases: *\d+ \| *(\d+) passed \| *(\d+) failed \| *(\d+) skipped/gm)].at(-1);
  if (doctest) return { passed: Number(doctest[1]), failed: Number(doctest[2]), skipped: Number(doctest[3]) };
  const last = (word) => Number([...output.matchAll(new RegExp(`^[ℹ#] ${word} (\\d+)$`, 'gm'))].at(-1)?.[1] ?? 0);
  return { passed: last('pass'), failed: last('fail') + last('cancelled'), skipped: last('skipped') };
}

/** Of a failed suite's output, again at the end: where only the end of a long log is kept, it says what failed. */
const lastLines = 40;

function summarize(results) {
  const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
  for (const { name, failed, output } of results) {
    if (failed && output) console.log(`\n== the end of ${name}\n${output.trimEnd().split('\n').slice(-lastLines).join('\n')}`);
  }
  console.log();
  for (const { name, passed, failed, skipped, note } of results) {
    const counts = [`${passed} passed`, failed && `${failed} failed`, skipped && `${skipped} skipped`].filter(Boolean);
    console.log(`${failed ? 'FAIL' : 'ok  '} ${name.padEnd(18)} ${counts.join(', ')}${note ? `: ${note}` : ''}`);
  }
  const skipped = total('skipped');
  console.log(`\n${total('passed')} passed, ${total('failed')} failed${skipped ? `, ${skipped} skipped` : ''}`);
  return total('failed') > 0 ? 1 : 0;
}
