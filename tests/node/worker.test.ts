// The engine in a worker gives what the engine without one gives, to the bit, and leaves the caller's arguments alone.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';

import { Engine, load, QkvError, tensor, type Tensor } from 'qkv';
import { type RemoteEngine, spawn } from 'qkv/worker';

import { errorOf, variant } from './support/engine.js';
import { spawnVariant, variantOptions } from './support/worker.js';

const numbers = (seed: number, ...shape: number[]): Tensor =>
  tensor(Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(seed + i * 1.7)), shape);

const x = numbers(1, 5, 6);
const [wq, wk, wv] = [numbers(2, 6, 4), numbers(3, 6, 4), numbers(4, 6, 4)] as const;
const [query, key, value] = [numbers(5, 2, 3, 8), numbers(6, 2, 7, 8), numbers(7, 2, 7, 5)] as const;
const rnn = { wx: wq, wh: numbers(8, 4, 4) };
const lstm = { wx: numbers(12, 6, 8), wh: numbers(13, 2, 8), peephole: numbers(14, 6) };
const gru = { wx: numbers(15, 6, 3), wh: numbers(16, 1, 3), bh: [1, 2, 3] };

/** Without a worker each `await` is one of a value. */
const calls: Record<string, (engine: RemoteEngine) => Promise<unknown>> = {
  'attention with every extra': (engine) =>
    engine.attention(query, key, value, { causal: 'bottom-right', window: [4, 1], weights: 'heads', scores: 'biased', logSumExp: true }),
  'attention with a mask, a bias and lists': (engine) =>
    engine.attention(query, key, value, {
      mask: [[true, false, true, true, false, true, true]],
      bias: tensor([[0, 1, 2, 3, -Infinity, 5, 6]]),
      keyLengths: new Int32Array([6]),
      sinks: new Float64Array([0.5, 1]),
      alibi: [0.25, 0.5],
      dropout: { p: 0.5, seed: 3 },
      weights: { queries: [2, 0] },
    }),
  'attention of nested arrays': (engine) => engine.attention([[1, 2]], [[3, 4], [5, 6]], [[7], [8]], { scale: 0 }),
  'attention of no keys': (engine) => engine.attention(numbers(1, 2, 3), numbers(1, 0, 3), numbers(1, 0, 2), { logSumExp: true }),
  attentionBackward: (engine) =>
    engine.attentionBackward(numbers(17, 2, 3, 5), query, key, value, { bias: numbers(18, 7), sinks: [0.5, 1], dropout: { p: 0.5, seed: 3 } }),
  explain: (engine) => engine.explain(x, { wq, wk, wv, causal: true }),
  linear: (engine) => engine.linear(x, wq, [1, 2, 3, 4]),
  'linear without a bias': (engine) => engine.linear(x, wq),
  softmax: (engine) => engine.softmax(x),
  layerNorm: (engine) => engine.layerNorm(x, { gamma: [1, 2, 3, 4, 5, 6] }),
  rmsNorm: (engine) => engine.rmsNorm(x),
  gelu: (engine) => engine.gelu(x, { approximate: 'tanh' }),
  silu: (engine) => engine.silu(x),
  embedding: (engine) => engine.embedding(x, new BigInt64Array([4n, 0n])),
  rotary: (engine) => engine.rotary(x, { pairing: 'halves', positions: new Int16Array([3, 1, 4, 1, 5]) }),
  linearBackward: (engine) => engine.linearBackward(numbers(1, 5, 4), x, wq, [1, 2, 3, 4]),
  softmaxBackward: (engine) => engine.softmaxBackward(numbers(1, 5, 6), x),
  layerNormBackward: (engine) => engine.layerNormBackward(numbers(1, 5, 6), x, { gamma: [1, 2, 3, 4, 5, 6], beta: [1, 2, 3, 4, 5, 6] }),
  rmsNormBackward: (engine) => engine.rmsNormBackward(numbers(1, 5, 6), x, { eps: 0.1 }),
  geluBackward: (engine) => engine.geluBackward(numbers(1, 5, 6), x, { approximate: 'tanh' }),
  siluBackward: (engine) => engine.siluBackward(numbers(1, 5, 6), x),
  embeddingBackward: (engine) => engine.embeddingBackward(numbers(1, 2, 6), x, new BigInt64Array([4n, 0n])),
  rotaryBackward: (engine) => engine.rotaryBackward(numbers(1, 5, 6), x, { pairing: 'neighbours', offset: 2 }),
  crossEntropy: (engine) => engine.crossEntropy(x, new Uint8Array([0, 1, 2, 3, 4])),
  adam: async (engine) => {
    const parameters = [numbers(1, 2, 3), numbers(2, 4)];
    const optimizer = await engine.adam({ lr: 0.1, clip: 2 });
    const first = await optimizer.step(parameters, [numbers(3, 2, 3), [1, 2, 3, 4]]);
    const after = parameters.map(({ data }) => data.slice());
    const stepped = await optimizer.step(parameters, [numbers(4, 2, 3), [1, 2, 3, 4]]);
    return [first === parameters, stepped === parameters, after, parameters];
  },
  rnn: (engine) => engine.rnn(x, rnn, { h0: [1, 0, 0, 1] }),
  rnnStep: (engine) => engine.rnnStep([1, 2, 3, 4, 5, 6], { h: [0, 1, 0, 1] }, rnn, { activation: 'relu' }),
  lstm: (engine) => engine.lstm(x, { forward: lstm, reverse: lstm }, { direction: 'both', lengths: [4], gateOrder: 'iofg' }),
  lstmStep: (engine) => engine.lstmStep([1, 2, 3, 4, 5, 6], { h: [1, 0], c: [0, 1] }, lstm),
  gru: (engine) => engine.gru(x, gru, { direction: 'reverse', h0: [1], resetAfter: false }),
  gruStep: (engine) => engine.gruStep([1, 2, 3, 4, 5, 6], { h: [1] }, gru),
  rnnBackward: (engine) => engine.rnnBackward({ dOutputs: numbers(1, 5, 4), dH: [1, 2, 3, 4] }, x, rnn, { h0: [1, 0, 0, 1] }),
  lstmBackward: (engine) =>
    engine.lstmBackward({ dC: numbers(1, 2, 2) }, x, { forward: lstm, reverse: lstm }, { direction: 'both', lengths: [4], gateOrder: 'iofg' }),
  gruBackward: (engine) => engine.gruBackward({ dH: [1] }, x, gru, { direction: 'reverse', resetAfter: false }),
  'a layer': async (engine) => {
    const layer = await engine.multiHeadAttention({ embedDim: 6, numHeads: 2, bias: false, seed: 7 });
    await layer.load({ ...(await layer.parameters), wq: numbers(9, 6, 6) });
    const turned = await layer.forward(x, { rotary: { pairing: 'neighbours', dims: 2 }, weights: 'mean' });
    return [turned, await layer.forward(x, { context: numbers(10, 3, 6) }), await layer.parameters, await layer.headDim];
  },
  "a layer's gradients": async (engine) => {
    const layer = await engine.multiHeadAttention({ embedDim: 6, numHeads: 2, seed: 7 });
    const [dOutput, context, rotary] = [numbers(11, 5, 6), await engine.resident(numbers(10, 3, 6)), { pairing: 'neighbours', dims: 2 }] as const;
    return [await layer.backward(dOutput, x, { rotary, causal: true, sinks: [1, 2] }), await layer.backward(dOutput, x, { context, bias: numbers(12, 3) })];
  },
  'gradients with out, which they pass over': async (engine) => {
    const layer = await engine.multiHeadAttention({ embedDim: 6, numHeads: 2 });
    const out = numbers(11, 5, 6);
    return [await layer.backward(out, x, { out }), await engine.attentionBackward(out, x, x, x, { out }), out];
  },
  'a cache': async (engine) => {
    const cache = await engine.kvCache({ numKvHeads: 2, headDim: 8, valueDim: 5, capacity: 16 });
    await cache.append(key, value);
    const attended = await cache.attend(query, { logSumExp: true });
    await cache.truncate(3);
    const [length, capacity] = [await cache.length, await cache.capacity];
    await cache.reset();
    return [attended, length, capacity, await cache.length];
  },
  'resident tensors': async (engine) => {
    const [keys, weight, bias, mask] = [await engine.resident(key), await engine.resident(wq), await engine.resident([1, 2, 3, 4]), await engine.resident(tensor([[true, false, true, true, false, true, true]]))];
    const layer = await engine.multiHeadAttention({ embedDim: 6, numHeads: 2, headDim: 2, bias: false });
    await layer.load({ wq: weight, wk, wv, wo: numbers(9, 4, 6) });
    const made = [
      await engine.attention(query, keys, value, { mask, weights: 'heads' }),
      await engine.linear(x, weight, bias),
      await engine.rnn(x, { wx: weight, wh: rnn.wh, bx: bias }),
      await layer.forward(x),
      [await keys.shape, await keys.data, await keys.at(1, 2, 3), await keys.toArray()],
    ];
    keys.dispose();
    return made;
  },
};

