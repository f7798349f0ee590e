// Steps of Adam: its numbers, its options, and what it leaves alone.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, tensor, type Tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { allowedError, largestError, randomFloats, type Rounding, toDouble, toFloat } from './support/reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b), seed), shape);
const copies = (tensors: readonly Tensor[]) => tensors.map(({ data, shape }) => tensor(data.slice(), shape));
type Settings = { lr: number; betas: [number, number]; eps: number; weightDecay: number; clip: number };

/** Of all tensors in a row, the parameters after the last step. */
function plain(start: Float32Array, gradients: readonly Float32Array[], { lr, betas: [b1, b2], eps, weightDecay, clip }: Settings, round: Rounding) {
  const p = Float64Array.from(start);
  const [mean, square] = [new Float64Array(p.length), new Float64Array(p.length)];
  gradients.forEach((all, step) => {
    const norm = Math.sqrt(all.reduce((sum, g) => sum + g * g, 0));
    const correct = (moment: number, beta: number) => round(moment / (1 - beta ** (step + 1)));
    all.forEach((given, i) => {
      const g = round(given * (norm > clip ? clip / norm : 1));
      mean[i] = round(round(b1 * mean[i]!) + round((1 - b1) * g));
      square[i] = round(round(b2 * square[i]!) + round((1 - b2) * round(g * g)));
      p[i] = round(p[i]! - round(lr * weightDecay * p[i]!));
      p[i] = round(p[i]! - round(round(lr * correct(mean[i]!, b1)) / round(round(Math.sqrt(correct(square[i]!, b2))) + eps)));
    });
  });
  return p;
}

const joined = (tensors: readonly Tensor[]) => Float32Array.from(tensors.flatMap(({ data }) => [...data]));

describe(`adam, ${variant}`, () => {
  const shapes = [[3, 5], [4], [1], [2, 1, 33], [0]];
  const start = shapes.map((shape, i) => tensor(randomFloats(shape.reduce((a, b) => a * b), i), shape));
  const gradientsOf = (step: number) => shapes.map((shape, i) => tensor(randomFloats(shape.reduce((a, b) => a * b), 100 * step + i), shape));

  test('is as exact as a plain float program, with any options, over several tensors', () => {
    const defaults: Settings = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, clip: Infinity };
    for (const options of [{}, { lr: 0.1, betas: [0.5, 0.9] }, { lr: 0.01, eps: 1e-2, weightDecay: 0.3 }, { lr: 0.01, clip: 0.7 }, { betas: [0, 0] }] satisfies Partial<Settings>[]) {
      const parameters = copies(start);
      const optimizer = engine.adam(options);
      const steps = [1, 2, 3, 4].map(gradientsOf);
      for (const gradients of steps) assert.equal(optimizer.step(parameters, gradients), parameters);
      const run = (round: Rounding) => plain(joined(start), steps.map(joined), { ...defaults, ...options } as Settings, round);
      const [exact, float] = [run(toDouble), run(toFloat)];
      const error = largestError(joined(parameters), exact);
      assert.ok(error <= allowedError(float, exact), `${JSON.stringify(options)}: off by ${error}, allowed are ${allowedError(float, exact)}`);
      optimizer.dispose();
    }
  });

  test('steps in place: subarrays and shared memory too, and nothing beside them', () => {
    const buffer = new Float32Array(6).fill(7);
    const shared = new Float32Array(new SharedArrayBuffer(8)).fill(7);
    using optimizer = engine.adam({ lr: 1 });
    optimizer.step([{ data: buffer.subarray(2, 4), shape: [2] }, tensor(shared, [2])], [[1, -1], [0, 2]]);
    assert.deepEqual([...buffer, ...shared].map((x) => Math.round(x * 1e5) / 1e5), [7, 7, 6, 8, 7, 7, 7, 6]);
  });

  test('takes gradients of any kind, and writes to none', () => {
    const parameter = tensor([0, 0]);
    using optimizer = engine.adam({ lr: 1 });
    const gradients = [{ data: Float64Array.of(1, 2), shape: [2] }];
    optimizer.step([parameter], gradients);
    assert.deepEqual([...gradients[0]!.data], [1, 2]);
    // The parameters themselves: the gradient of half their square.
    optimizer.step([parameter], [parameter]);
    assert.ok(parameter.data.every(Number.isFinite));
  });

  test('each optimizer keeps its own state, beside other calls and growing memory', () => {
    const run = (disturb: () => void) => {
      const parameters = copies(start);
      using optimizer = engine.adam({ lr: 0.05 });
      for (const step of [1, 2, 3]) {
        optimizer.step(parameters, gradientsOf(step));
        disturb();
      }
      return joined(parameters);
    };
    const expected = run(() => {});
    using other = engine.adam();
    const large = random(1, 300, 3000);
    assert.deepEqual(run(() => { other.step([random(2, 40)], [random(3, 40)]); engine.softmax(large); }), expected);
  });

  test('gives its memory back', () => {
    const small = copies(start);
    const round = () => {
      const optimizer = engine.adam();
      optimizer.step([random(1, 1000, 100)], [random(2, 1000, 100)]);
      optimizer.dispose();
      optimizer[Symbol.dispose]();
    };
    round();
    const { used } = engine.info().memory;
    for (let i = 0; i < 30; i++) round();
    assert.equal(engine.info().memory.used, used);
    using optimizer = engine.adam();
    for (let step = 0; step < 100; step++) optimizer.step(small, gradientsOf(1));
    assert.equal(engine.info().memory.used, used);
  });

  test('learns: a line through points', () => {
    const [weight, bias] = [tensor([[0]]), tensor([0])];
    const x = tensor(Float32Array.from({ length: 20 }, (_, i) => i / 10 - 1), [20, 1]);
    using optimizer = engine.adam({ lr: 0.05 });
    for (let step = 0; step < 400; step++) {
      const dOut = tensor(engine.linear(x, weight, bias).data.map((y, i) => (y - (3 * x.data[i]! - 2)) / 20), [20, 1]);
      const { dWeight, dBias } = engine.linearBackward(dOut, x, weight, bias);
      optimizer.step([weight, bias], [dWeight, dBias!]);
    }
    assert.ok(Math.abs(weight.data[0]! - 3) < 1e-2 && Math.abs(bias.data[0]! + 2) < 1e-2, `learned ${weight.data[0]} x + ${bias.data[0]}, expected 3 x - 2`);
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const run = (on: Engine) => {
      const parameters = [random(1, 90, 301), random(2, 5)];
      using optimizer = on.adam({ clip: 1, weightDecay: 0.1 });
      for (const seed of [3, 4]) optimizer.step(parameters, [random(seed, 90, 301), random(seed + 9, 5)]);
      return joined(parameters);
    };
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    const expected = run(single);
    single.dispose();
    for (const threads of [1, 2, 3]) {
      const many = await loadVariant({ threads });
      assert.deepEqual(run(many), expected, `${threads} threads gave other bits`);
      if (many !== engine) many.dispose();
    }
  });
});
