// The three contestants over the same vectors, each checked against the double-precision reference.
import { tensor, type Engine } from 'qkv';
import { work } from '../machines.js';
import { attention, largestDifference, rnn } from '../reference.js';
import { seeded, squareWeights, uniform } from '../random.js';
import { measure, type MeasureOptions } from './measure.js';
import type { Contest, Outcome } from './messages.js';
import { plainRnn } from './plain-rnn.js';

/** Rows of the reference between two pauses. */
const referenceRows = 64;

export async function runContest(engine: Engine, { n, d, x: given, seed }: Contest, options: MeasureOptions): Promise<Outcome> {
  const next = seeded(seed);
  const [wx, wh] = [squareWeights(d, next), squareWeights(d, next)];
  const x = given ?? uniform(n * d, 1, next);
  const vectors = tensor(x, [n, d]);
  const parameters = { wx: tensor(wx, [d, d]), wh: tensor(wh, [d, d]) };
  const contestants = [
    { name: 'attention', multiplyAdds: work.attentionMixing(n, d), run: () => engine.attention(vectors, vectors, vectors).output.data },
    { name: 'rnn', multiplyAdds: work.rnn(n, d), run: () => engine.rnn(vectors, parameters).outputs.data },
    { name: 'js-loop', multiplyAdds: work.rnn(n, d), run: () => plainRnn(x, wx, wh, n, d) },
  ];
  const states = rnn(x, wx, wh, n, d);
  const differences = [
    await attentionDifference(contestants[0]!.run(), x, n, d, options),
    largestDifference(contestants[1]!.run(), states),
    largestDifference(contestants[2]!.run(), states),
  ];
  const { timings, stable } = await measure(contestants, options);
  const results = timings.map((timing, i) => ({ ...timing, difference: differences[i]!, multiplyAdds: contestants[i]!.multiplyAdds }));
  const { variant, threads, reason } = engine.info();
  return { n, d, results, stable, engine: { variant, threads, ...(reason !== undefined && { reason }) } };
}

async function attentionDifference(output: Float32Array, x: Float32Array, n: number, d: number, { pause, signal }: MeasureOptions): Promise<number> {
  let largest = 0;
  for (let first = 0; first < n; first += referenceRows) {
    await pause();
    signal?.throwIfAborted();
    const end = Math.min(n, first + referenceRows);
    largest = Math.max(largest, largestDifference(output.subarray(first * d, end * d), attention(x, n, d, first, end)));
  }
  return largest;
}