/** Arguments that the engine refuses, each in its own way. */
const refusals: Record<string, (engine: RemoteEngine) => Promise<unknown>> = {
  'shapes that do not fit': (engine) => engine.attention(x, wq, wv),
  'ragged rows': (engine) => engine.softmax([[1, 2], [3]]),
  'an option that is not known': (engine) => engine.attention(x, x, x, { cuasal: true } as object),
  'options that are none': (engine) => engine.attention(x, x, x, 5 as never),
  'a promise': (engine) => engine.softmax(Promise.resolve(x) as never),
  'a function': (engine) => engine.attention(x, x, x, { bias: (() => 1) as never }),
  'a symbol': (engine) => engine.attention(x, x, x, { scale: Symbol('one') as never }),
  'a map': (engine) => engine.attention(x, x, x, new Map() as never),
  'a date': (engine) => engine.layerNorm(x, { gamma: new Date() as never }),
  'a buffer': (engine) => engine.softmax({ data: new ArrayBuffer(8) as never, shape: [2] }),
  'a rounding': (engine) => engine.gelu(x, { approximate: 'erf' as never }),
  'a shape that does not hold the data': (engine) => engine.softmax({ data: new Float32Array(3), shape: [2, 2] }),
  'an index out of range': (engine) => engine.embedding(x, [5]),
  'a resident tensor that was disposed': async (engine) => {
    const resident = await engine.resident(x);
    await engine.resident(x);
    resident.dispose();
    await engine.linear(x, resident);
  },
  'a resident tensor as out': async (engine) => engine.attention(x, x, x, { out: (await engine.resident(x)) as never }),
  'a resident tensor of two that is disposed, as out': async (engine) => {
    const resident = await engine.resident(x);
    resident.dispose();
    await engine.attention(x, x, x, { out: resident as never });
  },
  'more than the memory': (engine) => engine.kvCache({ numKvHeads: 1, headDim: 1024, capacity: 2 ** 24 }),
};

