// Other people's cases: those the ONNX project publishes, and outputs of ONNX Runtime. The library computes
// everything; the adapter in support/conformance moves elements about and converts half-floats at the edge.
// The adapter's only arithmetic is what the library has no method for: residual connections, one mask added
// to another, and Swish's alpha.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import type { Engine } from 'qkv';

import { compareCase, type Comparison } from './support/conformance/compare.js';
import { bfloat16ToNumber, float16ToNumber, roundToBfloat16, roundToFloat16 } from './support/half.js';
import { runCase } from './support/conformance/operators.js';
import { byFamily, type Case, entriesOf, type Entry, loadCase, SUITES } from './support/conformance/suite.js';
import { loadVariant, variant } from './support/engine.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

function report(suite: string, entries: readonly Entry[], passed: ReadonlyMap<string, Comparison>): void {
  console.log(`${passed.size} of ${entries.length} cases of ${suite} passed on ${variant} (${byFamily(entries, passed)})`);
  const [name, worst] = [...passed].reduce((a, b) => (b[1].share > a[1].share ? b : a), ['no case', { share: 0, unchecked: [] }]);
  console.log(`  the largest share of an allowance used: ${(100 * worst.share).toFixed(1)}%, by ${name}`);
  const unchecked = [...passed.values()].flatMap((comparison) => comparison.unchecked);
  if (unchecked.length > 0) console.log(`  ${unchecked.length} outputs were left unchecked: ${[...new Set(unchecked)].join('; ')}`);
}

for (const suite of SUITES) {
  describe(`conformance, ${suite}, ${variant}`, () => {
    const entries = entriesOf(suite);
    if (!entries) {
      test(`the cases of ${suite}`, {
        skip: `the published cases of ${suite} are not here: set QKV_CONFORMANCE to a folder with onnx/ and ort/ in it, or put it at ../shared/conformance.`,
      });
      return;
    }
    const passed = new Map<string, Comparison>();
    for (const { name } of entries) {
      test(name, () => {
        const { case: one, inputs, expected } = loadCase(suite, name);
        passed.set(name, compareCase(one, expected, runCase(engine, one, inputs)));
      });
    }

    test(`every case of ${suite} that is there passed`, () => {
      report(suite, entries, passed);
      assert.ok(entries.length > 0, `the index of ${suite} names no case`);
      assert.deepEqual(entries.filter(({ name }) => !passed.has(name)).map(({ name }) => name), [], 'these cases failed, each with a message above');
    });
  });
}

describe(`the adapter of the conformance suites, ${variant}`, () => {
  const x = { name: 'x', dtype: 'float32', shape: [1, 2], data: Float32Array.of(1, 2) };
  const softmax: Case = {
    suite: 'onnx', name: 'made up', op: 'Softmax', domain: '', opset: 13, attributes: {}, inputs: [{ ...x, offset: 0, bytes: 8 }],
    outputs: [{ ...x, offset: 0, bytes: 8 }], tolerance: { rtol: 0, atol: 0 }, data: '',
  };
  const made = (changes: Partial<Case>, ...more: (typeof x)[]) => runCase(engine, { ...softmax, ...changes }, [x, ...more]);

  test('refuses what it does not know', () => {
    assert.throws(() => made({ op: 'Softmin' }), /does not know the operator Softmin/);
    assert.throws(() => made({ domain: 'com.microsoft' }), /does not know the operator com.microsoft.Softmax/);
    const attribute = { type: 'float', value: 1 };
    assert.throws(() => made({ attributes: { temperature: attribute } }), /the attribute temperature, which the adapter does not know/);
    assert.throws(() => made({ attributes: { axis: attribute } }), /axis is of type float/);
    assert.throws(() => made({}, { ...x, name: 'mask' }), /the input 1, mask, which the adapter does not know/);
    // Nothing needs what the unknown operator makes: its case fails all the same.
    const graph = ['Softmax', 'Softmin'].map((op) => ({ op, domain: '', attributes: {}, inputs: ['x'], outputs: [op] }));
    const outputs = [{ ...softmax.outputs[0]!, name: 'Softmax' }];
    assert.throws(() => made({ op: 'Graph', domain: 'composite', graph, outputs }), /does not know the operator Softmin/);
  });

  test('says which case, output and element differs, and by how much', () => {
    const compared = (data: number[], shape: number[]) => () =>
      compareCase(softmax, [x], [{ name: 'softmax', outputs: [{ data: Float32Array.from(data), shape }] }]);
    assert.equal(compared([1, 2], [1, 2])().share, 0);
    assert.throws(compared([1, 3], [1, 2]), /made up, x by softmax, index 1: got 3, expected 2, off by 1, allowed are 0\.00002/);
    assert.throws(compared([1, NaN], [1, 2]), /index 1: got NaN/);
    assert.throws(compared([1, Infinity], [1, 2]), /index 1: got Infinity/);
    assert.throws(compared([1, 2], [2, 1]), /got the shape \(2, 1\), expected \(1, 2\)/);
    assert.throws(() => compareCase(softmax, [x], [{ name: 'softmax', outputs: [] }]), /the adapter made no such output/);
  });

  test('reads every half-float exactly and rounds to the nearest, ties to even', () => {
    for (let bits = 0; bits < 65536; bits++) {
      for (const [read, round] of [[float16ToNumber, roundToFloat16], [bfloat16ToNumber, roundToBfloat16]] as const) {
        if (!Number.isNaN(read(bits))) assert.equal(round(read(bits)), read(bits), `bits ${bits}`);
      }
    }
    const near = [1, 2 ** -24, 65504, 1024].map((value, i) => [value, [2 ** -11, 2 ** -25, 16, 0.5][i]!] as const);
    assert.deepEqual(near.map(([value, half]) => roundToFloat16(value + half)), [1, 2 ** -23, Infinity, 1024]);
    assert.deepEqual(near.map(([value, half]) => roundToFloat16(Math.fround(value + half * 0.99))), [1, 2 ** -24, 65504, 1024]);
    assert.deepEqual([1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -20].map(roundToBfloat16), [1, 1 + 2 ** -6, 1 + 2 ** -7]);
    assert.deepEqual([-65520, 2 ** -26, 3 * 2 ** -25].map(roundToFloat16), [-Infinity, 0, 2 ** -23]);
  });
});
