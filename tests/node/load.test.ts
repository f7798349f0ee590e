import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { load, version } from 'qkv';

import { errorOf, loadVariant, threaded, variant } from './support/engine.js';

const wasmUrl = new URL(`./qkv-${variant}.wasm`, import.meta.resolve('qkv'));
const works = (engine: Awaited<ReturnType<typeof load>>) =>
  assert.deepEqual(engine.attention([[1]], [[1]], [[5]]).output.toArray(), [[5]]);

const run = (code: string, ...flags: string[]) =>
  promisify(execFile)(process.execPath, [...process.execArgv.filter((flag) => flag.startsWith('--experimental-wasm')), ...flags, '--input-type=module', '-e', code], { cwd: import.meta.dirname, timeout: 20000 });

/** A host whose WebAssembly lacks what `refuse` picks by its probe. */
async function withoutProbe<T>(refuse: (bytes: Uint8Array) => boolean, body: () => Promise<T>): Promise<T> {
  const { validate } = WebAssembly;
  WebAssembly.validate = (bytes) => !refuse(bytes as Uint8Array) && validate(bytes);
  try {
    return await body();
  } finally {
    WebAssembly.validate = validate;
  }
}
const has = (bytes: Uint8Array, ...part: number[]) => Buffer.from(bytes).includes(Buffer.from(part));
const RELAXED_MADD = [253, 133, 2];

function shared(bytes: Uint8Array): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(bytes.length);
  new Uint8Array(buffer).set(bytes);
  return buffer;
}

