import { QkvError } from './errors.js';
import type { Features } from './features.js';

/**
 * A build of the WebAssembly module: `relaxed` has relaxed SIMD's fused multiply-add, `-mt` threads over shared
 * memory. All need 128-bit SIMD.
 */
export type Variant = 'simd' | 'simd-mt' | 'relaxed' | 'relaxed-mt';

/** The builds, slowest first. */
export const VARIANTS: readonly Variant[] = ['simd', 'simd-mt', 'relaxed', 'relaxed-mt'];

/** More would cost more memory than they bring. */
export const MAX_THREADS = 32;

export interface Choice {
  variant: Variant;
  threads: number;
  /** Why not a better variant or more threads. */
  reason?: string;
}

export interface Wishes {
  variant?: Variant | undefined;
  /** Why that variant; by default it was asked for. */
  reason?: string;
  threads?: number | undefined;
  deterministic?: boolean | undefined;
}

export const isThreaded = (variant: Variant): boolean => variant.endsWith('-mt');
const isRelaxed = (variant: Variant): boolean => variant.startsWith('relaxed');

const unsupported = (message: string): never => {
  throw new QkvError('UNSUPPORTED', message);
};

/** The best build that the host can run and the wishes allow: a pure function of both. */
export function pickVariant(features: Features, wishes: Wishes): Choice {
  if (!features.simd) unsupported(`qkv needs WebAssembly SIMD, but ${features.missing.simd}.`);
  return wishes.variant === undefined ? best(features, wishes) : asAsked(features, wishes, wishes.variant);
}

function asAsked({ relaxed, threads, missing, cores }: Features, wishes: Wishes, variant: Variant): Choice {
  if (isRelaxed(variant) && wishes.deterministic) {
    unsupported(`variant '${variant}' was asked for with deterministic, which excludes relaxed SIMD.`);
  }
  if (isRelaxed(variant) && !relaxed) unsupported(`variant '${variant}' cannot run: ${missing.relaxed}.`);
  if (isThreaded(variant) && !threads) unsupported(`variant '${variant}' cannot run: ${missing.threads}.`);
  const limited = limitThreads(wishes.threads ?? cores);
  const count = isThreaded(variant) ? limited.threads : 1;
  return withReasons({ variant, threads: count }, [
    variant === VARIANTS.at(-1) ? undefined : (wishes.reason ?? `variant '${variant}' was asked for`),
    isThreaded(variant) ? limited.reason : undefined,
  ]);
}

function best({ relaxed, threads, missing, cores }: Features, wishes: Wishes): Choice {
  const { threads: wanted = cores, deterministic } = wishes;
  const fused = relaxed && !deterministic;
  const threaded = threads && wanted > 1;
  const limited = limitThreads(wanted);
  return withReasons(
    { variant: `${fused ? 'relaxed' : 'simd'}${threaded ? '-mt' : ''}`, threads: threaded ? limited.threads : 1 },
    [
      fused ? undefined : deterministic ? 'deterministic was asked for' : missing.relaxed,
      threaded ? limited.reason
      : wanted > 1 ? `one thread: ${missing.threads}`
      : wishes.threads === undefined ? 'one thread: the host names one processor'
      : undefined,
    ],
  );
}

const limitThreads = (wanted: number): { threads: number; reason?: string } =>
  wanted <= MAX_THREADS
    ? { threads: wanted }
    : { threads: MAX_THREADS, reason: `${wanted} threads could be had, the most is ${MAX_THREADS}` };

function withReasons(choice: Choice, reasons: (string | undefined)[]): Choice {
  const reason = reasons.filter((text) => text !== undefined).join('; ');
  return reason === '' ? choice : { ...choice, reason };
}
