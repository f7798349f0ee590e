// Typed arrays and bytes of another realm, as frames, node:vm and test runners make them: they are what ours are.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { runInNewContext } from 'node:vm';

import { type Engine, load, QkvError, type SequenceModel, tensor } from 'qkv';
import { spawn } from 'qkv/worker';

import { loadVariant, threaded, variant } from './support/engine.js';

type Globals = typeof globalThis;
const KINDS = ['Float32Array', 'Float64Array', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array'] as const;
const theirs = runInNewContext(`({ ${KINDS.join(', ')}, ArrayBuffer, DataView, SharedArrayBuffer, WebAssembly })`) as Globals;
const x = tensor([[1, 2], [3, 4]]);
const wasm = new URL(`qkv-${variant}.wasm`, import.meta.resolve('qkv'));

describe(`another realm, ${variant}`, () => {
  let engine: Engine;
  before(async () => { engine = await loadVariant(); });
  after(() => engine.dispose());

  test('the test’s arrays are no instances of ours', () => {
    assert.ok(!(new theirs.Float32Array(1) instanceof Float32Array));
  });

  test('every kind of typed array is data', () => {
    for (const kind of KINDS) {
      const entries = kind.startsWith('Big') ? [1n, 2n, 3n, 4n] : [1, 2, 3, 4];
      const data = (theirs[kind] as unknown as { from(list: unknown): Float32Array }).from(entries);
      assert.deepEqual(tensor(data, [2, 2]).toArray(), [[1, 2], [3, 4]], `tensor of a ${kind}`);
      assert.deepEqual(engine.linear(x, { data, shape: [2, 2] }).toArray(), [[7, 10], [15, 22]], `a ${kind} as an argument`);
      assert.deepEqual(engine.embedding(x, (theirs[kind] as unknown as typeof Int32Array).from((kind.startsWith('Big') ? [1n] : [1]) as number[])).toArray(), [[3, 4]], `a ${kind} as indices`);
    }
    const data = theirs.Float32Array.of(1, 2);
    assert.equal(tensor(data).data, data, 'float32 data was copied');
    assert.throws(() => tensor(new theirs.DataView(new theirs.ArrayBuffer(4)) as never), QkvError);
  });

  test('bytes are masks, and no numbers to add', () => {
    const mask = { data: theirs.Uint8Array.of(1, 0), shape: [2] };
    assert.deepEqual(engine.attention(x, x, x, { mask }).output.toArray(), [[1, 2], [1, 2]]);
    assert.ok(tensor(theirs.Uint8Array.of(1, 0)).data instanceof theirs.Uint8Array);
    const resident = engine.resident(mask);
    assert.deepEqual(engine.attention(x, x, x, { mask: resident }).output.toArray(), [[1, 2], [1, 2]]);
    resident.dispose();
    for (const data of [mask.data, theirs.Uint8ClampedArray.of(1, 0)]) {
      assert.throws(() => engine.attention(x, x, x, { bias: { data, shape: [2] } }), { message: /^bias holds bytes, expected numbers/ });
    }
  });

  test('results are written to float32 memory', () => {
    const data = new theirs.Float32Array(4);
    const { output } = engine.attention(x, x, x, { out: { data, shape: [2, 2] } });
    assert.equal(output.data, data);
    assert.deepEqual(Array.from(data), Array.from(engine.attention(x, x, x).output.data));
    const parameters = [{ data: theirs.Float32Array.of(1), shape: [1] }];
    const adam = engine.adam({ lr: 0.5, eps: 0 });
    adam.step(parameters, [theirs.Float32Array.of(2)].map((slope) => ({ data: slope, shape: [1] })));
    adam.dispose();
    assert.ok(Math.abs(parameters[0]!.data[0]! - 0.5) < 1e-6, `a step of 0.5 from 1 led to ${parameters[0]!.data[0]}`);
    assert.throws(() => engine.attention(x, x, x, { out: { data: new theirs.Float64Array(4) as never, shape: [2, 2] } }), { message: /^out holds an object of class Float64Array/ });
  });

  test('a model’s file', () => {
    const [model, other] = [1, 2].map((seed) => engine.sequenceModel({ mixer: 'gru', readout: 'every', vocab: 3, embedDim: 2, seed })) as [SequenceModel, SequenceModel];
    assert.notDeepEqual(other.parameters, model.parameters);
    other.load(new theirs.Uint8Array(model.save()));
    assert.deepEqual(other.parameters, model.parameters);
  });

  test('the WebAssembly as bytes and as a module', async () => {
    const bytes = new theirs.Uint8Array(await readFile(wasm));
    const shared = new theirs.SharedArrayBuffer(bytes.length);
    new theirs.Uint8Array(shared).set(bytes);
    for (const source of [bytes, bytes.buffer, shared, await theirs.WebAssembly.compile(bytes)]) {
      const own = await load({ wasm: source, threads: threaded ? 2 : 1 });
      assert.equal(own.info().variant, variant);
      own.dispose();
    }
    await assert.rejects(load({ wasm: new theirs.ArrayBuffer(8) }), { code: 'LOAD_FAILED', message: /^wasm: 8 bytes came that are not WebAssembly/ });
  });

  test('in a worker too', async () => {
    const remote = await spawn({ threads: 1, wasm: await theirs.WebAssembly.compile(new Uint8Array(await readFile(wasm))) });
    try {
      const data = new theirs.Float32Array(4);
      const query = theirs.Float32Array.of(1, 2, 3, 4);
      const { output } = await remote.attention({ data: query, shape: [2, 2] }, x.toArray(), x.toArray(), { out: { data, shape: [2, 2] }, transfer: true });
      assert.equal(output.data, data);
      assert.deepEqual(Array.from(data), Array.from(engine.attention(x, x, x).output.data));
      assert.equal(query.length, 0, 'it was copied in spite of transfer');
    } finally {
      remote.dispose();
    }
  });
});
