import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, tensor, type Tensor } from 'qkv';

import { loadVariant, threaded, variant } from './support/engine.js';
import { allowedError, largestError, randomFloats, type Rounding, toDouble, toFloat } from './support/reference.js';
import { angles, turned } from './support/rotary-reference.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const PAIRINGS = ['halves', 'neighbours'] as const;
const random = (seed: number, ...shape: number[]) => tensor(randomFloats(shape.reduce((a, b) => a * b), seed), shape);
const empty = (...shape: number[]) => tensor(new Float32Array(0), shape);

function isNear(made: Tensor, run: (round: Rounding) => Float64Array, what: string): void {
  const exact = run(toDouble);
  const [error, allowed] = [largestError(made.data, exact), allowedError(run(toFloat), exact)];
  assert.ok(error <= allowed, `${what} is off by ${error}, allowed are ${allowed}`);
}

describe(`rotary, ${variant}`, () => {
  test('pairs neighbours or halves, as it is told', () => {
    const near = (made: Tensor, expected: number[]) =>
      assert.ok(largestError(made.data, expected) < 1e-6, `${made.toArray()} came, ${expected} expected`);
    near(engine.rotary([[1, 2, 3, 4]], { pairing: 'neighbours', offset: 1 }), [-1.142640, 1.922076, 2.959851, 4.029800]);
    near(engine.rotary([[1, 2, 3, 4]], { pairing: 'halves', positions: [1] }), [-1.984111, 1.959901, 2.462378, 4.019800]);
  });

  test('is as exact as a plain float program, over ranks, dims, bases and positions', () => {
    for (const [shape, dims, base] of [[[7, 2], 2, 10000], [[3, 9, 6], 6, 100], [[2, 3, 40, 64], 64, 10000], [[2, 33, 20], 10, 5e5], [[1, 4, 5], 4, 1], [[5, 7], 0, 10000]] as const) {
      const x = random(dims + 1, ...shape);
      const length = shape.at(-2)!;
      const positions = Array.from({ length }, (_, t) => ((t * 13) % 29) - 3 + t / 4);
      for (const pairing of PAIRINGS) {
        const made = engine.rotary(x, { pairing, dims, base, positions });
        assert.deepEqual(made.shape, shape);
        isNear(made, (round) => turned(x, pairing, dims, angles(positions, dims, base), round), `${pairing} of (${shape}), dims ${dims}, base ${base}`);
        const counted = Array.from({ length }, (_, t) => t + 1000);
        isNear(engine.rotary(x, { pairing, dims, base, offset: 1000 }), (round) => turned(x, pairing, dims, angles(counted, dims, base), round), `${pairing} of (${shape}) with an offset`);
      }
    }
  });

  test('positions may be in any kind of list, far away and in no order', () => {
    const x = random(1, 3, 4);
    const expected = engine.rotary(x, { pairing: 'halves', positions: [5, 2, 1000000] }).data;
    for (const positions of [new Int32Array([5, 2, 1000000]), new Float64Array([5, 2, 1000000]), tensor([5, 2, 1000000])]) {
      assert.deepEqual(engine.rotary(x, { pairing: 'halves', positions }).data, expected);
    }
    // Whole numbers that float32 does not hold.
    const far = [2 ** 30 - 1, -(2 ** 30) + 1, 2 ** 24 + 1];
    const made = engine.rotary(x, { pairing: 'neighbours', positions: far });
    const exact = turned(x, 'neighbours', 4, angles(far, 4), toDouble);
    // An angle of 2^30 in double is known to 2^-23.
    assert.ok(largestError(made.data, exact) < 4 * 2 ** -23, `${made.toArray()} came, ${exact} expected`);
  });

  test('defaults: positions from 0, base 10000, all dims', () => {
    const x = random(2, 5, 6);
    for (const pairing of PAIRINGS) {
      const expected = engine.rotary(x, { pairing, positions: [0, 1, 2, 3, 4], base: 10000, dims: 6 });
      assert.deepEqual(engine.rotary(x, { pairing }), expected);
      assert.deepEqual(engine.rotary(x, { pairing, offset: 0 }), expected);
      assert.deepEqual(expected.data.slice(0, 6), x.data.slice(0, 6), 'position 0 turned');
    }
  });

  test('positions are a list of any kind', () => {
    const x = random(2, 5, 6);
    const expected = engine.rotary(x, { pairing: 'halves', offset: -2 });
    const bigints = BigInt64Array.of(-2n, -1n, 0n, 1n, 2n);
    for (const positions of [Int8Array.of(-2, -1, 0, 1, 2), bigints, { data: bigints, shape: [5] }, tensor([-2, -1, 0, 1, 2]), engine.resident([-2, -1, 0, 1, 2])]) {
      assert.deepEqual(engine.rotary(x, { pairing: 'halves', positions }), expected);
    }
    const tables = { cos: random(5, 4, 3), sin: random(6, 4, 3) };
    assert.deepEqual(
      engine.rotary(x, { pairing: 'halves', ...tables, positions: BigInt64Array.of(3n, 0n, 0n, 1n, 2n) }),
      engine.rotary(x, { pairing: 'halves', ...tables, positions: [3, 0, 0, 1, 2] }));
  });

  test('heads and batches turn alike, one token alone as in its sequence', () => {
    const x = random(3, 2, 3, 5, 8);
    for (const pairing of PAIRINGS) {
      const whole = engine.rotary(x, { pairing, offset: 7 });
      for (let row = 0; row < 30; row++) {
        const one = tensor(x.data.slice(row * 8, (row + 1) * 8), [1, 8]);
        assert.deepEqual(engine.rotary(one, { pairing, offset: 7 + (row % 5) }).data, whole.data.slice(row * 8, (row + 1) * 8));
      }
    }
  });

  test('given cos and sin are looked up by position', () => {
    const x = random(4, 2, 3, 6);
    const [cos, sin] = [random(5, 10, 2), random(6, 10, 2)];
    for (const pairing of PAIRINGS) {
      for (const [options, positions] of [[{ positions: [9, 0, 4] }, [9, 0, 4]], [{ offset: 7 }, [7, 8, 9]], [{ dims: 4 }, [0, 1, 2]]] as const) {
        const looked = (row: number, pair: number) => ({ cos: cos.at(positions[row]!, pair), sin: sin.at(positions[row]!, pair) });
        isNear(engine.rotary(x, { pairing, cos, sin, ...options }), (round) => turned(x, pairing, 4, looked, round), `${pairing} with tables at ${positions}`);
      }
    }
  });

  test('takes axes of length 0, and never writes to its arguments', () => {
    for (const shape of [[0, 4], [3, 0], [0, 3, 4], [2, 0, 0]]) {
      for (const pairing of PAIRINGS) assert.deepEqual(engine.rotary(empty(...shape), { pairing }).shape, shape);
    }
    assert.deepEqual(engine.rotary(empty(0, 4), { pairing: 'halves', cos: empty(0, 2), sin: empty(0, 2), positions: [] }).shape, [0, 4]);
    const [x, cos, sin, positions] = [random(1, 3, 4), random(2, 3, 2), random(3, 3, 2), new Float64Array([2, 1, 0])];
    const before = [x.data, cos.data, sin.data, positions].map((data) => data.slice());
    engine.rotary(x, { pairing: 'halves', cos, sin, positions });
    engine.rotary(x, { pairing: 'neighbours', positions });
    assert.deepEqual([x.data, cos.data, sin.data, positions], before);
  });

  test('the same bits for any number of threads', { skip: !threaded && 'this variant has no threads' }, async () => {
    const x = random(1, 3, 200, 48);
    const single = await load({ variant: variant.replace('-mt', '') as typeof variant });
    for (const pairing of PAIRINGS) {
      const expected = single.rotary(x, { pairing, offset: 5 });
      assert.deepEqual(engine.rotary(x, { pairing, offset: 5 }), expected);
      for (const threads of [1, 3]) {
        const many = await loadVariant({ threads });
        assert.deepEqual(many.rotary(x, { pairing, offset: 5 }), expected);
        many.dispose();
      }
    }
    single.dispose();
  });
});
