// What a page does with qkv/worker, run in the page itself.
const address = '/dist/worker.js';
const { spawn } = await import(address) as typeof import('qkv/worker');
const entry = '/dist/index.js';
const { tensor, QkvError } = await import(entry) as typeof import('qkv');

/** Vectors of which attention takes some hundred milliseconds. */
const many = tensor(Float32Array.from({ length: 8 * 2048 * 64 }, (_, i) => Math.sin(i)), [8, 2048, 64]);

export async function useWorker() {
  const engine = await spawn({ variant: 'simd' });
  const order: string[] = [];
  const note = (name: string) => () => void order.push(name);
  const watching = longestGap();
  const cache = await engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 2 });
  await Promise.all([
    engine.attention(many, many, many).then(note('attention')),
    engine.softmax([[1, 1]]).then(note('softmax')),
    cache.append([[[1]]], [[[1]]]).then(note('append')),
    cache.length.then((length) => note(`length ${length}`)()),
  ]);
  const controller = new AbortController();
  const cancelling = engine.attention(many, many, many, { signal: controller.signal }).then(() => 'done', ({ name }) => name as string);
  controller.abort();
  const cancelled = await cancelling;
  const [kept, given] = [new Float32Array(1), new Float32Array(1)];
  await engine.softmax({ data: kept, shape: [1] });
  await engine.softmax({ data: given, shape: [1] }, { transfer: true });
  const error = await engine.softmax([[1, 2], [3]]).catch((thrown) => [thrown.name, thrown.code, thrown instanceof QkvError]);
  const pending = engine.attention(many, many, many).catch(({ code }) => code as string);
  engine.dispose();
  const afterDispose = [await pending, await engine.info().catch(({ code }) => code as string)];
  return { order, cancelled, detached: [kept.length === 0, given.length === 0], error, afterDispose, longestGap: await watching };
}

/** How long the page's own thread stood still at most, in milliseconds, while 20 ticks passed. */
const longestGap = (): Promise<number> => new Promise((resolve) => {
  let [last, longest, ticks] = [performance.now(), 0, 0];
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (++ticks < 20) return;
    clearInterval(timer);
    resolve(longest);
  }, 20);
});

/** The variants that come of an address, its bytes and its module. */
export async function spawnFrom(wasm: string): Promise<string[]> {
  const bytes = await (await fetch(wasm)).arrayBuffer();
  const variants: string[] = [];
  for (const source of [wasm, bytes, await WebAssembly.compile(bytes)]) {
    const engine = await spawn({ wasm: source });
    variants.push((await engine.info()).variant);
    engine.dispose();
  }
  return variants;
}

/** Its error, where the worker's script is not beside the entry. */
export async function spawnWithoutScript(): Promise<string> {
  const TheWorker = globalThis.Worker;
  globalThis.Worker = class extends TheWorker {
    constructor(script: URL, options: WorkerOptions) {
      super(`${script.href.replace('worker-side', 'gone/worker-side')}?gone`, options);
    }
  } as typeof Worker;
  try {
    return await spawn().then(() => 'started', ({ code, message }) => `${code} ${message}`);
  } finally {
    globalThis.Worker = TheWorker;
  }
}