describe(`load, ${variant}`, () => {
  test('gives the variant that was asked for, and says so', async () => {
    const engine = await loadVariant();
    const info = engine.info();
    assert.equal(info.variant, variant);
    assert.equal(info.threads, threaded ? 2 : 1);
    assert.equal(info.version, version);
    assert.ok(info.memory.used <= 16 * 2 ** 20 && info.memory.limit === 2 ** 31, JSON.stringify(info));
    engine.dispose();
  });

  test('shares one engine among equal options until it is disposed', async () => {
    const [first, second] = await Promise.all([loadVariant(), loadVariant()]);
    assert.equal(first, second);
    const other = await loadVariant({ maxMemory: 2 ** 25 });
    assert.notEqual(other, first);
    first.dispose();
    const third = await loadVariant();
    assert.notEqual(third, first);
    works(third);
    works(other);
    third.dispose();
    other.dispose();
  });

  test('disposing twice is harmless; every method then says so', async () => {
    const engine = await loadVariant();
    engine.dispose();
    engine[Symbol.dispose]();
    for (const method of ['attention', 'explain', 'rnn', 'rnnStep', 'info'] as const) {
      const error = await errorOf(() => (engine[method] as () => unknown)());
      assert.equal(error.code, 'DISPOSED');
      assert.match(error.message, new RegExp(`^${method}: this engine was disposed`));
    }
  });

  test('takes the WebAssembly as a URL, a path, a data URL, bytes, a Response or a module', async () => {
    const bytes = await readFile(wasmUrl);
    const sources = [
      wasmUrl,
      wasmUrl.href,
      wasmUrl.pathname,
      `data:application/wasm;base64,${bytes.toString('base64')}`,
      bytes,
      new Uint8Array(bytes).buffer,
      shared(bytes),
      new Response(bytes, { headers: { 'content-type': 'application/wasm' } }),
      await WebAssembly.compile(bytes),
    ];
    for (const wasm of sources) {
      const engine = await load({ wasm, threads: threaded ? 2 : 1 });
      assert.equal(engine.info().variant, variant);
      works(engine);
      engine.dispose();
    }
  });

  test('names what came in place of the WebAssembly, and does not remember the failure', async () => {
    const bytes = await readFile(wasmUrl);
    const answers: Record<string, [number, string, string | Buffer]> = {
      '/page.wasm': [200, 'text/html', '<!doctype html><title>Not here</title>'],
      '/gone.wasm': [404, 'text/plain', 'gone'],
      '/right.wasm': [200, 'application/octet-stream', bytes],
    };
    const server = createServer(({ url }, response) => {
      const [status, type, body] = answers[url!]!;
      response.writeHead(status, { 'content-type': type }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const at = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
    try {
      const refused = async (wasm: string | Uint8Array<ArrayBuffer>, message: RegExp) => {
        const error = await errorOf(() => load({ wasm }));
        assert.equal(error.code, 'LOAD_FAILED');
        assert.match(error.message, message);
      };
      await refused(at('/page.wasm'), /page\.wasm answered with status 200 and content type text\/html, an HTML page; check/);
      await refused(at('/gone.wasm'), /gone\.wasm answered with status 404 and content type text\/plain, which is not WebAssembly/);
      await refused('http://127.0.0.1:1/', /could not be fetched/);
      await refused('/no/such/file.wasm', /\/no\/such\/file\.wasm could not be read/);
      await refused(new Uint8Array([1, 2, 3]), /3 bytes came that are not WebAssembly/);
      await refused(new Uint8Array(bytes.subarray(0, 100)), /is not one of qkv/);
      await refused(new Uint8Array(bytes).fill(255, 100, 200), /could not be compiled: .*[^.]\.$/);
      await refused(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]), /is not one of qkv/);
      answers['/page.wasm'] = answers['/right.wasm']!;
      const engine = await load({ wasm: at('/page.wasm'), threads: threaded ? 2 : 1 });
      works(engine);
      engine.dispose();
    } finally {
      server.close();
    }
  });

  test('refuses a module of another release or another variant than asked for', async () => {
    const bytes = await readFile(wasmUrl);
    const old = Buffer.from(bytes);
    old.write(version.replace(/\d/g, '9'), old.lastIndexOf(`${version} ${variant}`));
    assert.match((await errorOf(() => load({ wasm: old }))).message, /is of qkv 9\.9\.9, but the package is/);
    const another = variant === 'simd' ? 'simd-mt' : 'simd';
    assert.match((await errorOf(() => load({ wasm: bytes, variant: another }))).message, /is the variant '.*', but variant '.*' was asked for/);
  });

  test('bytes of a variant that the host cannot run are refused before they are compiled', async () => {
    const bytes = await readFile(new URL('./qkv-relaxed.wasm', import.meta.resolve('qkv')));
    const error = await withoutProbe((probe) => has(probe, ...RELAXED_MADD), () => errorOf(() => load({ wasm: bytes })));
    assert.equal(error.code, 'UNSUPPORTED');
    assert.match(error.message, /^variant 'relaxed' cannot run: this host has no relaxed SIMD/);
  });

  test('adds nothing to the globals, loaded or disposed', async () => {
    const { stdout } = await run(`
      const names = () => Object.getOwnPropertyNames(globalThis).join();
      const before = names();
      const { load } = await import('qkv');
      const engine = await load({ variant: '${variant}', threads: ${threaded ? 2 : 1} });
      const loaded = names();
      engine.dispose();
      console.log(loaded === before, names() === before);`);
    assert.equal(stdout, 'true true\n');
  });

  test('takes the best that the host has, and says why not a better one', async () => {
    const plain = await withoutProbe((bytes) => has(bytes, ...RELAXED_MADD), () => load({ threads: 1 }));
    assert.equal(plain.info().variant, 'simd');
    assert.match(plain.info().reason!, /no relaxed SIMD/);
    plain.dispose();
    const steady = await load({ deterministic: true, threads: 2 });
    assert.equal(steady.info().variant, 'simd-mt');
    assert.match(steady.info().reason!, /deterministic was asked for/);
    steady.dispose();
    const error = await withoutProbe(() => true, () => errorOf(() => load({ threads: 3 })));
    assert.equal(error.code, 'UNSUPPORTED');
    assert.match(error.message, /needs WebAssembly SIMD/);
    const relaxed = await withoutProbe((bytes) => has(bytes, ...RELAXED_MADD), () => errorOf(() => load({ variant: 'relaxed' })));
    assert.match(relaxed.message, /^variant 'relaxed' cannot run: this host has no relaxed SIMD/);
    assert.equal((await errorOf(() => load({ variant: 'relaxed', deterministic: true }))).code, 'UNSUPPORTED');
  });

  test('more threads than there may be are fewer, with a reason', { skip: !threaded && 'this variant has no threads' }, async () => {
    const engine = await loadVariant({ threads: 1000 });
    assert.equal(engine.info().threads, 32);
    assert.match(engine.info().reason!, /1000 threads could be had, the most is 32/);
    works(engine);
    engine.dispose();
  });

  test('a program ends by itself, with an engine in use or disposed, and waits for what it awaits', async () => {
    const code = (end: string) => `
      import { load } from 'qkv';
      const engine = await load({ variant: '${variant}', threads: ${threaded ? 3 : 1} });
      console.log(engine.attention([[1]], [[1]], [[5]]).output.data[0]);
      ${end}`;
    for (const end of ['', 'engine.dispose();', 'await new Promise((resolve) => setTimeout(resolve, 50)); console.log("waited");']) {
      const { stdout, stderr } = await run(code(end));
      assert.equal(stdout, end.includes('waited') ? '5\nwaited\n' : '5\n');
      assert.equal(stderr.replace(/\(node.*\n?/g, ''), '');
    }
  });

  test('importing does nothing: no fetch, no worker, no global of a browser is touched', async () => {
    const { stdout } = await run(`
      const touched = [];
      for (const name of ['fetch', 'Worker', 'navigator', 'document', 'window', 'self', 'location', 'SharedArrayBuffer', 'crossOriginIsolated']) {
        Object.defineProperty(globalThis, name, { configurable: true, get() { touched.push(name); } });
      }
      const before = process._getActiveHandles().length;
      await import('qkv');
      console.log(JSON.stringify(touched), process._getActiveHandles().length - before);`);
    assert.equal(stdout, '[] 0\n');
  });

  test('falls back to one thread, with a reason, where workers cannot start', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'qkv-'));
    try {
      const dist = join(folder, 'dist');
      await cp(new URL('.', import.meta.resolve('qkv')), dist, { recursive: true });
      // It loads here, but not as the script of a worker.
      const glue = join(dist, 'glue', 'qkv-mt.js');
      await writeFile(glue, `if (globalThis.workerIsMain !== false) throw new Error('no workers here');\n${await readFile(glue, 'utf8')}`);
      const { stdout } = await run(`
        globalThis.workerIsMain = false;
        const { load } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
        const engine = await load({ threads: 3 });
        console.log(engine.attention([[1]], [[1]], [[5]]).output.data[0], engine.info().threads, engine.info().reason);
        await load({ variant: 'simd-mt', threads: 2 }).catch((error) => console.log(error.code));`);
      assert.match(stdout, /^5 1 .*one thread: A worker did not start: no workers here\nLOAD_FAILED\n$/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('works from a folder whose name has spaces and letters beyond ASCII', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'qkv ä ö '));
    try {
      const file = join(folder, 'try it.mjs');
      await writeFile(file, `
        import { load } from ${JSON.stringify(import.meta.resolve('qkv'))};
        const engine = await load({ variant: '${variant}', threads: ${threaded ? 2 : 1} });
        console.log(engine.attention([[1]], [[1]], [[5]]).output.data[0]);`);
      const { stdout } = await run(`await import(${JSON.stringify(pathToFileURL(file).href)})`);
      assert.equal(stdout, '5\n');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