describe(`an engine in a worker, ${variant}`, () => {
  let remote: RemoteEngine;
  let local: RemoteEngine;
  before(async () => {
    remote = await spawnVariant();
    local = (await load(variantOptions)) as unknown as RemoteEngine;
  });
  after(() => {
    remote.dispose();
    local.dispose();
  });

  for (const [name, call] of Object.entries(calls)) {
    test(`${name}: the same result`, async () => assert.deepEqual(await call(remote), await call(local)));
  }

  for (const [name, call] of Object.entries(refusals)) {
    test(`${name}: the same error`, async () => {
      const [came, expected] = [await errorOf(() => call(remote)), await errorOf(() => call(local))];
      assert.deepEqual([came.code, came.message], [expected.code, expected.message]);
    });
  }

  test('resident tensors of other engines are copied, or refused where they are in another worker', async () => {
    const engine = await load(variantOptions);
    const resident = engine.resident(x);
    assert.deepEqual(await remote.softmax(resident), engine.softmax(x));
    const error = await errorOf(() => remote.attention(x, x, x, { out: resident as never }));
    assert.equal(error.message, 'out is an object of class ResidentTensor, expected a tensor with a Float32Array.');
    resident.dispose();
    const gone = await errorOf(() => remote.softmax(resident));
    assert.deepEqual([gone.code, gone.message], ['DISPOSED', 'resident.data: this tensor was disposed; engine.resident() gives a new one.']);
    const elsewhere = await spawnVariant();
    const { message, code } = await errorOf(async () => remote.softmax(await elsewhere.resident(x)));
    assert.deepEqual([code, message], ['INVALID_ARGUMENT', 'x is an object of class Remote (of another engine), expected a tensor or nested arrays.']);
    elsewhere.dispose();
  });

  test('has every method of Engine', () => {
    const own = [Engine.prototype, Object.getPrototypeOf(Engine.prototype) as object]
      .flatMap((level) => Object.getOwnPropertyNames(level))
      .filter((name) => name !== 'constructor');
    assert.deepEqual(own.filter((name) => typeof (remote as unknown as Record<string, unknown>)[name] !== 'function'), []);
  });

  test('says what it runs on', async () => {
    const info = await remote.info();
    assert.equal(info.variant, variantOptions.variant);
    assert.equal(info.threads, variantOptions.threads);
  });

  test('tensors come back as tensors of the package, in memory of their own', async () => {
    const { output } = await remote.attention(x, x, x);
    assert.equal(output.constructor, x.constructor);
    assert.equal(output.at(0, 0), output.data[0]);
    assert.equal(output.data.byteLength, output.data.buffer.byteLength);
    assert.throws(() => ((output.shape as number[])[0] = 1), TypeError);
  });

  test('arguments are copied when the call is made, whatever memory they are in', async () => {
    const whole = Float32Array.from({ length: 12 }, (_, i) => i);
    const shared = new Float32Array(new SharedArrayBuffer(16)).fill(1);
    const part = { data: whole.subarray(4, 8), shape: [1, 4] };
    const expected = await remote.attention([[4, 5, 6, 7]], [[1, 1, 1, 1]], [[4, 5, 6, 7]], { weights: 'heads' });
    const call = remote.attention(part, { data: shared, shape: [1, 4] }, part, { weights: 'heads' });
    whole.fill(9);
    shared.fill(9);
    assert.deepEqual(await call, expected);
    assert.equal(whole.length, 12, 'the argument was detached');
  });

  test('a tensor of another library may have data and shape as getters', async () => {
    class Other {
      get data() { return new Float32Array([1, 2]); }
      get shape() { return [1, 2]; }
    }
    assert.deepEqual(await remote.softmax(new Other()), await remote.softmax([[1, 2]]));
  });

  test('transfer hands whole arrays over, and no more than those', async () => {
    const [whole, buffer] = [new Float32Array([1, 2]), new Float32Array([3, 4, 5])];
    const out = new Float32Array(2);
    const tail = { data: buffer.subarray(1), shape: [1, 2] };
    const { output } = await remote.attention({ data: whole, shape: [1, 2] }, tail, tail, { transfer: true, out: { data: out, shape: [1, 2] } });
    assert.equal(whole.length, 0, 'the query was not handed over');
    assert.equal(buffer.length, 3, 'a part of a buffer was handed over');
    assert.equal(output.data, out);
    assert.deepEqual([...out], [4, 5]);
    const error = await errorOf(() => remote.softmax({ data: whole, shape: [1, 2] }, { transfer: true }));
    assert.equal(error.code, 'SHAPE_MISMATCH');
    assert.match(error.message, /was its buffer transferred away\?/);
  });

  test('out is written wholly, or not at all after an error', async () => {
    const whole = new Float32Array(6).fill(-1);
    const out = tensor(whole.subarray(2, 4), [1, 2]);
    assert.equal((await errorOf(() => remote.attention([[1, 2]], [[1]], [[3, 4]], { out }))).code, 'SHAPE_MISMATCH');
    assert.deepEqual([...whole], [-1, -1, -1, -1, -1, -1]);
    const { output } = await remote.attention([[1, 2]], [[1, 2]], [[3, 4]], { out });
    assert.equal(output, out);
    assert.deepEqual([...whole], [-1, -1, 3, 4, -1, -1]);
  });

  test('a step of adam is in place: wholly, not at all after an error, and transfer takes nothing', async () => {
    const whole = new Float32Array(6).fill(2);
    const parameter = tensor(whole.subarray(2, 4), [2]);
    const gradient = tensor([1, 1]);
    const optimizer = await remote.adam({ lr: 1 });
    assert.match((await errorOf(() => optimizer.step([parameter], [[1, NaN]]))).message, /^gradients\[0\]\[1\] is NaN in step 1/);
    assert.deepEqual([...whole], [2, 2, 2, 2, 2, 2]);
    const made = await optimizer.step([parameter], [gradient], { transfer: true });
    assert.equal(made[0], parameter);
    assert.deepEqual([...whole].map(Math.round), [2, 2, 1, 1, 2, 2]);
    assert.equal(gradient.data.length, 2);
    const full = tensor([0, 0]);
    const step = optimizer.step([full], [gradient]);
    structuredClone(full.data, { transfer: [full.data.buffer] });
    assert.match((await errorOf(() => step)).message, /^parameters\[0\]: its memory was transferred away while the call ran\.$/);
    optimizer.dispose();
    assert.match((await errorOf(() => optimizer.step([parameter], [gradient]))).message, /^adam\.step: this was disposed; engine\.adam\(\) gives a new one\.$/);
  });

  test('parameters of a layer are copies: changing them changes nothing until they are given back', async () => {
    const layer = await remote.multiHeadAttention({ embedDim: 2, numHeads: 1 });
    const before = await layer.forward([[1, 2]]);
    const parameters = await layer.parameters;
    parameters.bo!.data.fill(5);
    assert.deepEqual(await layer.forward([[1, 2]]), before);
    await layer.load(parameters);
    assert.notDeepEqual(await layer.forward([[1, 2]]), before);
    layer.dispose();
  });
});

