import { QkvError } from './errors.js';
import type { Features } from './features.js';

/** The builds, slowest first. */
export const VARIANTS = ['simd', 'simd-mt', 'relaxed', 'relaxed-mt'] as const;
export type Variant = (typeof VARIANTS)[number];

/** More would cost more memory than they bring. */
export const MAX_THREADS = 32;
/** By default: attention gains little from more, and a page is not alone on the machine. */
const DEFAULT_MAX_THREADS = 8;

export interface Choice {
  variant: Variant;
  threads: number;
  /** Why not a better variant or more threads. */
  reason?: string;
}

export interface Wishes {
  variant?: Variant;
  threads?: number;
  deterministic?: boolean;
}

export const isThreaded = (variant: Variant): boolean => variant.endsWith('-mt');
const isRelaxed = (variant: Variant): boolean => variant.startsWith('relaxed');

const unsupported = (message: string): never => {
  throw new QkvError('UNSUPPORTED', message);
};

/** The best build that the host can run and the wishes allow: a pure function of both. */
export function pickVariant(features: Features, wishes: Wishes): Choice {
  const { missing } = features;
  if (!features.simd) unsupported(`qkv needs WebAssembly SIMD, but ${missing.simd}.`);
  const threadsWanted = wishes.threads ?? Math.min(features.cores, DEFAULT_MAX_THREADS);
  const wanted = wishes.variant;
  if (wanted !== undefined) {
    if (isRelaxed(wanted) && wishes.deterministic) {
      unsupported(`variant '${wanted}' was asked for with deterministic, which excludes relaxed SIMD.`);
    }
    if (isRelaxed(wanted) && !features.relaxed) unsupported(`variant '${wanted}' cannot run: ${missing.relaxed}.`);
    if (isThreaded(wanted) && !features.threads) unsupported(`variant '${wanted}' cannot run: ${missing.threads}.`);
  }
  const reasons: string[] = [];
  const relaxed = wanted !== undefined ? isRelaxed(wanted) : !wishes.deterministic && features.relaxed;
  if (!relaxed) {
    reasons.push(
      wanted !== undefined ? `variant '${wanted}' was asked for`
      : wishes.deterministic ? 'deterministic was asked for'
      : missing.relaxed!,
    );
  }
  const threaded = wanted !== undefined ? isThreaded(wanted) : features.threads && threadsWanted > 1;
  const threads = threaded ? Math.min(threadsWanted, MAX_THREADS) : 1;
  if (!threaded && threadsWanted > 1) {
    reasons.push(wanted !== undefined ? `variant '${wanted}' has one thread` : `one thread: ${missing.threads}`);
  } else if (threads < threadsWanted) {
    reasons.push(`${threadsWanted} threads were asked for, the most is ${MAX_THREADS}`);
  } else if (threads === 1 && wanted === undefined && wishes.threads === undefined) {
    reasons.push('one thread: the host names one processor');
  }
  const variant = `${relaxed ? 'relaxed' : 'simd'}${threaded ? '-mt' : ''}` as Variant;
  return reasons.length === 0 ? { variant, threads } : { variant, threads, reason: reasons.join('; ') };
}
