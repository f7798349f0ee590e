import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type AttentionOptions, load, tensor, type Tensor } from 'qkv';

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

  test('of scratch is the same for all lengths without weights, and some bytes a row with', async () => {
    // An engine that is too small says how many bytes a call needs.
    const engine = await loadVariant({ maxMemory: 2 * MIB });
    const scratch = async (length: number, options: AttentionOptions, outputs: number) => {
      const x = tensor(new Float32Array(8 * length * 64), [8, length, 64]);
      const { message } = await errorOf(() => engine.attention(x, x, x, options));
      return Number(/needs (\d+) bytes/.exec(message)![1]) - 4 * (2 * x.data.length + outputs);
    };
    const lengths = [1024, 4096, 16384];
    const plain = await Promise.all(lengths.map((length) => scratch(length, { logSumExp: true }, 8 * length)));
    const mean = await Promise.all(lengths.map((length) => scratch(length, { weights: 'mean' }, length * length)));
    console.log(`bytes of scratch at ${lengths.join(', ')}: ${plain.join(', ')}; with weights: ${mean.join(', ')}`);
    assert.ok(plain.every((bytes) => bytes === plain[0] && bytes < MIB), `scratch grows with the length: ${plain.join(', ')}`);
    mean.forEach((bytes, i) => {
      // The maximum and the sum of each row.
      assert.ok(bytes <= plain[0]! + 8 * 8 * lengths[i]! + 1024, `${bytes} bytes at ${lengths[i]}`);
    });
    engine.dispose();
  });

  test('of an argument that comes several times is taken once, with the same bits', async () => {
    const engine = await loadVariant({ maxMemory: 2 * MIB });
    const make = (length: number) => [1, 2, 3].map((seed) => tensor(randomFloats(length * 64, seed), [length, 64])) as [Tensor, Tensor, Tensor];
    const asked = async (...given: [Tensor, Tensor, Tensor]) => {
      const { message } = await errorOf(() => engine.attention(...given, { bias: [0] }));
      return Number(/needs (\d+) bytes/.exec(message)![1]);
    };
    const [query, key, value] = make(16384);
    const [others, pair, same] = [await asked(query, key, value), await asked(query, key, key), await asked(query, query, query)];
    assert.deepEqual([others - pair, pair - same], [4 * MIB, 4 * MIB]);
    // By their memory, and not by the object: the same part of the same buffer.
    const views = (parts: readonly [number, number, number]) => parts.map((first) => tensor(query.data.subarray(first, first + 8192 * 64), [8192, 64])) as [Tensor, Tensor, Tensor];
    assert.equal(await asked(...views([0, 8192 * 64, 64])) - (await asked(...views([0, 0, 0]))), 4 * MIB);
    const [x] = make(16);
    const copies = [x, x, x].map(({ data, shape }) => tensor(data.slice(), shape)) as [Tensor, Tensor, Tensor];
    assert.deepEqual(engine.attention(x, x, x, { weights: 'heads' }), engine.attention(...copies, { weights: 'heads' }));
    engine.dispose();
  });

  test('of chosen rows of weights is that of these rows', async () => {
    const engine = await loadVariant({ maxMemory: 253 * MIB });
    const make = (length: number, seed: number) => tensor(randomFloats(8 * length * 8, seed), [8, length, 8]);
    const [query, key, value] = [make(8192, 1), make(8192, 2), make(8192, 3)];
    const plain = engine.attention(query, key, value).output;
    const { used } = engine.info().memory;
    const made = engine.attention(query, key, value, { weights: { heads: [3], queries: [7] } });
    const extra = engine.info().memory.used - used;
    assert.ok(extra < 8 * MIB, `one row took ${extra} bytes more`);
    assert.deepEqual(made.output.data, plain.data);
    assert.deepEqual(made.weights.shape, [1, 1, 8192]);
    // That query of that head alone has the same row.
    const head = ({ data }: Tensor, first: number, rows: number) =>
      tensor(data.slice((3 * 8192 + first) * 8, (3 * 8192 + first + rows) * 8), [rows, 8]);
    const alone = engine.attention(head(query, 7, 1), head(key, 0, 8192), head(value, 0, 8192), { weights: 'heads' });
    assert.deepEqual(made.weights.data, alone.weights.data);
    // And in a case small enough to hold all rows, the chosen one is theirs.
    const [q, k, v] = [make(300, 4), make(300, 5), make(300, 6)];
    const full = engine.attention(q, k, v, { weights: 'heads' }).weights;
    const row = engine.attention(q, k, v, { weights: { heads: [3], queries: [7] } }).weights;
    assert.deepEqual(row.data, full.data.slice((3 * 300 + 7) * 300, (3 * 300 + 8) * 300));
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
