// What a build of the package did in a browser, and whether it was right.
import assert from 'node:assert/strict';
import { test } from 'node:test';

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

/** The builds with threads, run by `run` with two: right where the page is isolated, else refused. `where` is for the name. */
export function testThreadedVariants(isolated: boolean, where: string, run: (wish: Wish) => Promise<VariantReport>): void {
  for (const variant of ['simd-mt', 'relaxed-mt'] as const) {
    test(isolated ? `${variant} is right${where}, with two threads` : `${variant} is refused with the reason`, async () => {
      const report = await run({ variant, threads: 2 });
      if (isolated) {
        assertRight(report, variant);
        assert.equal(report.info!.threads, 2, 'two threads were asked for');
      } else {
        assert.equal(report.error?.code, 'UNSUPPORTED');
        assert.match(report.error.message, /isolated/, 'the sentence has to say that isolation is missing');
      }
    });
  }
}
