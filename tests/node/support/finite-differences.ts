// Gradients against central differences of a plain program in double precision.
import assert from 'node:assert/strict';

/** Of the largest gradient: what the published cases allow a float32 program to be off by. */
const ALLOWED = 2e-6;

/**
 * @param loss the loss of numbers in place of x
 * @param gradient what the library says of it
 */
export function expectGradient(gradient: ArrayLike<number>, x: ArrayLike<number>, loss: (x: Float64Array) => number, what: string): void {
  assert.equal(gradient.length, x.length, `${what} has ${gradient.length} elements`);
  const step = 1e-5;
  const moved = Float64Array.from(x);
  const exact = moved.map((value, i) => {
    moved[i] = value + step;
    const above = loss(moved);
    moved[i] = value - step;
    const below = loss(moved);
    moved[i] = value;
    return (above - below) / (2 * step);
  });
  const largest = exact.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  exact.forEach((wanted, i) => {
    const error = Math.abs(gradient[i]! - wanted);
    assert.ok(error <= ALLOWED * largest, `${what}[${i}] is ${gradient[i]}, expected ${wanted}: off by ${error}, allowed are ${ALLOWED * largest}`);
  });
}

/** The loss that most tests take: each element of a result times the number that dOut has for it. */
export const weightedSum = (out: ArrayLike<number>, dOut: ArrayLike<number>): number =>
  Array.from(out).reduce((sum, value, i) => sum + value * dOut[i]!, 0);
