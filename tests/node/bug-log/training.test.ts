// Faults that other libraries had while they trained; the ids are those of our bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from '../support/engine.js';
import { randomFloats } from '../support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

describe(`bug log, training, ${variant}`, () => {
  test('B57 a step by NaN, Infinity or an overflow is refused by the name of the first bad tensor; clipped, a gradient of 1e20 is a step', async () => {
    // Logits of +-1000 and a loss gradient of 1e20 give gradients that are large, and no NaN.
    const logits = [[1000, -1000], [-1000, 1000]];
    const { loss, dLogits } = engine.crossEntropy(logits, [0, 0]);
    assert.deepEqual([loss, dLogits.toArray()], [1000, [[0, 0], [-0.5, 0.5]]]);
    const large = tensor(dLogits.data.map((x) => x * 1e20), [2, 2]);
    const { dX } = engine.softmaxBackward(large, logits);
    const { dWeight } = engine.linearBackward(large, [[1], [1]], [[1, 1]]);
    for (const made of [dX, dWeight]) assert.ok(made.data.every((x) => !Number.isNaN(x)), `${made.toArray()} has NaN`);

    const parameters = [tensor([1]), tensor([[1, 2]])];
    const before = parameters.map(({ data }) => [...data]);
    using plain = engine.adam();
    for (const [gradients, named] of [
      [[[1], dWeight], 'gradients[1][0][0] is -50000001002043870000'],
      [[[NaN], dWeight], 'gradients[0][0] is NaN'],
      [[[1], [[Infinity, NaN]]], 'gradients[1][0][0] is Infinity'],
    ] as const) {
      const error = await errorOf(() => plain.step(parameters, gradients));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      assert.ok(error.message.startsWith(named), `"${error.message}" does not begin with "${named}"`);
      assert.match(error.message, / in step 1, expected /);
      assert.deepEqual(parameters.map(({ data }) => [...data]), before, 'a step that was refused has changed a parameter');
    }
    const broken = tensor([NaN]);
    assert.match((await errorOf(() => plain.step([broken, parameters[1]!], [[1], [[1, 1]]]))).message, /^parameters\[0\]\[0\] is NaN in step 1, expected a finite number\.$/);
    // None of them was a step: the first is as long as the learning rate.
    plain.step(parameters, [[1], [[1, -1]]]);
    assert.ok(Math.abs(parameters[0]!.data[0]! - 0.999) < 1e-7, `${parameters[0]!.data[0]} came, 0.999 expected`);

    using clipped = engine.adam({ clip: 1 });
    for (let step = 0; step < 50; step++) clipped.step(parameters, [[1], dWeight]);
    assert.ok(parameters.every(({ data }) => data.every(Number.isFinite)));
    assert.ok(parameters[1]!.data[0]! > 1.02 && parameters[1]!.data[1]! < 2, 'the clipped gradient was no step');
  });

  test('B28 a state that has faded away is 0 and not denormal, so that steps take no longer', () => {
    const count = 1 << 15;
    const gradients = [tensor(randomFloats(count, 28), [count])];
    const zeros = [tensor(new Float32Array(count), [count])];
    const parameters = () => [tensor(randomFloats(count, 1), [count])];
    const [faded, fresh] = [parameters(), parameters()];
    using old = engine.adam();
    using young = engine.adam();
    old.step(faded, gradients);
    young.step(fresh, gradients);
    // 0.9^830 is 1e-38.
    for (let step = 0; step < 900; step++) old.step(faded, zeros);
    const time = (call: () => unknown) => {
      const start = performance.now();
      for (let i = 0; i < 10; i++) call();
      return performance.now() - start;
    };
    const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
    // Another process may take the processor for a while: the best of some tries counts.
    let ratio = Infinity;
    for (let attempt = 0; attempt < 5 && ratio >= 2; attempt++) {
      const times = Array.from({ length: 9 }, () => [time(() => old.step(faded, zeros)), time(() => young.step(fresh, gradients))] as const);
      ratio = Math.min(ratio, median(times.map(([slow]) => slow)) / median(times.map(([, usual]) => usual)));
    }
    assert.ok(ratio < 2, `steps of a faded state take ${ratio.toFixed(1)} times as long as others`);
  });

  test('B57 a model that is checked says which tensor and which step were the first to go wrong', async () => {
    // A rate of 1e38 leads beyond float32 within a few steps, the RNN's first.
    using model = engine.sequenceModel({ vocab: 4, embedDim: 4, mixer: 'rnn', readout: 'last', optimizer: { lr: 1e38 }, check: true });
    let made = 0;
    const error = await errorOf(() => {
      for (; made < 50; made++) model.trainStep([[0, 1, 2, 3]], [made % 4]);
    });
    assert.match(error.message, new RegExp(`^trainStep: the (loss|(gradient of|new value of) [\\w.]+) holds -?(NaN|Infinity) at step ${made + 1}\\b.*; nothing has changed\\.$`));
    assert.equal(model.steps, made);
    assert.ok(Object.values(model.parameters).every(({ data }) => data.every(Number.isFinite)), 'a parameter is not finite');
  });

  test('B56 a model answers the same after save and load, its layers share nothing, and parameters are copies', () => {
    const options = { vocab: 4, embedDim: 4, mixer: 'lstm', readout: 'last', layers: 2 } as const;
    using model = engine.sequenceModel(options);
    for (let step = 0; step < 5; step++) model.trainStep([[0, 1, 2, 3]], [step % 4]);
    using copy = engine.sequenceModel({ ...options, seed: 9 });
    copy.load(model.save());
    assert.deepEqual(copy.forward([0, 1, 2]), model.forward([0, 1, 2]));
    const { parameters } = model;
    parameters['layers.0.wh']!.data.fill(0);
    assert.deepEqual(copy.forward([0, 1, 2]), model.forward([0, 1, 2]));
    copy.load(parameters);
    assert.deepEqual(copy.parameters['layers.1.wh'], model.parameters['layers.1.wh']);
    assert.notDeepEqual(copy.parameters['layers.0.wh'], model.parameters['layers.0.wh']);
  });
});
