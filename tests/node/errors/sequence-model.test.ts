// What models of sequences refuse: options, tokens and what goes with them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, type SequenceModel, type SequenceModelOptions, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { literal, wrongChoice, wrongFlag, wrongNames, wrongNumber, wrongOffset, wrongTensor, wrongWhole, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
const models: Record<string, SequenceModel> = {};
before(async () => {
  engine = await loadVariant();
  for (const readout of ['last', 'every', 'pointer'] as const) models[readout] = engine.sequenceModel({ ...base, readout, ...(readout === 'pointer' ? {} : { classes: 4 }) });
  models['learned'] = engine.sequenceModel({ ...base, positions: 'learned', maxLength: 3 });
  models['causal'] = engine.sequenceModel({ ...base, causal: true });
  models['causalPointer'] = engine.sequenceModel({ ...base, causal: true, readout: 'pointer' });
  models['lstm'] = engine.sequenceModel({ ...base, mixer: 'lstm' });
});
after(() => engine.dispose());

const base = { vocab: 5, embedDim: 4, mixer: 'attention', readout: 'last' } as const satisfies SequenceModelOptions;
const tokens = tensor([[1, 2, 3], [4, 0, 1]]);
// As JavaScript would call them, without TypeScript to help. A model that is made is given back.
const make = (options: unknown) => (engine.sequenceModel as (...args: unknown[]) => SequenceModel).call(engine, options).dispose();
const made = (changed: object) => make({ ...base, ...changed });
const call = (model: string, method: string, ...args: unknown[]) => (models[model] as unknown as Record<string, (...args: unknown[]) => unknown>)[method]!(...args);
const forward = (options: unknown, model = 'last') => call(model, 'forward', tokens, options);
const targets = (given: unknown, model = 'last', options = {}) => call(model, 'evaluate', tokens, given, options);
const invalid = (name: string, wrong: () => unknown, sentence: string): Refusal => [name, wrong, 'INVALID_ARGUMENT', literal(sentence)];
const misfit = (name: string, wrong: () => unknown, sentence: string): Refusal => [name, wrong, 'SHAPE_MISMATCH', literal(sentence)];

const names = 'vocab, embedDim, mixer, layers, numHeads, positions, readout, classes, ties, causal, residual, maxLength, recurrentStart, forgetBias, seed, optimizer, check';
const words = (...all: string[]) => all.map((word) => `'${word}'`).join(' or ');
const MOST = 2 ** 24;

/** An option that only some mixers have. */
const only = (option: string, value: unknown, mixers: readonly string[], sentence: string): Refusal[] =>
  mixers.map((mixer) => invalid(`of ${mixer}`, () => made({ mixer, [option]: value }), sentence.replace('MIXER', mixer)));
const CELLS = ['rnn', 'lstm', 'gru'];

const next = () => {
  const { parameters } = models['last']!;
  assert.ok(Object.values(parameters).every(({ data }) => data.every(Number.isFinite)));
  assert.deepEqual(models['last']!.forward(tokens).logits!.shape, [2, 4], 'the next call was wrong');
};

