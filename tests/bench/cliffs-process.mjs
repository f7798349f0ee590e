// One process of the cliff sweep: times attention at every length and every dim, one thread, and prints JSON: an array of
// { series, length, dim, times }, seconds per call in each round.

import { seeded } from './inputs.mjs';

/** A turn takes at least this many seconds: as many calls as that needs. */
const TURN = 0.002;
const ROUNDS = 41;
/** Of dim in the lengths' series and of length in the dims'. */
const [DIM, LENGTH] = [64, 128];

const upTo = (last) => Array.from({ length: last }, (_, i) => i + 1);

const points = [
  // Nothing to compute: what is left is the call.
  { series: 'call', length: 1, dim: 1 },
  ...upTo(300).map((length) => ({ series: 'length', length, dim: DIM })),
  ...upTo(160).map((dim) => ({ series: 'dim', length: LENGTH, dim })),
];

const { load, tensor } = await import(process.argv[2]);
const engine = await load({ variant: 'relaxed', threads: 1 });
const numbers = Float32Array.from({ length: 300 * 160 }, (_, i) => Math.sin(i));

function secondsPerCall({ length, dim }, calls) {
  const x = tensor(numbers.subarray(0, length * dim), [length, dim]);
  const start = performance.now();
  for (let i = 0; i < calls; i++) engine.attention(x, x, x);
  return (performance.now() - start) / 1000 / calls;
}

/** Every point once, in an order of this round's own: a busy moment of the machine hits no neighbours, and no point twice. */
function order(round) {
  const next = seeded(round);
  return points.map((point) => [next(), point]).sort(([a], [b]) => a - b).map(([, point]) => point);
}

// The kernels are compiled well before anything counts.
for (const point of points) secondsPerCall(point, 20);
const calls = new Map(points.map((point) => [point, Math.ceil(TURN / secondsPerCall(point, 20))]));
const times = new Map(points.map((point) => [point, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const point of order(round)) times.get(point).push(secondsPerCall(point, calls.get(point)));
}
console.log(JSON.stringify(points.map((point) => ({ ...point, times: times.get(point) }))));
engine.dispose();
