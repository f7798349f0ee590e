// What a build of the package did in a browser, and whether it was right.
import assert from 'node:assert/strict';

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

export function assertRight({ info, attention, rnn, error }: VariantReport, variant: string): void {
  assert.equal(error, undefined, `${variant} has to run here`);
  assert.equal(info!.variant, variant);
  const { engine, plain } = attention!;
  assert.ok(engine <= 2 * plain, `attention is ${engine} off, plain single precision ${plain}: look at the kernels of ${variant}`);
  assert.ok(rnn! < 1e-5, `the RNN is ${rnn} off: look at the kernels of ${variant}`);
}
