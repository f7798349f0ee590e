// Models of sequences: what they give, and that their gradients are the loss's slopes.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, type SequenceModelOptions, sinusoidal, tensor, type Tensor } from 'qkv';

import { loadVariant, variant } from './support/engine.js';
import { answersOf, sequenceCases } from './support/sequence-case.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

describe(`models of sequences, ${variant}`, () => {
  test('have the parameters that their options ask for', () => {
    const shapes = (options: Partial<SequenceModelOptions>) => {
      using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'attention', readout: 'last', ...options });
      const { parameters } = model;
      assert.equal(model.parameterCount, Object.values(parameters).reduce((sum, { data }) => sum + data.length, 0));
      return Object.fromEntries(Object.entries(parameters).map(([name, { shape }]) => [name, shape.join()]));
    };
    const rows = { embedding: '5,4' };
    const readout = { 'readout.weight': '4,5', 'readout.bias': '5' };
    const square = (layer: number, ...names: string[]) => Object.fromEntries(names.map((name) => [`layers.${layer}.${name}`, '4,4']));
    const all = ['wq', 'wk', 'wv', 'wo'];
    assert.deepEqual(shapes({}), { ...rows, ...square(0, ...all), ...readout });
    assert.deepEqual(shapes({ layers: 2, numHeads: 2 }), { ...rows, ...square(0, ...all), ...square(1, ...all), ...readout });
    assert.deepEqual(shapes({ positions: 'learned', maxLength: 3, classes: 2 }), { ...rows, positions: '3,4', ...square(0, ...all), 'readout.weight': '4,2', 'readout.bias': '2' });
    assert.deepEqual(shapes({ ties: 'query-key' }), { ...rows, ...square(0, 'wq', 'wv', 'wo'), ...readout });
    assert.deepEqual(shapes({ ties: 'value-input' }), { ...rows, ...square(0, 'wq', 'wk', 'wo'), ...readout });
    assert.deepEqual(shapes({ ties: 'all' }), { ...rows, ...square(0, 'wo'), ...readout });
    assert.deepEqual(shapes({ readout: 'pointer', layers: 2 }), { ...rows, ...square(0, ...all), ...square(1, 'wq', 'wk') });
    for (const [mixer, gates] of [['rnn', 1], ['lstm', 4], ['gru', 3]] as const) {
      const cell = { 'layers.0.wx': `4,${4 * gates}`, 'layers.0.wh': `4,${4 * gates}`, 'layers.0.bx': `${4 * gates}`, 'layers.0.bh': `${4 * gates}` };
      assert.deepEqual(shapes({ mixer }), { ...rows, ...cell, ...readout });
    }
  });

  test('give answers of the shapes that are written down, the same for one sequence as for a batch of it', () => {
    for (const { name, options, tokens, targets, given } of sequenceCases) {
      using model = engine.sequenceModel(options);
      const { readout, classes = options.vocab, numHeads = 1, layers = 1 } = options;
      const keys = (given.context as Tensor | undefined)?.shape[1] ?? 5;
      const last = readout === 'pointer' ? [keys] : readout === 'every' ? [5, classes] : [classes];
      const all = answersOf(model, { tokens, given });
      assert.deepEqual(all.shape, [3, ...last], name);
      const weights = options.mixer === 'attention' ? model.weights(tokens, given) : [];
      for (const made of weights) assert.deepEqual(made.shape, [3, numHeads, 5, keys], name);
      assert.equal(weights.length, options.mixer === 'attention' ? layers : 0, name);
      const norms = model.inputGradients(tokens, targets, given);
      assert.deepEqual(norms.shape, [3, 5], name);
      for (let i = 0; i < 3; i++) {
        const part = ({ data, shape }: Tensor, at = i) => tensor(data.slice((at * data.length) / shape[0]!, ((at + 1) * data.length) / shape[0]!), shape.slice(1));
        const own = (list: unknown) => (list === undefined ? undefined : (list as number[])[i]!);
        const single = {
          lengths: own(given.lengths), at: own(given.at), contextLengths: own(given.contextLengths),
          context: given.context && part(given.context as Tensor),
        };
        assert.deepEqual(answersOf(model, { tokens: part(tokens), given: single }), part(all), `${name}, sequence ${i}`);
        weights.forEach((made, layer) => assert.deepEqual(model.weights(part(tokens), single)[layer], part(made), `${name}, weights of sequence ${i}`));
        const target = Array.isArray(targets) ? targets[i]! : part(targets);
        const { loss } = model.evaluate(part(tokens), target, single);
        assert.ok(Number.isFinite(loss) && loss >= 0, `${name}: the loss of sequence ${i} is ${loss}`);
        assert.deepEqual(model.inputGradients(part(tokens), target, single).shape, [5], name);
      }
    }
  });

  test('take tokens of any kind', () => {
    using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'gru', readout: 'last' });
    const expected = model.forward([1, 2, 3]).logits;
    for (const tokens of [Int32Array.of(1, 2, 3), BigInt64Array.of(1n, 2n, 3n), tensor([1, 2, 3]), engine.resident([1, 2, 3]), Uint8Array.of(9, 1, 2, 3).subarray(1)]) {
      assert.deepEqual(model.forward(tokens).logits, expected);
    }
    assert.deepEqual(model.forward([[1, 2, 3]]).logits.data, expected.data);
    assert.deepEqual(model.evaluate([1, 2, 3], 4), model.evaluate([[1, 2, 3]], Int32Array.of(4)));
  });

  test('with one layer of attention are made of what the engine has', () => {
    using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'attention', readout: 'every', numHeads: 2 });
    const { embedding, 'layers.0.wq': wq, 'layers.0.wk': wk, 'layers.0.wv': wv, 'layers.0.wo': wo, 'readout.weight': weight, 'readout.bias': bias } = model.parameters as Record<string, Tensor>;
    const places = sinusoidal(3, 4);
    const x = tensor(engine.embedding(embedding!, [4, 0, 2]).data.map((value, i) => value + places.data[i]!), [3, 4]);
    const { output, weights } = engine.attention(engine.linear(x, wq!), engine.linear(x, wk!), engine.linear(x, wv!), { numHeads: 2, weights: 'heads' });
    const mixed = engine.linear(output, wo!);
    const logits = engine.linear(tensor(mixed.data.map((value, i) => value + x.data[i]!), [3, 4]), weight!, bias!);
    const close = (made: Tensor, expected: Tensor, what: string) => made.data.forEach((value, i) =>
      // A few roundings apart: the model may add in another order.
      assert.ok(Math.abs(value - expected.data[i]!) < 1e-5, `${what}[${i}] is ${value}, expected ${expected.data[i]}`));
    close(model.forward([4, 0, 2]).logits, logits, 'logits');
    close(model.weights([4, 0, 2])[0]!, weights, 'weights');
    const { loss } = engine.crossEntropy(logits, [1, 2, 3]);
    assert.ok(Math.abs(model.evaluate([4, 0, 2], [1, 2, 3]).loss - loss) < 1e-5);
  });

  test('with a cell are made of what the engine has', () => {
    for (const mixer of ['rnn', 'lstm', 'gru'] as const) {
      using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer, readout: 'last' });
      const { embedding, 'layers.0.wx': wx, 'layers.0.wh': wh, 'layers.0.bx': bx, 'layers.0.bh': bh, 'readout.weight': weight, 'readout.bias': bias } = model.parameters as Record<string, Tensor>;
      const { h } = engine[mixer](engine.embedding(embedding!, [4, 0, 2]), { wx: wx!, wh: wh!, bx, bh });
      const logits = engine.linear([[...h.data]], weight!, bias!);
      model.forward([4, 0, 2]).logits.data.forEach((value, i) => assert.ok(Math.abs(value - logits.data[i]!) < 1e-5, `${mixer}: logit ${i} is ${value}, expected ${logits.data[i]}`));
    }
  });

  test('say how many answers were right, of those that were asked', () => {
    using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'attention', readout: 'every' });
    const tokens = [4, 0, 2, 2];
    const { logits } = model.forward(tokens);
    const best = Array.from({ length: 4 }, (_, row) => [0, 1, 2, 3, 4].reduce((a, b) => (logits.at(row, b) > logits.at(row, a) ? b : a)));
    assert.equal(model.evaluate(tokens, best).accuracy, 1);
    assert.equal(model.evaluate(tokens, [best[0]!, (best[1]! + 1) % 5, -1, -1]).accuracy, 0.5);
    assert.deepEqual(model.evaluate(tokens, [-1, -1, -1, -1]), { loss: 0, accuracy: 0 });
    assert.deepEqual(model.evaluate(tokens, [best[0]!, 1, 2, 3], { lengths: 1 }), model.evaluate(tokens, [best[0]!, -1, -1, -1], { lengths: 1 }));
    assert.deepEqual(model.evaluate([[]], [[]]), { loss: 0, accuracy: 0 });
  });

  test('point with the weights of the row that is read, the mean over the heads', () => {
    using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'attention', readout: 'pointer', numHeads: 2 });
    const tokens = [4, 0, 2];
    for (const at of [0, 1, 2]) {
      const { weights } = model.forward(tokens, { at });
      const [all] = model.weights(tokens);
      weights.data.forEach((weight, j) => assert.ok(Math.abs(weight - (all!.at(0, at, j) + all!.at(1, at, j)) / 2) < 1e-6));
      const { loss } = model.evaluate(tokens, 1, { at });
      assert.ok(Math.abs(loss + Math.log(weights.at(1))) < 1e-5, `the loss is ${loss}, expected ${-Math.log(weights.at(1))}`);
    }
    assert.deepEqual(model.forward(tokens), model.forward(tokens, { at: 2 }));
  });

  test('do not look at tokens beyond the lengths', () => {
    for (const { name, options, tokens, targets, given } of sequenceCases.filter(({ given: { lengths } }) => lengths !== undefined)) {
      using model = engine.sequenceModel(options);
      const others = tensor(tokens.data.map((token, i) => (i % 5 < (given.lengths as number[])[Math.floor(i / 5)]! ? token : (token + 1) % options.vocab)), tokens.shape);
      assert.notDeepEqual(others, tokens);
      assert.deepEqual(answersOf(model, { tokens: others, given }), answersOf(model, { tokens, given }), name);
      assert.deepEqual(model.gradients(others, targets, given), model.gradients(tokens, targets, given), name);
      model.inputGradients(tokens, targets, given).data.forEach((norm, i) => {
        if (i % 5 >= (given.lengths as number[])[Math.floor(i / 5)]!) assert.equal(norm, 0, `${name}: token ${i} is beyond its length`);
      });
    }
  });
});

