// The engine of the variant under test, which the environment names: QKV_VARIANT.
import { type Engine, load, type LoadOptions, QkvError, type Variant } from 'qkv';

export const variant = (process.env['QKV_VARIANT'] ?? 'simd') as Variant;
export const threaded = variant.endsWith('-mt');

export const loadVariant = (options: LoadOptions = {}): Promise<Engine> =>
  load({ variant, threads: threaded ? 2 : 1, ...options });

/** What `call` threw, which has to be a QkvError with a sentence. */
export async function errorOf(call: () => unknown): Promise<QkvError> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof QkvError)) {
      throw new Error(`expected a QkvError, but ${String(error)} was thrown`, { cause: error });
    }
    if (!/^[^\n]{20,}\.$/.test(error.message)) {
      throw new Error(`expected a message that is one sentence, but it is: ${error.message}`);
    }
    return error;
  }
  throw new Error('expected a QkvError, but nothing was thrown');
}