refuses('sequenceModel refuses', {
  engine: () => engine,
  untouched: () => [tokens.data],
  next,
  tables: {
    options: wrongNames('sequenceModel: options', make, names, true),
    vocab: wrongWhole('vocab', (vocab) => made({ vocab }), 1, MOST, true),
    embedDim: [
      ...wrongWhole('embedDim', (embedDim) => made({ embedDim }), 1, MOST, true),
      invalid('no multiple of the heads', () => made({ numHeads: 3 }), 'embedDim is 4 with 3 heads, expected a multiple of numHeads.'),
      invalid('an odd head that turns', () => made({ embedDim: 6, numHeads: 2, positions: 'rotary' }), "embedDim is 6 with 2 heads, expected an even number of dimensions a head, which positions 'rotary' turns in pairs."),
    ],
    mixer: wrongChoice('mixer', (mixer) => made({ mixer }), words('attention', ...CELLS), true),
    layers: wrongWhole('layers', (layers) => made({ layers }), 1, 1024),
    numHeads: [
      ...wrongWhole('numHeads', (numHeads) => made({ numHeads }), 1, MOST),
      ...only('numHeads', 2, CELLS, "numHeads is 2 with mixer 'MIXER', expected 1; other values are for attention."),
    ],
    positions: [
      ...wrongChoice('positions', (positions) => made({ positions }), words('none', 'sinusoidal', 'learned', 'rotary')),
      ...only('positions', 'rotary', CELLS, "positions is \"rotary\" with mixer 'MIXER', expected 'none' or 'sinusoidal' or 'learned'; other values are for attention."),
    ],
    readout: [
      ...wrongChoice('readout', (readout) => made({ readout }), words('last', 'every', 'pointer'), true),
      ...only('readout', 'pointer', CELLS, "readout is \"pointer\" with mixer 'MIXER', expected 'last' or 'every'; other values are for attention."),
    ],
    classes: [
      ...wrongWhole('classes', (classes) => made({ classes }), 1, MOST),
      invalid('of a pointer', () => made({ readout: 'pointer', classes: 3 }), "classes is 3 with readout 'pointer', expected none: its answers are positions."),
    ],
    ties: [
      ...wrongChoice('ties', (ties) => made({ ties }), words('none', 'query-key', 'value-input', 'all')),
      ...only('ties', 'all', CELLS, "ties is \"all\" with mixer 'MIXER', expected 'none'; other values are for attention."),
    ],
    causal: [
      ...wrongFlag('causal', (causal) => made({ causal })),
      ...only('causal', true, CELLS, "causal is true with mixer 'MIXER', expected false; other values are for attention."),
    ],
    residual: wrongFlag('residual', (residual) => made({ residual })),
    maxLength: [
      ...wrongWhole('maxLength', (maxLength) => made({ positions: 'learned', maxLength }), 1, MOST, true),
      invalid('without a table', () => made({ maxLength: 3 }), "maxLength is 3 with positions 'sinusoidal', expected none: only 'learned' has a table."),
    ],
    recurrentStart: [
      ...wrongChoice('recurrentStart', (recurrentStart) => made({ mixer: 'gru', recurrentStart }), words('uniform', 'identity', 'orthogonal')),
      ...only('recurrentStart', 'identity', ['attention'], "recurrentStart is \"identity\" with mixer 'MIXER', expected 'uniform'; other values are for rnn and lstm and gru."),
    ],
    forgetBias: [
      ...wrongNumber('forgetBias', (forgetBias) => made({ mixer: 'lstm', forgetBias })).filter(([name]) => !name.startsWith('an object') && !/^(a date|an? array|a promise)$/.test(name)),
      ...wrongNames('forgetBias', (forgetBias) => made({ mixer: 'lstm', forgetBias }), 'chrono').filter(([name]) => /name|date|array|map|entries/.test(name)),
      ...wrongWhole('forgetBias.chrono', (chrono) => made({ mixer: 'gru', forgetBias: { chrono } }), 3, 2 ** 31 - 1, true),
      invalid('a number of gru', () => made({ mixer: 'gru', forgetBias: 1 }), "forgetBias is 1 with mixer 'gru', expected { chrono }; a number is for lstm."),
      ...only('forgetBias', 1, ['attention', 'rnn'], "forgetBias is 1 with mixer 'MIXER', expected none; other values are for lstm and gru."),
    ],
    seed: wrongWhole('seed', (seed) => made({ seed }), 0),
    optimizer: [
      ...wrongNames('optimizer', (optimizer) => made({ optimizer }), 'lr, betas, eps, weightDecay, clip'),
      ...wrongNumber('lr', (lr) => made({ optimizer: { lr } }), 0),
      invalid('clip', () => made({ optimizer: { clip: 0 } }), 'clip is 0, expected a number above 0.'),
      invalid('betas', () => made({ optimizer: { betas: [1, 0] } }), 'betas[0] is 1, expected a number from 0, below 1.'),
    ],
    check: wrongFlag('check', (check) => made({ check })),
  },
});

