// What load refuses of its options; load.test.ts has the hosts and modules that it cannot use.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, load } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongFlag, wrongNames, wrongWhole } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

// As JavaScript would call it, without TypeScript to help.
const start = (options: unknown) => (load as (options: unknown) => Promise<Engine>)(options);
const option = (name: string) => (value: unknown) => start({ [name]: value });
const bytes = new Uint8Array(8).fill(7);
const gone = (data: Uint8Array<ArrayBuffer>) => {
  structuredClone(data, { transfer: [data.buffer] });
  return data;
};

refuses('load refuses', {
  engine: () => engine,
  untouched: () => [bytes],
  next: () => assert.deepEqual(engine.attention([[1]], [[1]], [[5]]).output.toArray(), [[5]], 'the next call was wrong'),
  tables: {
    options: wrongNames('load: options', start, 'variant, threads, deterministic, wasm, maxMemory'),
    variant: wrongChoice('variant', option('variant'), "'simd' or 'simd-mt' or 'relaxed' or 'relaxed-mt'"),
    threads: wrongWhole('threads', option('threads'), 1),
    deterministic: wrongFlag('deterministic', option('deterministic')),
    maxMemory: [
      ...wrongChoice('maxMemory', option('maxMemory'), 'at least 2097152 bytes'),
      ...[0, -1, 2 ** 21 - 1, -Infinity].map((maxMemory): Refusal => [String(maxMemory), () => load({ maxMemory }), 'INVALID_ARGUMENT', /^maxMemory is \S+, expected at least 2097152 bytes/]),
    ],
    wasm: [
      ...[null, 7, NaN, true, 5n, Symbol('s'), () => 1, {}, [1], new Date(0), new Map(), Promise.resolve()].map((wasm): Refusal => [
        String(wasm), () => start({ wasm }), 'INVALID_ARGUMENT', /^wasm is .+, expected a URL, bytes, a Response or a WebAssembly\.Module/]),
      ['no URL', () => load({ wasm: 'file://[bad' }), 'INVALID_ARGUMENT', /^wasm is "file:\/\/\[bad", expected a valid URL/],
      ['no WebAssembly', () => load({ wasm: bytes }), 'LOAD_FAILED', /^wasm: 8 bytes came that are not WebAssembly/],
      ['bytes that were transferred away', () => load({ wasm: gone(new Uint8Array(8)) }), 'LOAD_FAILED', /^wasm: 0 bytes came that are not WebAssembly/],
      ['a buffer that was transferred away', () => load({ wasm: gone(new Uint8Array(8)).buffer }), 'LOAD_FAILED', /^wasm: 0 bytes came that are not WebAssembly/],
    ],
  },
});
