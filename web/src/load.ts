import { expectOptions, flag, oneOf, wholeNumber } from './arguments.js';
import { Engine } from './engine.js';
import { QkvError } from './errors.js';
import { detectFeatures } from './features.js';
import createModule from './glue/qkv.js';
import { EngineMemory } from './memory.js';
import type { ModuleFactory, ModuleInit, RawModule } from './module.js';
import { classOf, describe } from './tensor.js';
import { type Choice, isThreaded, pickVariant, type Variant, VARIANTS, type Wishes } from './variants.js';
import { openWasm, packagedWasm, variantOf, type Wasm, type WasmSource } from './wasm-source.js';

declare const QKV_VERSION: string;

/** The package's version. */
export const version: string = QKV_VERSION;

/** Which build load() takes, and what it may use. */
export interface LoadOptions {
  /** Default: the best that the host can run. One that it cannot run is refused (UNSUPPORTED). */
  variant?: Variant | undefined;
  /** The caller's thread included. Default: the host's processors; 1 where threads cannot run; at most 32. */
  threads?: number | undefined;
  /** No relaxed SIMD: the same bits on every machine. Default false. */
  deterministic?: boolean | undefined;
  /** The WebAssembly, where the packaged file cannot be found or fetched. It says itself which variant it is. */
  wasm?: WasmSource | undefined;
  /** The most bytes that the engine may take, at least 2 MiB. Default and maximum 2 GiB. */
  maxMemory?: number | undefined;
}

const PAGE = 65536;
/** As in cpp/wasm.cmake: INITIAL_MEMORY and MAXIMUM_MEMORY. */
const INITIAL_PAGES = 32;
const MAXIMUM_PAGES = 32768;
const WORKERS_START_WITHIN_MS = 5000;

const engines = new Map<string, Promise<Engine>>();
const sourceNumbers = new WeakMap<object, number>();
let sources = 0;

/** Equal options, equal key. */
function keyOf({ variant, threads, deterministic, wasm, maxMemory }: LoadOptions): string {
  let source: string | number | undefined;
  if (typeof wasm === 'object' && classOf(wasm) !== 'URL') {
    source = sourceNumbers.get(wasm) ?? ++sources;
    sourceNumbers.set(wasm, source);
  } else {
    source = wasm?.toString();
  }
  return JSON.stringify([variant, threads, deterministic === true, source, maxMemory]);
}

function checkOptions(options: LoadOptions): void {
  expectOptions('load', options, ['variant', 'threads', 'deterministic', 'wasm', 'maxMemory']);
  const { variant, threads, maxMemory, wasm } = options;
  const refuse = (sentence: string): never => {
    throw new QkvError('INVALID_ARGUMENT', sentence);
  };
  if (variant !== undefined) oneOf(variant, 'variant', VARIANTS);
  flag(options.deterministic, 'deterministic');
  if (threads !== undefined) wholeNumber(threads, 'threads', 1);
  if (maxMemory !== undefined && !(typeof maxMemory === 'number' && maxMemory >= INITIAL_PAGES * PAGE)) {
    refuse(`maxMemory is ${describe(maxMemory)}, expected at least ${INITIAL_PAGES * PAGE} bytes.`);
  }
  if (wasm !== undefined && typeof wasm !== 'string' && (typeof wasm !== 'object' || wasm === null)) {
    refuse(`wasm is ${describe(wasm)}, expected a URL, bytes, a Response or a WebAssembly.Module.`);
  }
}

/**
 * An engine: the fastest build that this host can run. Calls with equal options share one; a failed
 * load is not remembered.
 *
 * @param options default: the best build, all processors, at most 2 GiB
 * @throws QkvError INVALID_ARGUMENT: an option; UNSUPPORTED: a host without WebAssembly SIMD, or a
 *   variant that it cannot run; LOAD_FAILED: the WebAssembly could not be had.
 */
export async function load(options: LoadOptions = {}): Promise<Engine> {
  checkOptions(options);
  const key = keyOf(options);
  const shared = engines.get(key);
  if (shared) return shared;
  const forget = (): void => {
    if (engines.get(key) === loading) engines.delete(key);
  };
  const loading = start(options, forget);
  engines.set(key, loading);
  loading.catch(forget);
  return loading;
}