const tokenTables = (method: string, ...args: unknown[]): Refusal[] => [
  ...wrongTensor('tokens', (given) => call('last', method, given, ...args), 'rank 1 or 2', [[], [1, 2, 3]]).filter(([name]) => name !== 'a typed array' && name !== 'rank 0'),
  ...[[-1, '-1'], [5, '5'], [1.5, '1.5'], [NaN, 'NaN'], [2 ** 32, '4294967296']].map(([token, came]) =>
    invalid(`a token of ${came}`, () => call('last', method, [[0, 1], [2, token]], ...args), `tokens[1][1] is ${came}, expected a whole number from 0 to 4.`)),
  misfit('nothing to read', () => call('last', method, [[], []], ...args), 'tokens has shape (2, 0), expected a position to read in each sequence.'),
  misfit('longer than the table', () => call('learned', method, [0, 1, 2, 3], ...args), "tokens has length 4, expected at most 3, the model's maxLength."),
];

refuses('a model refuses tokens', {
  engine: () => engine,
  untouched: () => [tokens.data],
  next,
  tables: {
    forward: tokenTables('forward'),
    weights: tokenTables('weights'),
    evaluate: tokenTables('evaluate', [0, 0]),
    gradients: tokenTables('gradients', [0, 0]),
    inputGradients: tokenTables('inputGradients', [0, 0]),
    trainStep: tokenTables('trainStep', [0, 0]),
  },
});

const perSequence = (name: string, least: number, most: number, meaning: string, options: object = {}): Refusal[] =>
  wrongOffset(name, (value) => forward({ ...options, [name]: value }), least, most, { count: 2, meaning });

refuses('a model refuses what goes with tokens', {
  engine: () => engine,
  untouched: () => [tokens.data],
  next,
  tables: {
    options: [
      ...['forward', 'weights'].flatMap((method) => wrongNames(`${method}: options`, (options) => call('last', method, tokens, options), 'lengths, at, context, contextLengths')),
      ...['evaluate', 'gradients', 'inputGradients'].flatMap((method) => wrongNames(`${method}: options`, (options) => call('last', method, tokens, [0, 0], options), 'lengths, at, context, contextLengths')),
      ...wrongNames('trainStep: options', (options) => call('last', 'trainStep', tokens, [0, 0], options), 'lengths, at, context, contextLengths, lr'),
    ],
    lengths: perSequence('lengths', 1, 3, 'how many tokens of each sequence are valid'),
    'lengths of a model that reads all': [invalid('-1', () => forward({ lengths: [-1, 0] }, 'every'), 'lengths[0] is -1, expected a whole number from 0 to 3.')],
    at: [
      ...perSequence('at', 0, 2, 'a position of each sequence'),
      invalid('beyond a length', () => forward({ at: [1, 2], lengths: [3, 2] }), "at[1] is 2, expected a whole number from 0 to 1: below the sequence's length."),
      invalid('of a model that reads all', () => forward({ at: 1 }, 'every'), "at is 1 with readout 'every', expected none: it reads all positions."),
    ],
    context: [
      ...wrongTensor('context', (context) => forward({ context }), 'rank 1 or 2', [[1, 2, 3]], false).filter(([name]) => name !== 'a typed array'),
      invalid('a token', () => forward({ context: [[0], [5]] }), 'context[1][0] is 5, expected a whole number from 0 to 4.'),
      misfit('without the batch', () => forward({ context: [0, 1] }), "context has shape (2), expected (2, any): the tokens' batch, and a length of its own."),
      misfit('of another batch', () => forward({ context: [[0], [1], [2]] }), 'context has shape (3, 1), expected (2, any)'),
      invalid('none', () => forward({ context: [[], []] }), 'context has no tokens, expected at least one a sequence.'),
      misfit('longer than the table', () => forward({ context: [[0, 1, 2, 3], [0, 1, 2, 3]] }, 'learned'), "context has length 4, expected at most 3, the model's maxLength."),
      invalid('of a causal model', () => forward({ context: tokens }, 'causal'), 'context is given to a model that is causal, expected none.'),
      invalid('of a cell', () => forward({ context: tokens }, 'lstm'), "context is given to a model with mixer 'lstm', expected none."),
    ],
    contextLengths: [
      ...perSequence('contextLengths', 0, 4, 'how many tokens of each context are valid', { context: [[0, 1, 2, 3], [0, 1, 2, 3]] }),
      invalid('without a context', () => forward({ contextLengths: 1 }), 'contextLengths is given without context, expected both or none.'),
    ],
    lr: wrongNumber('lr', (lr) => call('last', 'trainStep', tokens, [0, 0], { lr }), 0),
    weights: [['of a cell', () => call('lstm', 'weights', tokens), 'UNSUPPORTED', literal("weights: this model's mixer is 'lstm', and only 'attention' has weights.")]],
  },
});

