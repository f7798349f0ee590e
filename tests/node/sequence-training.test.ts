// Models of sequences: that their bits are their own, that they learn, and that a step leaves no memory behind.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, tensor, type Tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { answersOf, recall, type SequenceCase, sequenceCases, stepsToRecall } from './support/sequence-case.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const bitsOf = (tensors: Readonly<Record<string, Tensor>>) => Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, [...new Uint32Array(data.buffer)]]));

describe(`bits of models of sequences, ${variant}`, () => {
  const trained = (on: Engine, { options, tokens, targets, given }: SequenceCase) => {
    using model = on.sequenceModel({ ...options, optimizer: { lr: 0.02, clip: 1, weightDecay: 0.01 } });
    const results = [1, 2, 3].map(() => model.trainStep(tokens, targets, given));
    return { results, parameters: bitsOf(model.parameters), answers: answersOf(model, { tokens, given }), norms: model.inputGradients(tokens, targets, given) };
  };

  test('are those of the seed: the same for two models, others for another seed', () => {
    for (const one of sequenceCases) {
      const [first, second] = [trained(engine, one), trained(engine, one)];
      assert.deepEqual(second, first, one.name);
      assert.notDeepEqual(trained(engine, { ...one, options: { ...one.options, seed: 6 } }).parameters, first.parameters, one.name);
    }
    const started = (seed: number) => {
      using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'attention', readout: 'last', seed });
      return bitsOf(model.parameters);
    };
    const seeds = [0, 1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER].map((seed) => JSON.stringify(started(seed)));
    assert.equal(new Set(seeds).size, seeds.length, 'seeds that differ start alike');
  });

  test('are the same for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = sequenceCases.map((one) => trained(single, one));
    single.dispose();
    for (const threads of [1, 2, 3]) {
      const many = await loadVariant({ threads });
      sequenceCases.forEach((one, i) => assert.deepEqual(trained(many, one), expected[i], `${threads} threads gave other bits: ${one.name}`));
      if (many !== engine) many.dispose();
    }
  });

  test('of one model are left alone by another, and by other calls', () => {
    const [one, other] = [sequenceCases[0]!, sequenceCases[12]!];
    const expected = trained(engine, one);
    using beside = engine.sequenceModel(other.options);
    const large = tensor(new Float32Array(2 ** 20), [2 ** 20]);
    using model = engine.sequenceModel({ ...one.options, optimizer: { lr: 0.02, clip: 1, weightDecay: 0.01 } });
    for (let step = 0; step < 3; step++) {
      assert.deepEqual(model.trainStep(one.tokens, one.targets, one.given), expected.results[step]);
      beside.trainStep(other.tokens, other.targets, other.given);
      engine.silu(large);
    }
    assert.deepEqual(bitsOf(model.parameters), expected.parameters);
  });
});

describe(`learning, ${variant}`, () => {
  for (const [mixer, length, most] of [['attention', 8, 200], ['rnn', 4, 300], ['lstm', 6, 300], ['gru', 6, 300]] as const) {
    test(`${mixer} recalls the first of ${length} tokens`, (t) => {
      const steps = stepsToRecall(engine, { embedDim: 16, mixer, optimizer: { lr: 0.01 } }, length, most);
      t.diagnostic(`${steps} steps`);
      assert.ok(steps <= most, `it was not learned in ${most} steps`);
    });
  }

  test('a step goes by its own lr where it has one', () => {
    using model = engine.sequenceModel({ vocab: 8, embedDim: 4, mixer: 'lstm', readout: 'last' });
    const { tokens, targets } = recall(4, 3, 8, 1);
    const bias = model.parameters['readout.bias']!.data;
    model.trainStep(tokens, targets);
    const moved = model.parameters['readout.bias']!.data.map((value, i) => Math.abs(value - bias[i]!));
    // Adam's first step is as long as the rate: the default is 3e-3.
    assert.ok(Math.max(...moved) > 2.9e-3 && Math.max(...moved) < 3.1e-3, `the largest step was ${Math.max(...moved)}`);
    const before = bitsOf(model.parameters);
    model.trainStep(tokens, targets, { lr: 0 });
    assert.deepEqual(bitsOf(model.parameters), before);
    model.trainStep(tokens, targets);
    assert.notDeepEqual(bitsOf(model.parameters), before, 'the rate of one step is that of the next');
    assert.equal(model.steps, 3);
  });

  test('its steps are those of adam() down its gradients', () => {
    const optimizer = { lr: 0.05, betas: [0.8, 0.95] as [number, number], eps: 1e-6, weightDecay: 0.1, clip: 0.5 };
    using model = engine.sequenceModel({ vocab: 8, embedDim: 4, mixer: 'gru', readout: 'every', optimizer });
    using adam = engine.adam(optimizer);
    const names = Object.keys(model.parameters);
    const parameters = Object.values(model.parameters);
    for (const seed of [1, 2, 3]) {
      const { tokens } = recall(4, 3, 8, seed);
      const { gradients } = model.gradients(tokens, tokens);
      model.trainStep(tokens, tokens);
      adam.step(parameters, names.map((name) => gradients[name]!));
      names.forEach((name, i) => assert.deepEqual(model.parameters[name]!.data, parameters[i]!.data, `${name} after step ${seed}`));
    }
  });
});

describe(`memory of models of sequences, ${variant}`, () => {
  const MIB = 2 ** 20;

  test('a step allocates nothing that stays', async () => {
    const own = await loadVariant({ maxMemory: 24 * MIB });
    using model = own.sequenceModel({ vocab: 8, embedDim: 8, mixer: 'attention', readout: 'last', layers: 2 });
    /** Bytes of the largest tensor that there is room for. */
    const room = () => {
      let [fits, not] = [0, 24 * MIB];
      while (not - fits > 64) {
        const bytes = Math.floor((fits + not) / 128) * 64;
        try {
          own.resident(tensor(new Float32Array(bytes / 4), [bytes / 4])).dispose();
          fits = bytes;
        } catch {
          not = bytes;
        }
      }
      return fits;
    };
    const run = (steps: number) => {
      for (let step = 0; step < steps; step++) {
        const { tokens, targets } = recall(8, 6, 8, step);
        model.trainStep(tokens, targets, step % 2 ? { lengths: [6, 5, 4, 3, 2, 1, 6, 6] } : {});
        if (step % 50 === 0) {
          model.forward(tokens);
          model.inputGradients(tokens, targets);
          model.weights(tokens);
          model.load(model.save());
        }
      }
    };
    run(10);
    const { used } = own.info().memory;
    run(1000);
    assert.equal(own.info().memory.used, used, 'the memory has grown');
    const first = room();
    assert.ok(first > MIB, `there is room for ${first} bytes, so this test sees nothing`);
    run(1000);
    assert.equal(room(), first, 'there is less room than before');
    own.dispose();
  });

  test('goes back with dispose()', async () => {
    const own = await loadVariant({ maxMemory: 23 * MIB });
    const large = { vocab: 2 ** 14, embedDim: 16, mixer: 'rnn', readout: 'last', classes: 2 } as const;
    for (let i = 0; i < 20; i++) {
      // Parameters, gradients and two moments: 4 MiB of the 23, of which the engine's own are some.
      const models = [1, 2, 3].map(() => own.sequenceModel(large));
      for (const model of models) model.dispose();
      models[0]!.dispose();
      models[1]![Symbol.dispose]();
    }
    own.dispose();
  });
});
