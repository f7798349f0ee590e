// The timing rules, with clocks of our own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measure, quantile, winner, type Contestant } from '../../web/site/src/timing/measure.js';

/** A clock that only the contestants move: `cost(run)` milliseconds each, and that shows whole multiples of `grain`. */
function fakeWorld(costs: Record<string, (run: number) => number>, grain = 0) {
  let now = 0;
  const runs: Record<string, number> = {};
  const order: string[] = [];
  const contestants: Contestant[] = Object.entries(costs).map(([name, cost]) => ({
    name,
    run: () => {
      const run = runs[name] = (runs[name] ?? 0) + 1;
      if (order.at(-1) !== name) order.push(name);
      now += cost(run);
    },
  }));
  const clock = (): number => (grain ? Math.floor(now / grain) * grain : now);
  return { contestants, runs, order, options: { clock, pause: () => Promise.resolve() } };
}

const timing = (name: string, ...samples: number[]) =>
  ({ name, samples, lower: quantile(samples, 0.25), median: quantile(samples, 0.5), upper: quantile(samples, 0.75) });

test('a steady contestant is timed exactly and in the fewest rounds', async () => {
  const { contestants, options } = fakeWorld({ fast: () => 0.5, slow: () => 3 });
  const { timings, stable } = await measure(contestants, options);
  assert.equal(stable, true);
  assert.deepEqual(timings.map(({ name, median, lower, upper, samples }) => [name, median, lower, upper, samples.length]),
    [['fast', 0.5, 0.5, 0.5, 7], ['slow', 3, 3, 3, 7]]);
});

test('a sample is repeated until a coarse clock can tell', async () => {
  const { contestants, options, runs } = fakeWorld({ tiny: () => 0.001 }, 1);
  const { timings } = await measure(contestants, options);
  assert.ok(Math.abs(timings[0]!.median - 0.001) <= 0.0001, `${timings[0]!.median} ms is not 0.001 ms: samples are too short for the clock`);
  assert.ok(runs['tiny']! >= 7 * 20_000, 'each of seven samples has to last 20 ms');
});

test('contestants take turns, and begin in turn', async () => {
  const { contestants, options, order } = fakeWorld({ a: () => 25, b: () => 25 });
  await measure(contestants, options);
  assert.deepEqual(order.slice(0, 5), ['b', 'a', 'b', 'a', 'b'], 'rounds b a, a b, b a: neighbours merge');
});

test('restless times end at the last round and are called so', async () => {
  const { contestants, options } = fakeWorld({ wild: (run) => 20 * 1.2 ** run });
  const { timings, stable } = await measure(contestants, { ...options, mostRounds: 9 });
  assert.equal(stable, false);
  assert.equal(timings[0]!.samples.length, 9);
});

test('a clock that stands still is an error, not an endless loop', async () => {
  const options = { clock: () => 0, pause: () => Promise.resolve() };
  await assert.rejects(measure([{ name: 'a', run: () => undefined }], options), /does not move/);
});

test('an abort ends the measuring between two samples', async () => {
  const { contestants, options, runs } = fakeWorld({ a: () => 25 });
  const abort = new AbortController();
  await assert.rejects(measure(contestants, { ...options, signal: abort.signal, onRound: (round) => round === 2 && abort.abort() }), { name: 'AbortError' });
  assert.equal(runs['a'], 2, 'no sample may be taken after the abort');
});

test('a winner is named only when quartile ranges do not touch', () => {
  assert.equal(winner([timing('a', 1, 1.1, 1.2), timing('b', 2, 2.1, 2.2)]), 'a');
  assert.equal(winner([timing('b', 2, 2.1, 2.2), timing('a', 1, 1.1, 1.2)]), 'a');
  assert.equal(winner([timing('a', 1, 1, 2, 2), timing('b', 1.5, 1.5, 3, 3)]), undefined);
  assert.equal(winner([timing('a', 1, 1, 1), timing('b', 1, 1, 1)]), undefined, 'equal is not faster');
});

test('quantiles lie between the samples', () => {
  assert.equal(quantile([4, 1, 3, 2], 0.5), 2.5);
  assert.equal(quantile([1, 2, 3, 4, 5], 0.25), 2);
  assert.equal(quantile([7], 0.75), 7);
});
