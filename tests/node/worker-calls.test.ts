// The life of a call to a worker: its place in the queue, how it is cancelled, and what ends it.
import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { tensor } from 'qkv';
import type { RemoteEngine } from 'qkv/worker';

import { errorOf, variant } from './support/engine.js';
import { runProgram, spawnVariant, variantOptions, withCopy } from './support/worker.js';

/** Vectors of which attention takes a while: some tens of milliseconds. */
const many = tensor(Float32Array.from({ length: 8 * 1024 * 64 }, (_, i) => Math.sin(i)), [8, 1024, 64]);
const row = [[[1, 2]]];
const cancelled = new Error('cancelled');

describe(`calls to a worker, ${variant}`, () => {
  let engine: RemoteEngine;
  beforeEach(async () => { engine = await spawnVariant(); });
  afterEach(() => engine.dispose());

  test('run one after another, in the order in which they were made', async () => {
    const cache = await engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 300 });
    const ended: number[] = [];
    const lengths = await Promise.all(Array.from({ length: 300 }, async (_, i) => {
      // Large ones before small ones, and some that may be cancelled among those that may not.
      if (i % 100 === 0) void engine.attention(many, many, many).catch(() => {});
      void cache.append([[[i]]], [[[i]]], i % 3 === 0 ? { signal: new AbortController().signal } : {});
      const length = await cache.length;
      ended.push(i);
      return length;
    }));
    assert.deepEqual(lengths, Array.from({ length: 300 }, (_, i) => i + 1));
    assert.deepEqual(ended, Array.from({ length: 300 }, (_, i) => i));
  });

  test('go on after an error', async () => {
    const [wrong, right] = await Promise.allSettled([engine.softmax(5 as never), engine.softmax([[1, 1]])]);
    assert.equal(wrong.status, 'rejected');
    assert.deepEqual(right.status === 'fulfilled' && right.value.toArray(), [[0.5, 0.5]]);
  });

  test('tell of their progress when they are done, and not after an error', async () => {
    const heard: number[] = [];
    const onProgress = (done: number) => heard.push(done);
    await engine.softmax([[1]], { onProgress });
    await engine.softmax([[[1], []]], { onProgress }).catch(() => {});
    assert.deepEqual(heard, [1]);
  });

  test('refuse a signal, a listener or a transfer that is none', async () => {
    for (const [options, message] of [
      [{ signal: {} }, /^signal is of kind Object, expected AbortSignal\.$/],
      [{ onProgress: 5 }, /^onProgress is of kind Number, expected Function\.$/],
      [{ transfer: 'all' }, /^transfer is of kind String, expected Boolean\.$/],
    ] as const) {
      const error = await errorOf(() => engine.softmax([[1]], options as object));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      assert.match(error.message, message);
    }
  });

  test('with a signal that was aborted before are never made', async () => {
    const cache = await engine.kvCache({ numKvHeads: 1, headDim: 2, capacity: 4 });
    await assert.rejects(cache.append(row, row, { signal: AbortSignal.abort(cancelled) }), cancelled);
    assert.equal(await cache.length, 0);
  });

  test('leave the queue when they are cancelled, and the others keep their order', async () => {
    const cache = await engine.kvCache({ numKvHeads: 1, headDim: 2, capacity: 4 });
    const controller = new AbortController();
    const { signal } = controller;
    const first = engine.attention(many, many, many);
    const appended = [cache.append(row, row), cache.append(row, row, { signal }), cache.append(row, row), cache.append(row, row, { signal })];
    const length = cache.length;
    controller.abort(cancelled);
    const outcomes = (await Promise.allSettled(appended)).map((outcome) => outcome.status === 'rejected' ? outcome.reason : outcome.value);
    assert.deepEqual(outcomes, [undefined, cancelled, undefined, cancelled]);
    assert.equal(await length, 2, 'a call that was cancelled in the queue has run');
    await first;
  });

  test('reject at once when they are cancelled while they run, leave out alone, and the next works', async () => {
    const controller = new AbortController();
    const out = tensor(new Float32Array(many.data.length), many.shape);
    const running = engine.attention(many, many, many, { signal: controller.signal, out });
    let isDone = false;
    const next = engine.softmax([[1, 1]]).then(({ data }) => { isDone = true; return data; });
    controller.abort(cancelled);
    await assert.rejects(running, cancelled);
    assert.equal(isDone, false, 'the cancelled call was waited for');
    assert.deepEqual([...await next], [0.5, 0.5]);
    assert.ok(out.data.every((number) => number === 0), 'out was written to after the call was cancelled');
  });

  test('give back what they made when they were cancelled', async () => {
    const small = await spawnVariant({ maxMemory: 2 ** 24 });
    const half = { numKvHeads: 1, headDim: 1024, capacity: 1200 };
    const controller = new AbortController();
    const making = small.kvCache({ ...half, signal: controller.signal });
    controller.abort(cancelled);
    await assert.rejects(making, cancelled);
    await small.info();
    await small.kvCache(half);
    assert.equal((await errorOf(() => small.kvCache(half))).code, 'OUT_OF_MEMORY', 'two of them must not fit, or this test sees nothing');
    small.dispose();
  });

  test('of a layer or cache that was disposed are refused, those made before are not', async () => {
    const cache = await engine.kvCache({ numKvHeads: 1, headDim: 2, capacity: 4 });
    const before = cache.append(row, row);
    cache.dispose();
    cache.dispose();
    const error = await errorOf(() => cache.append(row, row));
    assert.equal(error.code, 'DISPOSED');
    assert.match(error.message, /^kvCache\.append: this was disposed; engine\.kvCache\(\) gives a new one\.$/);
    assert.equal((await errorOf(() => cache.length)).code, 'DISPOSED');
    await before;
    await cache[Symbol.asyncDispose]();
  });

  test('of an engine that was disposed are refused, those on their way too', async () => {
    const layer = await engine.multiHeadAttention({ embedDim: 2, numHeads: 1 });
    const pending = [engine.attention(many, many, many), engine.softmax([[1]], { signal: new AbortController().signal }), layer.forward([[1, 2]])];
    const refusals = pending.map((call) => errorOf(() => call));
    engine.dispose();
    engine[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
    refusals.push(errorOf(() => engine.info()), errorOf(() => layer.forward([[1, 2]])));
    const names = ['attention', 'softmax', 'multiHeadAttention.forward', 'info', 'multiHeadAttention.forward'];
    const sentences = names.map((name) => ['DISPOSED', `${name}: this engine was disposed; spawn() gives a new one.`]);
    assert.deepEqual((await Promise.all(refusals)).map(({ code, message }) => [code, message]), sentences);
    await layer[Symbol.asyncDispose]();
  });
});