const one = [1, 2, 3];
refuses('a model refuses targets', {
  engine: () => engine,
  untouched: () => [tokens.data],
  next,
  tables: {
    'a class for each sequence': wrongWholeList('targets', (given) => targets(given), 0, 3, { count: 2, meaning: 'a class for each sequence' }),
    'one class': wrongOffset('targets', (given) => call('last', 'evaluate', one, given), 0, 3, { count: 1, meaning: 'a class for each sequence' }),
    'a position for each sequence': [
      ...wrongWholeList('targets', (given) => targets(given, 'pointer'), 0, 2, { count: 2, meaning: 'a position for each sequence' }),
      invalid('beyond a length', () => targets([0, 2], 'pointer', { lengths: [3, 2] }), 'targets[1] is 2, expected a whole number from 0 to 1.'),
      invalid('beyond the length', () => call('pointer', 'evaluate', one, 1, { lengths: 1 }), 'targets is 1, expected a whole number from 0 to 0.'),
      invalid('behind the row that a causal model reads', () => targets([0, 2], 'causalPointer', { at: [0, 1] }), 'targets[1] is 2, expected a whole number from 0 to 1.'),
      invalid('behind it in one sequence', () => call('causalPointer', 'trainStep', one, 1, { at: 0 }), 'targets is 1, expected a whole number from 0 to 0.'),
      invalid('beyond a context', () => targets([0, 1], 'pointer', { context: [[0], [1]] }), 'targets[1] is 1, expected a whole number from 0 to 0.'),
      invalid("beyond a context's length", () => targets([0, 1], 'pointer', { context: [[0, 1], [0, 1]], contextLengths: [2, 1] }), 'targets[1] is 1, expected a whole number from 0 to 0.'),
    ],
    'a class for each token': [
      ...wrongTensor('targets', (given) => targets(given, 'every'), '', []).filter(([name]) => name !== 'a typed array'),
      invalid('too large', () => targets([[0, 1, 2], [0, 1, 4]], 'every'), 'targets[1][2] is 4, expected a whole number from -1 to 3.'),
      invalid('below -1', () => targets([[0, -2, 2], [0, 1, 3]], 'every'), 'targets[0][1] is -2, expected a whole number from -1 to 3.'),
      misfit('one for each sequence', () => targets([0, 1], 'every'), "targets has shape (2), expected (2, 3): the tokens' shape, a class for each token or -1 for none."),
    ],
  },
});

