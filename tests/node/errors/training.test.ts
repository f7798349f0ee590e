// What crossEntropy and adam refuse.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Adam, type Engine, type ResidentTensor, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongBuffer, wrongNames, wrongNumber, wrongPlace, wrongTensor } from '../support/wrong.js';

let engine: Engine;
let optimizer: Adam;
let resident: ResidentTensor;
before(async () => {
  engine = await loadVariant();
  optimizer = engine.adam();
  resident = engine.resident([7]);
  optimizer.step([tensor([[0, 0, 0], [0, 0, 0]]), tensor([0])], [[[1, 1, 1], [1, 1, 1]], [1]]);
});
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const logits = tensor([[1, 2, 3], [4, 5, 6]]);
const parameters = [tensor([[1, 2, 3], [4, 5, 6]]), tensor([7])] as const;
const gradients = [zeros(2, 3), zeros(1)] as const;
// As JavaScript would call them, without TypeScript to help.
const loss = (...args: unknown[]) => (engine.crossEntropy as (...args: unknown[]) => unknown).call(engine, ...args);
const make = (options: unknown) => (engine.adam as (...args: unknown[]) => unknown).call(engine, options);
const step = (...args: unknown[]) => (optimizer.step as (...args: unknown[]) => unknown).call(optimizer, ...args);
const misfit = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'SHAPE_MISMATCH', message];
const invalid = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'INVALID_ARGUMENT', message];

