// How the loss's gradient by an input falls with that input's distance from the answer, before any training.
import { BATCH, mean, withModel } from './train.mjs';

const LENGTHS = [16, 32, 64, 128, 256];
/** What a gradient below this is in float32 says nothing. */
const SMALLEST = 1e-30;

const models = (length) => ({
  attention: { mixer: 'attention' },
  rnn: { mixer: 'rnn' },
  gru: { mixer: 'gru' },
  lstm: { mixer: 'lstm' },
  'lstm-chrono': { mixer: 'lstm', forgetBias: { chrono: length } },
});

/**
 * Of recall with 8 symbols, for each model, length n and seed: { model, n, seed, gradients }, gradients[distance] being the
 * mean over a batch of the Euclidean norm of the gradient of a sequence's own loss by its input at that distance.
 */
export function gradientsByDistance({ engine, tasks }, seeds) {
  return LENGTHS.flatMap((n) => Object.entries(models(n)).flatMap(([model, options]) => seeds.map((seed) => {
    const task = tasks.recall({ length: n, seed });
    const { tokens, targets } = task.batch(BATCH);
    const { data } = withModel(engine, task, seed, options, (made) => made.inputGradients(tokens, targets));
    // The loss is a mean over the batch.
    const gradients = Array.from({ length: n }, (_, distance) => BATCH * mean(Array.from({ length: BATCH }, (_, row) => data[(row + 1) * n - 1 - distance])));
    return { model, n, seed, gradients };
  })));
}

export const csvOf = (curves) => ['model,n,seed,distance,gradient',
  ...curves.flatMap(({ model, n, seed, gradients }) => gradients.map((gradient, distance) => `${model},${n},${seed},${distance},${gradient.toPrecision(6)}`)), ''].join('\n');

/** The slope of the least-squares line through points [x, y]. */
function slope(points) {
  const [x, y] = [0, 1].map((axis) => mean(points.map((point) => point[axis])));
  const sum = (f) => points.reduce((total, point) => total + f(point), 0);
  return sum(([a, b]) => (a - x) * (b - y)) / sum(([a]) => (a - x) ** 2);
}

/** The factor a hop that fits best, over a curve's distances from 1 on. */
export const factorPerHop = ({ gradients }) =>
  Math.exp(slope(gradients.flatMap((gradient, distance) => (distance > 0 && gradient > SMALLEST ? [[distance, Math.log(gradient)]] : []))));

/** The power of n that the gradient by the first input goes with, over lengths; curves of one model and seed. */
export const powerOfLength = (curves) =>
  slope(curves.flatMap(({ n, gradients }) => (gradients.at(-1) > SMALLEST ? [[Math.log(n), Math.log(gradients.at(-1))]] : [])));
