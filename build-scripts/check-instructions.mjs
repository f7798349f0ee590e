// A kernel that has become slower is seen in the number of its instructions, on a busy machine too.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { countInstructions, keptCounts, keptFile, writeCommand } from './count-instructions.mjs';

/** A change of the source moves some instructions about; one that costs more is to be seen and meant. */
const TOLERANCE = 0.05;

describe('instructions of', () => {
  const kept = keptCounts().counts;
  let counts;
  before(async () => { counts = (await countInstructions()).counts; });

  for (const [name, before] of Object.entries(kept)) {
    test(name, () => {
      const now = counts[name];
      assert.ok(now !== undefined, `there is no such case any more: "${writeCommand}" rewrites ${keptFile}`);
      const change = `${now} instructions, ${(Math.abs(now / before - 1) * 100).toFixed(1)} % ${now > before ? 'more' : 'fewer'} than the ${before} of ${keptFile}`;
      assert.ok(now <= before * (1 + TOLERANCE), `${change}: make it as fast as it was, or, if it has to cost more, run "${writeCommand}"`);
      assert.ok(now >= before * (1 - TOLERANCE), `${change}: run "${writeCommand}", so that what was won is kept`);
    });
  }

  test('every case', () => {
    const missing = Object.keys(counts).filter((name) => !(name in kept));
    assert.deepEqual(missing, [], `these have no number yet: "${writeCommand}" adds them`);
  });
});