async function start(options: LoadOptions, onDispose: () => void): Promise<Engine> {
  const features = detectFeatures();
  const given = options.wasm === undefined ? undefined : await openWasm(options.wasm);
  const wishes: Wishes = { ...options };
  if (given) {
    wishes.variant = variantOf(given, version);
    if (options.variant !== undefined && options.variant !== wishes.variant) {
      throw new QkvError('LOAD_FAILED', `wasm: this module is the variant '${wishes.variant}', but variant '${options.variant}' was asked for.`);
    }
    wishes.reason = `the given wasm is the variant '${wishes.variant}'`;
  }
  const choice = pickVariant(features, wishes);
  const engine = (made: Choice) => makeEngine(made, options, given, onDispose);
  if (!isThreaded(choice.variant) || wishes.variant !== undefined) return engine(choice);
  try {
    return await engine(choice);
  } catch (error) {
    // Threads are an extra: without them the engine is slower, not gone.
    const threads = error instanceof Error ? error.message.replace(/\.$/, '') : String(error);
    return engine(pickVariant({ ...features, threads: false, missing: { ...features.missing, threads } }, wishes));
  }
}

async function makeEngine(
  choice: Choice,
  options: LoadOptions,
  given: Wasm | undefined,
  onDispose: () => void,
): Promise<Engine> {
  const threaded = isThreaded(choice.variant);
  const wasm = given ?? (await openWasm(packagedWasm(choice.variant)));
  variantOf(wasm, version);
  const { memory, limit } = makeMemory(options.maxMemory, threaded);
  const create = threaded ? await threadedGlue() : createModule;
  const module = await instantiate(create, await wasm.compile(), memory, choice.threads);
  const threads = module.startThreads(choice.threads);
  const made =
    threads === choice.threads ? choice : { ...choice, threads, reason: `the host started ${threads} threads of ${choice.threads}` };
  return new Engine({ version, memory: new EngineMemory(module, memory, limit), choice: made, onDispose });
}

/** A file of its own, since it is also the script of the workers. */
async function threadedGlue(): Promise<ModuleFactory> {
  try {
    return (await import('./glue/qkv-mt.js')).default;
  } catch (error) {
    throw new QkvError('LOAD_FAILED', 'The script of the threaded builds, glue/qkv-mt.js of the package, could not be loaded; serve it beside the entry, or ask for a variant without threads.', { cause: error });
  }
}

/** Small devices refuse a large maximum, so it is halved until it is granted. */
function makeMemory(maxMemory: number | undefined, shared: boolean) {
  const wanted = Math.floor((maxMemory ?? Infinity) / PAGE);
  let maximum = Math.min(wanted, MAXIMUM_PAGES);
  for (;;) {
    try {
      const memory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared });
      return { memory, limit: maximum * PAGE };
    } catch (error) {
      if (maximum === INITIAL_PAGES) {
        throw new QkvError('LOAD_FAILED', `The host refuses ${INITIAL_PAGES * PAGE} bytes of memory.`, { cause: error });
      }
      maximum = Math.max(INITIAL_PAGES, maximum >> 1);
    }
  }
}

/** Never pending for ever: workers that do not start within some seconds are given up. */
async function instantiate(
  create: ModuleFactory,
  wasm: WebAssembly.Module,
  memory: WebAssembly.Memory,
  threads: number,
): Promise<RawModule> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let fail!: (error: QkvError) => void;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  const init: ModuleInit = {
    wasmMemory: memory,
    poolSize: threads - 1,
    onWorkerError: ({ message }) => fail(new QkvError('LOAD_FAILED', `A worker did not start: ${message ?? 'its script could not be loaded'}.`)),
    instantiateWasm(imports, receive) {
      WebAssembly.instantiate(wasm, imports).then(
        (instance) => receive(instance, wasm),
        (error) => fail(new QkvError('LOAD_FAILED', `wasm: the module could not be started: ${error.message}.`, { cause: error })),
      );
      return {};
    },
  };
  if (threads > 1) {
    const sentence = `The workers did not start within ${WORKERS_START_WITHIN_MS / 1000} s; ask for fewer threads, or for a variant without them.`;
    timer = setTimeout(() => fail(new QkvError('LOAD_FAILED', sentence)), WORKERS_START_WITHIN_MS);
  }
  try {
    return await Promise.race([create(init), failed]);
  } catch (error) {
    // The glue puts what it exports on the object that it was given.
    (init as Partial<RawModule>).PThread?.terminateAllThreads();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