describe(`gradients of models of sequences, ${variant}`, () => {
  for (const { name, options, tokens, targets, given } of sequenceCases) {
    test(`are the slopes of the loss: ${name}`, () => {
      using model = engine.sequenceModel(options);
      const start = model.parameters;
      const { loss, accuracy, gradients } = model.gradients(tokens, targets, given);
      assert.deepEqual({ loss, accuracy }, model.evaluate(tokens, targets, given));
      assert.deepEqual(Object.keys(gradients), Object.keys(start));
      const step = 2 ** -6;
      for (const [parameter, { data, shape }] of Object.entries(gradients)) {
        assert.deepEqual(shape, start[parameter]!.shape);
        const largest = data.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
        for (let i = 0; i < data.length; i += Math.ceil(data.length / 12)) {
          const lossAt = (by: number) => {
            const moved = tensor(start[parameter]!.data.slice(), shape);
            moved.data[i]! += by;
            model.load({ ...start, [parameter]: moved });
            return model.evaluate(tokens, targets, given).loss;
          };
          const slope = (lossAt(step) - lossAt(-step)) / (2 * step);
          // A loss of a few units has float32's roundings, some 1e-6, which the division by the step makes 1e-4; the
          // slope of a curve over such a step is off by a part of it.
          const allowed = 2e-4 + 0.01 * largest;
          assert.ok(Math.abs(slope - data[i]!) <= allowed, `${parameter}[${i}] is ${data[i]}, expected ${slope}, largest ${largest}`);
        }
      }
    });
  }

  test('by the inputs are those of the embedding, where each token comes once and has no position', () => {
    for (const mixer of ['attention', 'rnn', 'lstm', 'gru'] as const) {
      using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer, readout: 'last', positions: 'none', layers: 2 });
      const tokens = [3, 1, 4, 0];
      const { embedding } = model.gradients(tokens, 2).gradients;
      const norms = model.inputGradients(tokens, 2);
      tokens.forEach((token, i) => {
        const norm = Math.hypot(...embedding!.data.subarray(token * 4, token * 4 + 4));
        assert.ok(norm > 0 && Math.abs(norms.at(i) - norm) <= 1e-6 * norm, `${mixer}: ${norms.at(i)} at position ${i}, expected ${norm}`);
      });
    }
  });
});
