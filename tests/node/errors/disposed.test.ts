// Every method of an engine, and of what it made, after dispose().
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Engine, type QkvError, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from '../support/engine.js';

type Methods = Record<string, (...args: unknown[]) => unknown>;

/** What there is to call but dispose(), whatever is added one day, inherited or not. */
function methodsOf(prototype: object): string[] {
  if (prototype === Object.prototype) return [];
  const isMethod = (name: string) => typeof Object.getOwnPropertyDescriptor(prototype, name)!.value === 'function';
  const own = Object.getOwnPropertyNames(prototype).filter((name) => !['constructor', 'dispose'].includes(name) && isMethod(name));
  return [...own, ...methodsOf(Object.getPrototypeOf(prototype) as object)];
}

async function expectDisposed(target: object, sentence: (method: string) => string): Promise<void> {
  const methods = methodsOf(Object.getPrototypeOf(target));
  assert.ok(methods.length > 0, 'there are no methods');
  for (const method of methods) {
    // Whatever else is wrong with the call.
    const error: QkvError = await errorOf(() => (target as Methods)[method]!());
    assert.deepEqual([error.code, error.message], ['DISPOSED', sentence(method)]);
  }
}

const ended = (prefix = '') => (method: string) => `${prefix}${method}: this engine was disposed; load() gives a new one.`;

describe(`disposed, ${variant}`, () => {
  // Engines that are loaded with equal options are one engine: each of these is loaded after the last was disposed.
  test('an engine', async () => {
    const engine = await loadVariant();
    engine.dispose();
    for (const method of ['attention', 'softmax']) assert.ok(methodsOf(Engine.prototype).includes(method), method);
    await expectDisposed(engine, ended());
    engine.dispose();
    engine[Symbol.dispose]();
  });

  test('the engine of a layer, a cache, a resident tensor, an optimizer and a model', async () => {
    const engine = await loadVariant();
    const layer = engine.multiHeadAttention({ embedDim: 2, numHeads: 1 });
    const cache = engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 1 });
    const resident = engine.resident([1]);
    const optimizer = engine.adam();
    optimizer.step([tensor([1])], [[1]]);
    const model = engine.sequenceModel({ vocab: 2, embedDim: 1, mixer: 'rnn', readout: 'last' });
    engine.dispose();
    await expectDisposed(resident, ended('resident.'));
    await expectDisposed(layer, ended('multiHeadAttention.'));
    await expectDisposed(cache, ended('kvCache.'));
    await expectDisposed(optimizer, ended('adam.'));
    await expectDisposed(model, ended('sequenceModel.'));
    assert.match((await errorOf(() => model.parameters)).message, /^sequenceModel\.parameters: this engine was disposed/);
    for (const made of [layer, cache, resident, optimizer, model]) {
      made.dispose();
      made[Symbol.dispose]();
    }
    assert.equal(layer.parameters.wq.data.length, 4, 'the weights are gone');
  });

  test('a layer, a cache, a resident tensor, an optimizer and a model, whose engine works on', async () => {
    const engine = await loadVariant();
    const layer = engine.multiHeadAttention({ embedDim: 2, numHeads: 1 });
    const [cache, other] = [1, 1].map(() => engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 1 }));
    other!.append([[[1]]], [[[5]]]);
    layer.dispose();
    cache![Symbol.dispose]();
    await expectDisposed(layer, (method) => `multiHeadAttention.${method}: this layer was disposed; engine.multiHeadAttention() gives a new one.`);
    await expectDisposed(cache!, (method) => `kvCache.${method}: this cache was disposed; engine.kvCache() gives a new one.`);
    const resident = engine.resident([1]);
    resident.dispose();
    await expectDisposed(resident, (method) => `resident.${method}: this tensor was disposed; engine.resident() gives a new one.`);
    const optimizer = engine.adam();
    optimizer.dispose();
    await expectDisposed(optimizer, (method) => `adam.${method}: this optimizer was disposed; engine.adam() gives a new one.`);
    const model = engine.sequenceModel({ vocab: 2, embedDim: 1, mixer: 'attention', readout: 'last' });
    model.dispose();
    await expectDisposed(model, (method) => `sequenceModel.${method}: this model was disposed; engine.sequenceModel() gives a new one.`);
    assert.match((await errorOf(() => model.parameters)).message, /^sequenceModel\.parameters: this model was disposed/);
    layer.dispose();
    cache!.dispose();
    resident.dispose();
    model.dispose();
    assert.deepEqual(other!.attend([[[3]]]).output.toArray(), [[[5]]]);
    engine.dispose();
  });

  test('an engine that others share, once: load() then gives a new one', async () => {
    const [engine, same] = [await loadVariant(), await loadVariant()];
    assert.equal(engine, same);
    engine.dispose();
    const next = await loadVariant();
    assert.deepEqual(next.attention([[1]], [[1]], [[5]]).output.toArray(), [[5]]);
    next.dispose();
  });
});
