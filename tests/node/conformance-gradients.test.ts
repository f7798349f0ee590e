// Outputs and gradients of TensorFlow.js's automatic differentiation. The library computes everything; the adapter in
// support/conformance moves elements about, and multiplies a loss's gradient by what comes from above.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import type { Engine } from 'qkv';

import { compareCase } from './support/conformance/compare.js';
import { hasGradients, runGradients } from './support/conformance/gradients.js';
import { runCase } from './support/conformance/operators.js';
import { byFamily, entriesOf, type Entry, GRADIENT_SUITE, loadCase } from './support/conformance/suite.js';
import { loadVariant, variant } from './support/engine.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

/** Of its allowance, what the worst element used, in the outputs and in the gradients. */
function compareBoth(name: string): number {
  const { case: one, inputs, expected, upstream, gradients } = loadCase(GRADIENT_SUITE, name);
  const share = compareCase(one, expected, runCase(engine, one, inputs)).share;
  if (gradients.length === 0) return share;
  const { gradient_rtol: rtol, gradient_atol: atol } = one.tolerance;
  assert.ok(rtol !== undefined && atol !== undefined, `${name} has no tolerance of its gradients`);
  return Math.max(share, compareCase({ ...one, tolerance: { rtol, atol } }, gradients, runGradients(engine, one, inputs, upstream)).share);
}

describe(`conformance, ${GRADIENT_SUITE}, ${variant}`, () => {
  const all = entriesOf(GRADIENT_SUITE);
  if (!all) {
    test(`the cases of ${GRADIENT_SUITE}`, {
      skip: `the published cases of ${GRADIENT_SUITE} are not here: set QKV_CONFORMANCE to a folder with ${GRADIENT_SUITE}/ in it, or put it at ../shared/conformance.`,
    });
    return;
  }
  const isKnown = ({ op }: Entry) => op === 'Adam' || hasGradients(op);
  const passed = new Map<string, number>();
  for (const { name } of all.filter(isKnown)) test(name, () => { passed.set(name, compareBoth(name)); });
  for (const { name, op } of all.filter((entry) => !isKnown(entry))) test(name, { skip: `the gradients of ${op} are not run by this file` });

  test(`every case of ${GRADIENT_SUITE} that is run passed`, () => {
    const run = all.filter(isKnown);
    const [worst, share] = [...passed].reduce((a, b) => (b[1] > a[1] ? b : a), ['no case', 0]);
    console.log(`${passed.size} of ${run.length} cases of ${GRADIENT_SUITE} passed on ${variant} (${byFamily(run, passed)}), ${all.length - run.length} others were skipped; the largest share of an allowance used: ${(100 * share).toFixed(1)}%, by ${worst}`);
    assert.ok(run.length > 0, `the index of ${GRADIENT_SUITE} names no case that is run`);
    assert.deepEqual(run.filter(({ name }) => !passed.has(name)).map(({ name }) => name), [], 'these cases failed, each with a message above');
  });
});
