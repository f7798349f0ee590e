// Tensors in the engine's memory: the bits are those of tensors elsewhere, and nothing is copied in.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Engine, type ResidentTensor, tensor, type TensorLike } from 'qkv';

import { errorOf, loadVariant, variant } from './support/engine.js';
import { everyCall } from './support/every-call.js';
import { Choices } from './support/random-case.js';
import { randomFloats } from './support/reference.js';

const MIB = 2 ** 20;
const floats = (...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b, 1), shape.length), shape);

let engine: Engine;
before(async () => { engine = await loadVariant({ maxMemory: 32 * MIB }); });
after(() => engine.dispose());

/** What a call asks for that does not fit, in bytes. */
async function bytesOf(call: () => unknown): Promise<number> {
  const { message } = await errorOf(call);
  return Number(/needs (\d+) bytes/.exec(message)?.[1] ?? assert.fail(message));
}

describe(`resident tensors, ${variant}`, () => {
  test('give the same bits as others, wherever a tensor goes', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const choices = new Choices(seed);
      for (const { name, inputs, call } of everyCall(choices)) {
        const plain = call(engine, inputs);
        const names = Object.keys(inputs);
        for (const chosen of [names, names.filter(() => choices.oneIn(2))]) {
          const resident = chosen.map((input) => [input, engine.resident(inputs[input] as TensorLike)] as const);
          const made = call(engine, { ...inputs, ...Object.fromEntries(resident) });
          assert.deepEqual(made, plain, `${name} with ${chosen.join(', ')} resident has other bits, for seed ${seed}`);
          for (const [input, { data }] of resident) {
            assert.deepEqual([...data], [...(inputs[input] as { data: Float32Array }).data], `${name} wrote to ${input}, for seed ${seed}`);
          }
          for (const [, one] of resident) one.dispose();
        }
      }
    }
  });

  test('were tried with every method of the engine', () => {
    const tried = everyCall(new Choices(1)).map(({ name }) => name.split(' ')[0]);
    const without = ['constructor', 'dispose', 'info', 'resident'];
    const methods: string[] = [];
    for (let level = Engine.prototype as object; level !== Object.prototype; level = Object.getPrototypeOf(level) as object) {
      methods.push(...Object.getOwnPropertyNames(level));
    }
    const missing = methods.filter((name) => !without.includes(name) && !tried.includes(name));
    assert.deepEqual(missing, [], 'add a call of each to support/every-call.ts');
  });

  test('hold a copy of their own, and give copies', () => {
    const source = floats(2, 3);
    const resident = engine.resident(source);
    const before = source.data.slice();
    source.data.fill(7);
    resident.data.fill(8);
    assert.deepEqual([resident.shape, resident.data], [[2, 3], before]);
    assert.deepEqual(resident.toArray(), tensor(before, [2, 3]).toArray());
    assert.equal(resident.at(1, 2), before[5]);
    resident.dispose();
  });

  test('are made from whatever tensors are made from', () => {
    const made = (given: TensorLike) => engine.resident(given).toArray();
    assert.deepEqual(made([[1, 2], [3, 4]]), [[1, 2], [3, 4]]);
    assert.deepEqual(made(tensor(Float64Array.of(9, 1, 2, 9).subarray(1, 3))), [1, 2]);
    assert.deepEqual(made({ data: BigInt64Array.of(5n), shape: [1, 1] }), [[5]]);
    assert.deepEqual(made({ data: new Float32Array(0), shape: [2, 0] }), [[], []]);
    assert.deepEqual(made({ data: Float32Array.of(3), shape: [] }), [3]);
    assert.deepEqual(made(engine.resident([1, 2])), [1, 2]);
    const mask = engine.resident([[true, false]]);
    assert.ok(mask.data instanceof Uint8Array);
    assert.deepEqual([mask.toArray(), mask.at(0, 1)], [[[1, 0]], 0]);
  });

  test('are lists, and numbers where they are masks, as other tensors are', () => {
    const [sinks, bytes] = [engine.resident([0.5, -1]), engine.resident(tensor(Uint8Array.of(1, 2)))];
    const x = floats(2, 3, 4);
    assert.deepEqual(engine.attention(x, x, x, { sinks }), engine.attention(x, x, x, { sinks: [0.5, -1] }));
    assert.deepEqual(engine.softmax(bytes), engine.softmax([1, 2]));
    assert.deepEqual(engine.embedding([[5], [6], [7]], bytes).toArray(), [[6], [7]]);
  });

  test('take no place in a call, and give theirs back', async () => {
    const large = await loadVariant({ maxMemory: 31 * MIB });
    const x = floats(3 * 2 ** 20, 2);
    const column = floats(2, 8);
    const plain = await bytesOf(() => large.linear(x, column));
    const { used } = large.info().memory;
    for (let i = 0; i < 20; i++) {
      const resident = large.resident(x);
      assert.ok(plain - (await bytesOf(() => large.linear(resident, column))) >= 24 * MIB, 'it is copied in');
      assert.equal((await errorOf(() => large.resident(x))).code, 'OUT_OF_MEMORY', 'two of them must not fit, or this test sees nothing');
      assert.equal(resident.at(7, 1), x.at(7, 1));
      resident.dispose();
      resident[Symbol.dispose]();
    }
    assert.ok(large.info().memory.used - used <= 25 * MIB);
    large.dispose();
  });

  test('stay where they are while memory grows', () => {
    const x = floats(16, 16);
    const resident = engine.resident(x);
    const before = engine.info().memory.used;
    const long = tensor(new Float32Array(MIB), [MIB]);
    assert.equal(engine.silu(long).data.length, MIB);
    assert.ok(engine.info().memory.used > before, 'the memory has not grown, so this test sees nothing');
    assert.deepEqual(engine.softmax(resident), engine.softmax(x));
    resident.dispose();
  });

  test('end with their engine', async () => {
    const other = await loadVariant({ maxMemory: 30 * MIB });
    const resident = other.resident([1]);
    other.dispose();
    for (const [member, use] of Object.entries<(one: ResidentTensor) => unknown>({ data: ({ data }) => data, at: (one) => one.at(0), toArray: (one) => one.toArray() })) {
      const error = await errorOf(() => use(resident));
      assert.deepEqual([error.code, error.message], ['DISPOSED', `resident.${member}: this engine was disposed; load() gives a new one.`]);
    }
    resident.dispose();
  });
});

