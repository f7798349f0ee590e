// A model of sequences in a worker gives what it gives without one, to the bit.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { load, tensor, type Tensor } from 'qkv';
import type { RemoteEngine } from 'qkv/worker';

import { errorOf, variant } from './support/engine.js';
import { randomFloats } from './support/reference.js';
import { spawnVariant, variantOptions } from './support/worker.js';

const numbers = (seed: number, ...shape: number[]): Tensor => tensor(randomFloats(shape.reduce((a, b) => a * b, 1), seed), shape);

/** Without a worker each `await` is one of a value. */
async function everyMethod(engine: RemoteEngine): Promise<unknown> {
  const options = { vocab: 5, embedDim: 4, mixer: 'attention', readout: 'last', seed: 2, optimizer: { lr: 0.1 } } as const;
  const model = await engine.sequenceModel(options);
  const [tokens, given] = [[[1, 2, 3], [4, 0, 1]], { lengths: [3, 2], at: 1, context: await engine.resident([[1, 2], [3, 4]]) }];
  const steps = [await model.trainStep(tokens, [1, 2], { ...given, lr: 0.2 }), await model.trainStep(tokens, new BigInt64Array(2), given)];
  const made = [await model.forward(tokens, given), await model.weights(tokens, given), await model.evaluate(tokens, [1, 2]), await model.gradients(tokens, [1, 2]), await model.inputGradients([1, 2], 3)];
  const file = await model.save();
  const copy = await engine.sequenceModel({ ...options, seed: 3 });
  await copy.load(file);
  const read = await copy.parameters;
  await copy.load({ ...read, embedding: await engine.resident(numbers(1, 5, 4)) });
  return [steps, made, file, read, await copy.parameters, await model.parameterCount, await model.steps, await copy.steps];
}

/** What the engine refuses, each in its own way. */
const refusals: Record<string, (engine: RemoteEngine) => Promise<unknown>> = {
  'an option that a model does not have': (engine) => engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'lstm', readout: 'last', causal: true }),
  'a token that a model does not have': async (engine) => (await engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'lstm', readout: 'last' })).forward([5]),
  'a file that is none': async (engine) => (await engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'lstm', readout: 'last' })).load(new Uint8Array(9)),
  'a step by NaN': async (engine) => {
    const model = await engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'lstm', readout: 'last', check: true });
    await model.load({ ...(await model.parameters), 'layers.0.bx': tensor(new Float32Array(16).fill(NaN)) });
    await model.trainStep([1], 1);
  },
};

describe(`a model in a worker, ${variant}`, () => {
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

  test('gives the same results', async () => assert.deepEqual(await everyMethod(remote), await everyMethod(local)));

  for (const [name, call] of Object.entries(refusals)) {
    test(`${name}: the same error`, async () => {
      const [came, expected] = [await errorOf(() => call(remote)), await errorOf(() => call(local))];
      assert.deepEqual([came.code, came.message], [expected.code, expected.message]);
    });
  }

  test('may be cancelled: what waits never runs, what runs is finished, and the next step is right', async () => {
    const options = { vocab: 9, embedDim: 32, mixer: 'attention', readout: 'last', seed: 1 } as const;
    const [model, expected] = [await remote.sequenceModel(options), await remote.sequenceModel(options)];
    const tokens = tensor(Float32Array.from({ length: 64 * 64 }, (_, i) => (i * 7) % 9), [64, 64]);
    const controller = new AbortController();
    const { signal } = controller;
    const steps = [1, 2, 3].map(() => model.trainStep(tokens, new Int32Array(64), { signal }));
    const reason = new Error('enough');
    controller.abort(reason);
    for (const step of steps) await assert.rejects(step, reason);
    await assert.rejects(model.trainStep(tokens, new Int32Array(64), { signal }), reason);
    const made = await model.steps;
    assert.equal(made, 1, 'of the cancelled steps the first had begun, and no other');
    for (let step = 0; step < made; step++) await expected.trainStep(tokens, new Int32Array(64));
    assert.deepEqual(await model.trainStep(tokens, new Int32Array(64)), await expected.trainStep(tokens, new Int32Array(64)));
    assert.deepEqual(await model.parameters, await expected.parameters);
    model.dispose();
    const { code, message } = await errorOf(() => model.forward([1]));
    assert.deepEqual([code, message], ['DISPOSED', 'sequenceModel.forward: this was disposed; engine.sequenceModel() gives a new one.']);
  });
});