describe(`spawn, ${variant}`, () => {
  const url = new URL(`./qkv-${variant}.wasm`, import.meta.resolve('qkv'));

  test('takes the WebAssembly as a URL, a path, bytes, a Response or a module', async () => {
    const bytes = await readFile(url);
    const copy = new Uint8Array(bytes).buffer;
    const sources = [url, url.href, url.pathname, bytes, copy, new Response(bytes), await WebAssembly.compile(bytes)];
    for (const wasm of sources) {
      const engine = await spawn({ wasm, threads: variantOptions.threads });
      assert.equal((await engine.info()).variant, variant);
      engine.dispose();
    }
    assert.ok(bytes.length > 0 && copy.byteLength > 0, 'what was given was detached');
  });

  test('refuses what load refuses, with the same words', async () => {
    const wrong = [{ threads: 0 }, { wasm: new Uint8Array([1, 2, 3]) }, { wasm: 5 }, { wasm: '/no/such/file.wasm' }, { nothing: 1 }, 5, null];
    for (const options of wrong as object[]) {
      const [came, expected] = [await errorOf(() => spawn(options)), await errorOf(() => load(options))];
      assert.deepEqual([came.code, came.message], [expected.code, expected.message]);
    }
    const used = new Response('x');
    await used.text();
    assert.equal((await errorOf(() => spawn({ wasm: used }))).code, 'LOAD_FAILED');
    assert.ok((await errorOf(() => spawn({ wasm: '/no/such/file.wasm' }))) instanceof QkvError);
  });
});