describe(`resident parameters of a layer, ${variant}`, () => {
  const sizes = { embedDim: 256, numHeads: 4, bias: false };
  const x = floats(3, 256);
  const weights = Object.fromEntries(['wq', 'wk', 'wv', 'wo'].map((name) => [name, floats(256, 256)]));

  test('become the parameters, and are used where they are', async () => {
    const small = await loadVariant({ maxMemory: 2 * MIB });
    const layer = small.multiHeadAttention(sizes);
    layer.load(weights);
    const long = floats(2000, 256);
    const plain = await bytesOf(() => layer.forward(long));
    const wq = small.resident(weights['wq']!);
    layer.load({ ...weights, wq });
    assert.equal(layer.parameters.wq, wq);
    assert.equal(plain - (await bytesOf(() => layer.forward(long))), 256 * 256 * 4, 'wq is copied in');
    small.dispose();
  });

  test('are replaced by the next load(), which writes to none of them', () => {
    const layer = engine.multiHeadAttention({ ...sizes, bias: true });
    const resident = Object.fromEntries(Object.entries({ ...weights, bq: floats(256) }).map(([name, one]) => [name, engine.resident(one)]));
    layer.load(resident);
    layer.load(weights);
    assert.deepEqual(resident['wq']!.data, weights['wq']!.data);
    assert.deepEqual([layer.parameters.wq, layer.parameters.wk].map(({ data }) => data), [weights['wq']!.data, weights['wk']!.data]);
    assert.ok(layer.parameters.bq!.data.every((bias) => bias === 0), 'a bias that was not given is not 0');
    layer.parameters.wq.data.fill(0);
    assert.notDeepEqual(resident['wq']!.data, layer.parameters.wq.data);
    for (const one of Object.values(resident)) one.dispose();
    assert.equal(layer.forward(x).output.data.length, x.data.length);
  });

  test('are refused by name once they are disposed, and none are taken where one is refused', async () => {
    const layer = engine.multiHeadAttention(sizes);
    const wv = engine.resident(weights['wv']!);
    layer.load({ ...weights, wv });
    const before = layer.forward(x).output;
    const error = await errorOf(() => layer.load({ ...weights, wq: engine.resident(floats(256, 256)), wo: floats(256, 255) }));
    assert.equal(error.code, 'SHAPE_MISMATCH');
    assert.deepEqual(layer.forward(x).output, before);
    wv.dispose();
    const gone = await errorOf(() => layer.forward(x));
    assert.deepEqual([gone.code, gone.message], ['DISPOSED', 'parameters.wv is a resident tensor that was disposed; engine.resident() gives a new one.']);
    layer.load(weights);
    assert.deepEqual(layer.forward(x).output, before);
  });
});
