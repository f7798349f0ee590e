/** What the host can run, asked of the host itself: by exact instruction, never by its name. */

export interface Features {
  /** 128-bit SIMD. */
  simd: boolean;
  /** Relaxed SIMD: a fused multiply-add. */
  relaxed: boolean;
  /** Shared memory and workers. */
  threads: boolean;
  /** Why not, where one of them is missing. */
  missing: { simd?: string; relaxed?: string; threads?: string };
  /** Processors that the host admits to, at least 1. */
  cores: number;
}

/** Modules of one function each, whose body holds the instruction in question. */
const probe = (...body: number[]): boolean =>
  WebAssembly.validate(
    new Uint8Array([
      0, 97, 115, 109, 1, 0, 0, 0, // "\0asm", version 1
      1, 5, 1, 96, 0, 1, 123, // type: () -> v128
      3, 2, 1, 0, // one function of it
      10, body.length + 4, 1, body.length + 2, 0, ...body, 11, // its code
    ]),
  );

const I32_ZERO = [65, 0];
const SPLAT_I8X16 = [...I32_ZERO, 253, 15];
const SPLAT_F32X4 = [67, 0, 0, 0, 0, 253, 19];
const POPCNT_I8X16 = [253, 98];
const RELAXED_MADD_F32X4 = [253, 133, 2];

const hasSimd = (): boolean => probe(...SPLAT_I8X16, ...POPCNT_I8X16);
const hasRelaxed = (): boolean =>
  probe(...SPLAT_F32X4, ...SPLAT_F32X4, ...SPLAT_F32X4, ...RELAXED_MADD_F32X4);

interface Host {
  process?: { getBuiltinModule?: (name: string) => unknown; versions?: { node?: string } };
  document?: unknown;
  window?: unknown;
  Worker?: unknown;
  SharedArrayBuffer?: unknown;
  crossOriginIsolated?: boolean;
  navigator?: { hardwareConcurrency?: number };
}

const host = globalThis as Host;

/** One of Node's own modules; undefined elsewhere. Bundlers see no import to follow. */
export const nodeModule = <T>(name: string): T | undefined =>
  host.process?.versions?.node === undefined ? undefined : (host.process.getBuiltinModule?.(name) as T);

function whyNoThreads(): string | undefined {
  const inNode = nodeModule('node:worker_threads') !== undefined;
  if (inNode) return undefined;
  if (host.SharedArrayBuffer === undefined || host.crossOriginIsolated !== true) {
    return 'this page is not cross-origin isolated (headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp)';
  }
  if (host.window !== undefined && host.document !== undefined) {
    return "a page's main thread may not wait for others; call load() in a worker";
  }
  return host.Worker === undefined ? 'this host starts no workers from here' : undefined;
}

function countCores(): number {
  const os = nodeModule<{ availableParallelism?: () => number }>('node:os');
  const cores = os?.availableParallelism?.() ?? host.navigator?.hardwareConcurrency;
  return Number.isInteger(cores) && cores! > 0 ? cores! : 1;
}

export function detectFeatures(): Features {
  const simd = hasSimd();
  const relaxed = hasRelaxed();
  const noThreads = whyNoThreads();
  const missing: Features['missing'] = {};
  if (!simd) missing.simd = 'this host has no WebAssembly SIMD';
  if (!relaxed) missing.relaxed = 'this host has no relaxed SIMD (Node 20 has it behind --experimental-wasm-relaxed-simd)';
  if (noThreads !== undefined) missing.threads = noThreads;
  return { simd, relaxed, threads: noThreads === undefined, missing, cores: countCores() };
}
