// Runs one build of the package, in a worker or on a page's own thread, and checks it against double precision.
import type { RemoteEngine } from 'qkv/worker';
import { attention as attentionInDouble, largestDifference, rnn as rnnInDouble } from '../../../web/site/src/reference.js';
import { seeded, squareWeights, uniform } from '../../../web/site/src/random.js';
import type { VariantReport, Wish } from './variant-report.js';

const length = 130;
const dims = 65;

export async function runVariant(wish: Wish): Promise<VariantReport> {
  const address = '/dist/index.js';
  const { load } = await import(address) as typeof import('qkv');
  // Its results are values, which can be awaited as well.
  return reportOf(() => load(wish) as Promise<unknown> as Promise<RemoteEngine>);
}

/** The same in the worker of qkv/worker. */
export async function runSpawned(wish: Wish): Promise<VariantReport> {
  const address = '/dist/worker.js';
  const { spawn } = await import(address) as typeof import('qkv/worker');
  return reportOf(() => spawn(wish));
}

async function reportOf(start: () => Promise<RemoteEngine>): Promise<VariantReport> {
  const address = '/dist/index.js';
  const { tensor, QkvError } = await import(address) as typeof import('qkv');
  const next = seeded(7);
  const x = uniform(length * dims, 1, next);
  const [wx, wh] = [squareWeights(dims, next), squareWeights(dims, next)] as const;
  try {
    const engine = await start();
    const vectors = tensor(x, [length, dims]);
    const expected = attentionInDouble(x, length, dims);
    const { output } = await engine.attention(vectors, vectors, vectors);
    const { outputs } = await engine.rnn(vectors, { wx: tensor(wx, [dims, dims]), wh: tensor(wh, [dims, dims]) });
    const { variant, threads, reason } = await engine.info();
    const report = {
      info: { variant, threads, ...(reason !== undefined && { reason }) },
      attention: { engine: largestDifference(output.data, expected), plain: largestDifference(attentionInSingle(x), expected) },
      rnn: largestDifference(outputs.data, rnnInDouble(x, wx, wh, length, dims)),
    };
    engine.dispose();
    return report;
  } catch (error) {
    if (error instanceof QkvError) return { error: { code: error.code, message: error.message } };
    throw error;
  }
}

/** The textbook's loops, every operation rounded to single precision. */
function attentionInSingle(x: Float32Array): Float32Array {
  const { fround } = Math;
  const output = new Float32Array(length * dims);
  const scale = fround(1 / Math.sqrt(dims));
  for (let i = 0; i < length; i++) {
    const scores = new Float32Array(length);
    for (let j = 0; j < length; j++) {
      let sum = 0;
      for (let c = 0; c < dims; c++) sum = fround(sum + fround(x[i * dims + c]! * x[j * dims + c]!));
      scores[j] = fround(sum * scale);
    }
    const largest = Math.max(...scores);
    const weights = scores.map((score) => fround(Math.exp(fround(score - largest))));
    const total = weights.reduce((sum, weight) => fround(sum + weight), 0);
    for (let c = 0; c < dims; c++) {
      let sum = 0;
      for (let j = 0; j < length; j++) sum = fround(sum + fround(fround(weights[j]! / total) * x[j * dims + c]!));
      output[i * dims + c] = sum;
    }
  }
  return output;
}

if (!('document' in globalThis)) {
  addEventListener('message', async ({ data }: MessageEvent<Wish>) => {
    try {
      postMessage(await runVariant(data));
    } catch (error) {
      postMessage({ error: { code: 'none', message: String(error) } } satisfies VariantReport);
    }
  });
}
