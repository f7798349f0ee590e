// Runs one build of the package, in a worker or on a page's own thread, and checks it against double precision.
import { attention as attentionInDouble, largestDifference, rnn as rnnInDouble } from '../../../web/site/src/reference.js';
import { seeded, squareWeights, uniform } from '../../../web/site/src/random.js';

export interface Wish {
  variant?: 'simd' | 'relaxed' | 'simd-mt' | 'relaxed-mt';
  threads?: number;
}

export interface VariantReport {
  info?: { variant: string; threads: number; reason?: string };
  /** Largest difference from the reference: the engine's, and that of plain loops in single precision. */
  attention?: { engine: number; plain: number };
  rnn?: number;
  error?: { code: string; message: string };
}

const length = 130;
const dims = 65;

export async function runVariant(wish: Wish): Promise<VariantReport> {
  const address = '/dist/index.js';
  const { load, tensor, QkvError } = await import(address) as typeof import('qkv');
  const next = seeded(7);
  const x = uniform(length * dims, 1, next);
  const [wx, wh] = [squareWeights(dims, next), squareWeights(dims, next)] as const;
  try {
    const engine = await load(wish);
    const vectors = tensor(x, [length, dims]);
    const expected = attentionInDouble(x, length, dims);
    const { output } = engine.attention(vectors, vectors, vectors);
    const { outputs } = engine.rnn(vectors, { wx: tensor(wx, [dims, dims]), wh: tensor(wh, [dims, dims]) });
    const { variant, threads, reason } = engine.info();
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