describe(`a program with a worker, ${variant}`, () => {
  const program = (code: string, module = import.meta.resolve('qkv/worker')) => `
    import { spawn } from ${JSON.stringify(module)};
    const engine = await spawn(${JSON.stringify(variantOptions)});
    ${code}`;

  test('ends by itself, with an engine in use or disposed, and waits for what it awaits', async () => {
    const softmax = 'console.log((await engine.softmax([[1, 1]])).data[0]);';
    const ends = ['', 'engine.dispose();', 'await engine[Symbol.asyncDispose]();', 'engine.dispose(); await engine.info().catch(({ code }) => console.log(code));'];
    for (const end of ends) {
      const { stdout, stderr } = await runProgram(program(`${softmax}\n${end}`));
      assert.equal(stdout, end.includes('code') ? '0.5\nDISPOSED\n' : '0.5\n');
      assert.equal(stderr, '');
    }
  });

  test('touches nothing by its import', async () => {
    const { stdout } = await runProgram(`
      const before = [process._getActiveHandles().length, Object.getOwnPropertyNames(globalThis).join()];
      await import('qkv/worker');
      console.log(JSON.stringify(before) === JSON.stringify([process._getActiveHandles().length, Object.getOwnPropertyNames(globalThis).join()]));`);
    assert.equal(stdout, 'true\n');
  });

  test('hears in a sentence that the worker has ended, from every call', async () => {
    await withCopy(async (dist) => {
      const side = join(dist, 'worker-side.js');
      await writeFile(side, `${await readFile(side, 'utf8')}
        const { parentPort } = process.getBuiltinModule('node:worker_threads');
        parentPort.on('message', ({ member }) => {
          if (member === 'gelu') process.exit(3);
          if (member === 'silu') throw new Error('broken');
        });`);
      const report = 'const report = (call) => call.then(() => console.log("done"), ({ name, code, message }) => console.log(name, code, message));';
      for (const [member, reason] of [['gelu', 'it ended with exit code 3'], ['silu', 'broken']] as const) {
        const { stdout, stderr } = await runProgram(program(`${report}
          await Promise.all([report(engine.${member}([[1]])), report(engine.softmax([[1]])), report(engine.rmsNorm([[1]], { signal: new AbortController().signal }))]);
          await report(engine.info());
          engine.dispose();`, pathToFileURL(join(dist, 'worker.js')).href));
        const refused = (name: string) => `QkvError DISPOSED ${name}: the worker has ended: ${reason}; spawn() gives a new one.\n`;
        assert.equal(stdout.replace(/^done\n/, refused(member)), [member, 'softmax', 'rmsNorm', 'info'].map(refused).join(''));
        assert.equal(stderr, '');
      }
    });
  });

  test('hears that the worker could not be started', async () => {
    await withCopy(async (dist) => {
      await rm(join(dist, 'worker-side.js'));
      const { stdout } = await runProgram(`
        import { spawn } from ${JSON.stringify(pathToFileURL(join(dist, 'worker.js')).href)};
        await spawn().catch(({ name, code, message }) => console.log(name, code, message));`);
      assert.match(stdout, /^QkvError LOAD_FAILED spawn: the worker could not be started: Cannot find module .*worker-side\.js'?\.\n$/);
    });
  });
});