describe(`steps that are refused, ${variant}`, () => {
  const fresh = (options: Partial<SequenceModelOptions> = {}) => engine.sequenceModel({ ...base, mixer: 'gru', optimizer: { lr: 0.1 }, ...options });
  const bits = (model: SequenceModel) => Object.values(model.parameters).flatMap(({ data }) => [...data]);
  const spoil = (model: SequenceModel, name: string, element: number, value: number) => {
    const { parameters } = model;
    parameters[name]!.data[element] = value;
    model.load(parameters);
  };

  test('by NaN in a parameter: named with its tensor, element and step, whether checked or not', async () => {
    for (const check of [false, true]) {
      using model = fresh({ check });
      model.trainStep(tokens, [1, 2]);
      model.trainStep(tokens, [1, 2]);
      spoil(model, 'layers.0.wh', 14, NaN);
      const before = bits(model);
      const error = await errorOf(() => model.trainStep(tokens, [1, 2]));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      assert.match(error.message, check
        ? /^trainStep: the parameter layers\.0\.wh holds NaN at step 1, in \[1\]\[2\], expected a finite number; nothing has changed\.$/
        : /^trainStep: the (gradient of|parameter) [\w.]+ holds NaN at step 1, in \[\d+\](\[\d+\])?, expected a finite number; nothing has changed\.$/);
      assert.deepEqual([bits(model), model.steps], [before, 0]);
    }
  });

  test('by a parameter that the loss does not see', async () => {
    // Its token does not come, so that all gradients are finite.
    for (const value of [NaN, Infinity]) {
      using model = fresh();
      spoil(model, 'embedding', 13, value);
      const before = bits(model);
      const error = await errorOf(() => model.trainStep([[1, 2]], [1]));
      assert.equal(error.message, `trainStep: the parameter embedding holds ${value} at step 1, in [3][1], expected a finite number; nothing has changed.`);
      assert.deepEqual([bits(model), model.steps], [before, 0]);
      spoil(model, 'embedding', 13, 0);
      model.trainStep([[1, 2]], [1]);
      assert.equal(model.steps, 1);
    }
  });

  test('by a step that leads beyond float32, where that is checked', async () => {
    const options = { optimizer: { lr: 1e-30, weightDecay: 1e20 } };
    const lr = 3e38;
    using model = fresh({ ...options, check: true });
    model.trainStep(tokens, [1, 2]);
    const before = bits(model);
    const error = await errorOf(() => model.trainStep(tokens, [1, 2], { lr }));
    assert.match(error.message, /^trainStep: the new value of embedding holds -?Infinity at step 2, in \[\d\]\[\d\], expected a finite number; nothing has changed\.$/);
    assert.deepEqual([bits(model), model.steps], [before, 1]);
    // It goes on as if nothing had been.
    using other = fresh({ ...options, check: true });
    for (let step = 0; step < 2; step++) other.trainStep(tokens, [1, 2]);
    model.trainStep(tokens, [1, 2]);
    assert.deepEqual(bits(model), bits(other));
    using unchecked = fresh(options);
    unchecked.trainStep(tokens, [1, 2], { lr });
    assert.ok(bits(unchecked).some((value) => !Number.isFinite(value)), 'the step did not lead beyond float32');
  });

  test('by a gradient whose square is infinite, unless it is clipped', async () => {
    const options: Partial<SequenceModelOptions> = { mixer: 'attention', ties: 'all', residual: true, positions: 'none' };
    const run = (more: Partial<SequenceModelOptions>) => {
      const model = fresh({ ...options, ...more });
      spoil(model, 'readout.weight', 0, 1e21);
      spoil(model, 'embedding', 0, -1);
      return { model, step: () => model.trainStep([[0]], [0]) };
    };
    const { model, step } = run({});
    const error = await errorOf(step);
    assert.match(error.message, /^trainStep: the gradient of [\w.]+ holds -?\d[\d.e+]+ at step 1, in \[\d\](\[\d\])?, expected one below 2\^63, whose square is finite; clip shrinks gradients; nothing has changed\.$/);
    model.dispose();
    const clipped = run({ optimizer: { lr: 0.1, clip: 1 } });
    assert.ok(Number.isFinite(clipped.step().loss));
    clipped.model.dispose();
  });
});

describe(`models and the engine's memory, ${variant}`, () => {
  test('more than there is of it is refused, and the engine works on', async () => {
    const small = await loadVariant({ maxMemory: 2 ** 24 });
    const model = small.sequenceModel(base);
    const sizes = [{ vocab: 2 ** 20 }, { vocab: 2 ** 24, embedDim: 2 ** 24 }, { layers: 1024, embedDim: 2 ** 14, vocab: 1 }];
    for (const size of sizes) {
      const error = await errorOf(() => small.sequenceModel({ ...base, ...size }));
      assert.equal(error.code, 'OUT_OF_MEMORY');
      assert.match(error.message, /^sequenceModel needs \d+ bytes, but the engine may use at most 16777216 bytes/);
    }
    const long = tensor(new Float32Array(2 ** 22), [2 ** 22]);
    for (const method of ['forward', 'weights', 'trainStep', 'evaluate', 'gradients', 'inputGradients'] as const) {
      const error = await errorOf(() => (model[method] as (tokens: unknown, targets?: unknown) => unknown)(long, method === 'forward' || method === 'weights' ? {} : 0));
      assert.equal(error.code, 'OUT_OF_MEMORY');
      assert.match(error.message, new RegExp(`^${method} needs \\d+ bytes for its inputs, outputs and scratch, but the engine may use at most`));
    }
    assert.deepEqual(model.forward([1, 2]).logits.shape, [5]);
    assert.equal(model.steps, 0);
    model.trainStep([1, 2], 1);
    small.dispose();
  });
});