refuses('crossEntropy refuses', {
  engine: () => engine,
  untouched: () => [logits.data],
  next: () => assert.deepEqual(engine.crossEntropy([[0, 0]], [1]).dLogits.toArray(), [[0.5, -0.5]], 'the next call was wrong'),
  tables: {
    logits: [
      ...wrongTensor('logits', (from) => loss(from, [0, 1]), 'rank at least 1', [[]]),
      invalid('no class', () => loss(zeros(2, 0), [0, 0]), /^targets\[0\] is 0, expected a whole number from 0 to -1/),
    ],
    targets: [
      ...wrongTensor('targets', (targets) => loss(logits, targets), '', []).filter(([name]) => name !== 'a typed array'),
      ...[[0.5, '0.5'], [-1, '-1'], [3, '3'], [NaN, 'NaN'], [2 ** 32, '4294967296']].map(([target, came]) =>
        invalid(`${came}`, () => loss(logits, [0, target]), new RegExp(`^targets\\[1\\] is ${came}, expected a whole number from 0 to 2`))),
      wrongBuffer('targets', (targets) => loss(logits, targets)),
      misfit('too few', () => loss(logits, [0]), /^targets has shape \(1\), expected \(2\): logits' axes but the last, or a list of a class for each row/),
      misfit('too many', () => loss(logits, Int32Array.of(0, 0, 0)), /^targets has shape \(3\), expected \(2\)/),
      misfit('probabilities', () => loss(logits, [[0, 1, 0], [0, 1, 0]]), /^targets has shape \(2, 3\), expected \(2\)/),
      misfit('other axes', () => loss(zeros(2, 3, 4), [[0, 0], [0, 0], [0, 0]]), /^targets has shape \(3, 2\), expected \(2, 3\)/),
    ],
  },
});

const wrongBetas: Refusal[] = [
  ...[null, 0.9, 'ab', {}, new Float32Array(2)].map((betas) => invalid(`${String(betas)}`, () => make({ betas }), /^betas is .+, expected two numbers\.$/)),
  invalid('one', () => make({ betas: [0.9] }), /^betas is an array of 1, expected two numbers/),
  ...[-0.1, 1, NaN, Infinity, '0.9', null, 5n].map((beta) =>
    invalid(`an entry of ${String(beta)}`, () => make({ betas: [0.9, beta] }), /^betas\[1\] is .+, expected a number from 0, below 1\.$/)),
];

refuses('adam refuses', {
  engine: () => engine,
  untouched: () => [...parameters, ...gradients].map(({ data }) => data),
  next: () => {
    using next = engine.adam({ lr: 0.5 });
    assert.deepEqual(next.step([tensor([1])], [[2]])[0].data, Float32Array.of(0.5), 'the next optimizer was wrong');
  },
  tables: {
    options: wrongNames('adam: options', make, 'lr, betas, eps, weightDecay, clip'),
    lr: wrongNumber('lr', (lr) => make({ lr }), 0),
    betas: wrongBetas,
    eps: wrongNumber('eps', (eps) => make({ eps }), 0),
    weightDecay: wrongNumber('weightDecay', (weightDecay) => make({ weightDecay }), 0),
    clip: [0, -1, NaN, null, '1', {}, [1], 5n].map((clip) => invalid(`${String(clip)}`, () => make({ clip }), /^clip is .+, expected a number above 0\.$/)),
    parameters: [
      ...[undefined, null, 5, 'ab', {}, parameters[0]].map((given) => invalid(`${String(given)}`, () => step(given, gradients), /^parameters is .+, expected an array of tensors\.$/)),
      ...wrongPlace('parameters[1]', (given) => step([parameters[0], given], gradients)),
      invalid('nested arrays', () => step([parameters[0], [7]], gradients), /^parameters\[1\] holds nested arrays, expected a tensor with a Float32Array/),
      invalid('a resident tensor', () => step([parameters[0], resident], gradients), /^parameters\[1\] is an object of class ResidentTensor, expected a tensor with a Float32Array/),
      invalid('doubles', () => step([parameters[0], { data: Float64Array.of(7), shape: [1] }], gradients), /^parameters\[1\] holds an object of class Float64Array, expected a tensor with a Float32Array/),
      misfit('too few', () => step([parameters[0]], gradients), /^parameters has 1 tensors, expected 2/),
      misfit('another shape than in the first step', () => step([parameters[0], zeros(2)], gradients), /^parameters\[1\] has shape \(2\), expected \(1\): as in the first step/),
      invalid('one twice', () => make2([parameters[1], parameters[1]], [[1], [1]]), /^parameters\[1\] shares memory with parameters\[0\], expected each to have its own/),
      invalid('a part of another', () => make2([parameters[0], { data: parameters[0].data.subarray(5), shape: [1] }], [zeros(2, 3), [1]]), /^parameters\[1\] shares memory with parameters\[0\]/),
    ],
    gradients: [
      ...[undefined, null, 5, 'ab', {}, gradients[0]].map((given) => invalid(`${String(given)}`, () => step(parameters, given), /^gradients is .+, expected an array of tensors\.$/)),
      ...wrongTensor('gradients[1]', (given) => step(parameters, [gradients[0], given]), 'rank at least 1', [[]]),
      misfit('too few', () => step(parameters, [gradients[0]]), /^gradients has 1 tensors, expected 2, one for each parameter/),
      misfit('another shape', () => step(parameters, [zeros(3, 2), gradients[1]]), /^gradients\[0\] has shape \(3, 2\), expected \(2, 3\): the shape of parameters\[0\]/),
    ],
    numbers: [
      ...[NaN, Infinity, -Infinity].map((wrong) => invalid(`a gradient of ${wrong}`, () => step(parameters, [[[0, 0, 0], [0, 0, wrong]], [NaN]]), new RegExp(`^gradients\\[0\\]\\[1\\]\\[2\\] is ${wrong} in step 2, expected a finite number\\.$`))),
      invalid('a gradient in another tensor', () => step(parameters, [gradients[0], [NaN]]), /^gradients\[1\]\[0\] is NaN in step 2, expected a finite number/),
      invalid('a parameter', () => step([tensor([[0, NaN, 0], [0, 0, 0]]), parameters[1]], gradients), /^parameters\[0\]\[0\]\[1\] is NaN in step 2, expected a finite number/),
      invalid('a gradient whose square is infinite', () => step(parameters, [gradients[0], [1e20]]), /^gradients\[1\]\[0\] is 100000002004087730000 in step 2, expected one below 2\^63, whose square is finite; clip shrinks gradients\.$/),
    ],
  },
});

/** Of an optimizer that has made no step. */
function make2(...args: unknown[]): unknown {
  using fresh = engine.adam();
  return (fresh.step as (...args: unknown[]) => unknown).call(fresh, ...args);
}

describe(`adam and the engine's memory, ${variant}`, () => {
  test('a first step that fails leaves nothing behind', async () => {
    const other = await loadVariant({ maxMemory: 2 ** 24 });
    const foreign = other.resident([1, 1]);
    using fresh = engine.adam({ lr: 0.5 });
    for (const gradient of [[NaN, 1], foreign]) await errorOf(() => fresh.step([tensor([1, 2])], [gradient]));
    const parameter = tensor([1]);
    fresh.step([parameter], [[1]]);
    assert.deepEqual([...parameter.data], [0.5]);
    assert.match((await errorOf(() => fresh.step([tensor([1, 2])], [[1, 1]]))).message, /^parameters\[0\] has shape \(2\), expected \(1\): as in the first step/);
    const { used } = engine.info().memory;
    for (let failed = 0; failed < 100; failed++) await errorOf(() => engine.adam().step([zeros(10000)], [Array(10000).fill(NaN)]));
    assert.ok(engine.info().memory.used <= used + 2 ** 20, 'failing first steps keep memory');
    other.dispose();
  });

  test('more than there is of it is refused, and the engine works on', async () => {
    const small = await loadVariant({ maxMemory: 2 ** 24 });
    const large = zeros(1200, 1200);
    const error = await errorOf(() => small.adam().step([large], [large]));
    assert.equal(error.code, 'OUT_OF_MEMORY');
    assert.match(error.message, /^adam\.step needs \d+ bytes, but the engine may use at most/);
    const parameter = tensor([1]);
    small.adam({ lr: 0.5 }).step([parameter], [[1]]);
    assert.deepEqual([...parameter.data], [0.5]);
    small.dispose();
  });
});
