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

  test('do not look at tokens of a context beyond its lengths', () => {
    for (const { name, options, tokens, targets, given } of sequenceCases.filter(({ given: { contextLengths } }) => contextLengths !== undefined)) {
      using model = engine.sequenceModel(options);
      const { data, shape } = given.context as Tensor;
      const isValid = (i: number) => i % shape[1]! < (given.contextLengths as number[])[Math.floor(i / shape[1]!)]!;
      const changed = (which: (i: number) => boolean) => ({ ...given, context: tensor(data.map((token, i) => (which(i) ? (token + 1) % options.vocab : token)), shape) });
      const beyond = changed((i) => !isValid(i));
      assert.deepEqual(answersOf(model, { tokens, given: beyond }), answersOf(model, { tokens, given }), name);
      assert.deepEqual(model.gradients(tokens, targets, beyond), model.gradients(tokens, targets, given), name);
      assert.notDeepEqual(answersOf(model, { tokens, given: changed(isValid) }), answersOf(model, { tokens, given }), name);
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
    const options: Omit<Partial<SequenceModelOptions>, 'readout'>[] = [
      {}, { positions: 'none' }, { positions: 'rotary' }, { positions: 'learned', maxLength: 4 }, { causal: true }, { residual: false },
      { ties: 'query-key' }, { ties: 'value-input' }, { ties: 'all', positions: 'rotary', causal: true },
    ];
    for (const given of options) {
      const { positions = 'sinusoidal', residual = true, causal = false } = given;
      using model = engine.sequenceModel({ vocab: 5, embedDim: 4, mixer: 'attention', readout: 'every', numHeads: 2, ...given });
      const { parameters } = model;
      const tokens = [4, 0, 2];
      const added = positions === 'sinusoidal' ? sinusoidal(3, 4).data : positions === 'learned' ? parameters['positions']!.data : new Float32Array(12);
      const x = tensor(engine.embedding(parameters['embedding']!, tokens).data.map((value, i) => value + added[i]!), [3, 4]);
      const projected = (...names: string[]) => {
        const weight = names.map((name) => parameters[`layers.0.${name}`]).find((found) => found);
        const rows = weight ? engine.linear(x, weight) : x;
        // Heads of two dimensions lie side by side, and turn each by itself.
        const heads = tensor(Float32Array.from({ length: 12 }, (_, i) => rows.at(Math.floor(i / 2) % 3, 2 * Math.floor(i / 6) + (i % 2))), [2, 3, 2]);
        return positions === 'rotary' && names[0] !== 'wv' ? engine.rotary(heads, { pairing: 'halves' }) : heads;
      };
      const ties = given.ties ?? 'none';
      const { output, weights } = engine.attention(projected('wq'), projected('wk', ...(ties === 'query-key' ? ['wq'] : [])), projected('wv'), { causal, weights: 'heads' });
      const merged = tensor(Float32Array.from({ length: 12 }, (_, i) => output.at(Math.floor((i % 4) / 2), Math.floor(i / 4), i % 2)), [3, 4]);
      const mixed = engine.linear(merged, parameters['layers.0.wo']!);
      const rows = tensor(mixed.data.map((value, i) => value + (residual ? x.data[i]! : 0)), [3, 4]);
      const logits = engine.linear(rows, parameters['readout.weight']!, parameters['readout.bias']!);
      const close = (made: Tensor, expected: Tensor, what: string) => made.data.forEach((value, i) =>
        // A few roundings apart: the model may add in another order.
        assert.ok(Math.abs(value - expected.data[i]!) < 1e-5, `${JSON.stringify(given)}: ${what}[${i}] is ${value}, expected ${expected.data[i]}`));
      close(model.forward(tokens).logits, logits, 'logits');
      close(model.weights(tokens)[0]!, weights, 'weights');
      assert.ok(Math.abs(model.evaluate(tokens, [1, 2, 3]).loss - engine.crossEntropy(logits, [1, 2, 3]).loss) < 1e-5);
    }
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

  test('with a cell start as the options say', () => {
    const started = (options: Pick<SequenceModelOptions, 'mixer'> & Partial<SequenceModelOptions>) => {
      using model = engine.sequenceModel({ vocab: 2, embedDim: 4, readout: 'last', ...options });
      const { 'layers.0.wh': wh, 'layers.0.bx': bx, 'layers.0.bh': bh } = model.parameters as Record<string, Tensor>;
      const gate = (bias: Tensor, index: number) => bias.data.slice(4 * index, 4 * index + 4);
      return { wh: wh!, bx: (index: number) => gate(bx!, index), bh: (index: number) => gate(bh!, index) };
    };
    for (const [mixer, gates] of [['rnn', 1], ['lstm', 4], ['gru', 3]] as const) {
      const { wh } = started({ mixer });
      assert.ok(wh.data.every((value) => Math.abs(value) <= 0.5 && value !== 0), 'uniform numbers of PyTorch are within 1 / sqrt(hidden)');
      const [identity, orthogonal] = [started({ mixer, recurrentStart: 'identity' }).wh, started({ mixer, recurrentStart: 'orthogonal' }).wh];
      for (let gate = 0; gate < gates; gate++) {
        for (const [i, j] of [[0, 0], [0, 1], [2, 2], [3, 1]] as const) {
          assert.equal(identity.at(i, 4 * gate + j), Number(i === j));
          const product = [0, 1, 2, 3].reduce((sum, k) => sum + orthogonal.at(i, 4 * gate + k) * orthogonal.at(j, 4 * gate + k), 0);
          assert.ok(Math.abs(product - Number(i === j)) < 1e-6, `rows ${i} and ${j} of gate ${gate} have the product ${product}`);
        }
      }
    }
    /** Of i f g o and r z n. */
    const [forget, update] = [1, 1];
    for (const [given, expected] of [[undefined, 1], [0, 0], [2.5, 2.5]] as const) {
      const lstm = started({ mixer: 'lstm', forgetBias: given });
      assert.deepEqual([[...lstm.bx(forget)], [...lstm.bh(forget)]], [Array(4).fill(expected), [0, 0, 0, 0]]);
    }
    const chrono = { forgetBias: { chrono: 21 } };
    const [lstm, gru] = [started({ mixer: 'lstm', ...chrono }), started({ mixer: 'gru', ...chrono })];
    for (const kept of [lstm.bx(forget), gru.bx(update)]) {
      assert.ok(kept.every((value) => value >= 0 && value <= Math.log(20)) && new Set(kept).size === 4, `${kept} are not the logarithms of 1 to 20`);
    }
    assert.deepEqual(lstm.bx(0), lstm.bx(forget).map((value) => -value));
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
