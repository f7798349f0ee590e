import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { load, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from './support/engine.js';
import { randomFloats } from './support/reference.js';

const MIB = 2 ** 20;
const square = (length: number, dim: number) => tensor(randomFloats(length * dim, length), [length, dim]);

describe(`memory, ${variant}`, () => {
  test('grows as asked, and results from before and after stay right', async () => {
    const engine = await loadVariant({ maxMemory: 256 * MIB });
    const small = square(3, 4);
    const before = engine.attention(small, small, small).output;
    const copy = before.data.slice();
    const { used } = engine.info().memory;
    const large = square(20000, 64);
    const weighed = engine.attention(tensor(large.data.slice(0, 640), [10, 64]), large, large, { weights: 'heads' });
    assert.ok(engine.info().memory.used > used, 'the large call did not grow the memory');
    assert.ok(Math.abs(weighed.weights!.data.subarray(0, 20000).reduce((a, b) => a + b) - 1) < 1e-4);
    assert.deepEqual(before.data, copy);
    assert.deepEqual(engine.attention(small, small, small).output.data, copy);
    engine.dispose();
  });

  test('does not grow over many calls', async () => {
    const engine = await loadVariant({ maxMemory: 255 * MIB });
    const x = square(64, 64);
    engine.attention(x, x, x, { weights: 'heads' });
    const { used } = engine.info().memory;
    for (let i = 0; i < 5000; i++) engine.attention(x, x, x, i % 2 ? { weights: 'heads' } : {});
    assert.equal(engine.info().memory.used, used);
    engine.dispose();
  });

  test('without weights it does not grow with queryLength * keyLength', async () => {
    const engine = await loadVariant({ maxMemory: 254 * MIB });
    const x = square(8192, 8);
    engine.attention(x, x, x);
    // The score matrix alone would be 256 MiB.
    assert.ok(engine.info().memory.used < 8 * MIB, `the engine took ${engine.info().memory.used} bytes`);
    engine.dispose();
  });

  test('that does not reach is an error with the bytes named, and the engine works on', async () => {
    const engine = await loadVariant({ maxMemory: 32 * MIB });
    assert.equal(engine.info().memory.limit, 32 * MIB);
    const x = square(4096, 4);
    for (let repeat = 0; repeat < 3; repeat++) {
      const error = await errorOf(() => engine.attention(x, x, x, { weights: 'heads' }));
      assert.equal(error.code, 'OUT_OF_MEMORY');
      const [, wanted, limit] = /^attention needs (\d+) bytes .* at most (\d+) bytes;/.exec(error.message)!.map(Number);
      assert.ok(wanted! > 64 * MIB && wanted! < 66 * MIB, error.message);
      assert.equal(limit, 32 * MIB);
      assert.deepEqual(engine.attention([[1]], [[1]], [[5]]).output.toArray(), [[5]]);
    }
    assert.equal(engine.attention(x, x, x).output.data.length, 4096 * 4);
    engine.dispose();
  });

  test('that a smaller call took before is there for a larger one', async () => {
    const engine = await loadVariant({ maxMemory: 64 * MIB });
    for (const mib of [30, 40, 50, 55]) {
      const keys = square((mib * MIB) / 64, 8);
      assert.equal(engine.attention(square(1, 8), keys, keys).output.data.length, 8, `${mib} of 64 MiB did not fit`);
    }
    engine.dispose();
  });

  test('that 32-bit addresses could never reach is the same error', async () => {
    const engine = await loadVariant({ maxMemory: 512 * MIB });
    // A column of weights is packed to eight: 8 GiB of scratch for 256 MiB of input.
    const rows = 2 ** 26;
    const column = tensor(new Float32Array(rows), [rows, 1]);
    const error = await errorOf(() => engine.explain(tensor(new Float32Array(0), [0, rows]), { wq: column, wk: column, wv: column }));
    assert.equal(error.code, 'OUT_OF_MEMORY');
    assert.match(error.message, /^explain needs \d{10,} bytes/);
    engine.dispose();
  });

  test('is refused by a small host: a smaller maximum is taken', async () => {
    const { Memory } = WebAssembly;
    // A device that grants at most 64 MiB.
    WebAssembly.Memory = class extends Memory {
      constructor(descriptor: WebAssembly.MemoryDescriptor) {
        if (descriptor.maximum! > 1024) throw new RangeError('could not allocate memory');
        super(descriptor);
      }
    } as typeof Memory;
    try {
      const engine = await load({ variant, threads: 1, deterministic: false });
      assert.equal(engine.info().memory.limit, 64 * MIB);
      assert.deepEqual(engine.attention([[1]], [[1]], [[5]]).output.toArray(), [[5]]);
      engine.dispose();
    } finally {
      WebAssembly.Memory = Memory;
    }
  });
});
