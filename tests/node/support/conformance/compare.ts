// What came against what a case expects.
import type { Route } from './node.js';
import { type Case, type Tolerance, toleranceOf } from './suite.js';
import { roundTo, type Value } from './values.js';

export interface Comparison {
  /** Of its allowance, what the worst element of all outputs and routes used. */
  share: number;
  /** Why outputs were left unchecked, one for each. */
  unchecked: string[];
}

/** Throws where a route's outputs are not those expected. */
export function compareCase(one: Case, expected: readonly (Value | null)[], routes: readonly Route[]): Comparison {
  const tolerance = toleranceOf(one);
  const comparison: Comparison = { share: 0, unchecked: [] };
  routes.forEach((route, number) => {
    expected.forEach((wanted, i) => {
      if (!wanted) return;
      const got = route.outputs[i];
      const what = `${one.name}, ${wanted.name} by ${route.name}`;
      if (got) {
        expectShape(what, got.shape, wanted.shape);
        const share = compare(what, roundTo(wanted.dtype, got.data), expectedData(one, i, wanted), tolerance);
        comparison.share = Math.max(comparison.share, share);
      } else if (number === 0) {
        if (!route.notReturned) throw new Error(`${what}: the adapter made no such output`);
        comparison.unchecked.push(route.notReturned);
      }
    });
  });
  return comparison;
}

function expectShape(what: string, got: readonly number[], wanted: readonly number[]): void {
  if (got.join() !== wanted.join()) throw new Error(`${what}: got the shape (${got.join(', ')}), expected (${wanted.join(', ')})`);
}

const LOWEST: Readonly<Record<string, number>> = { float32: -(2 - 2 ** -23) * 2 ** 127, float16: -65504 };

/** ONNX Runtime writes the lowest finite number where the operator, and the library, say -Infinity. */
function expectedData({ suite, op, attributes }: Case, output: number, { dtype, data }: Value): ArrayLike<number> {
  const masked = suite === 'ort' && op === 'Attention' && output === 3 && attributes['qk_matmul_output_mode']?.value === 2;
  return masked ? Array.from(data, (x) => (x === LOWEST[dtype] ? -Infinity : x)) : data;
}

/** The largest share of its allowance that an element used. */
function compare(what: string, got: ArrayLike<number>, expected: ArrayLike<number>, { rtol, atol }: Tolerance): number {
  let worst = 0;
  for (let i = 0; i < expected.length; i++) {
    const [x, wanted] = [got[i]!, expected[i]!];
    if (x === wanted || (Number.isNaN(x) && Number.isNaN(wanted))) continue;
    // An infinity is never near anything, whatever the formula makes of it.
    const allowed = Number.isFinite(wanted) ? atol + rtol * Math.abs(wanted) : 0;
    const difference = Math.abs(x - wanted);
    if (!(difference <= allowed)) throw new Error(`${what}, index ${i}: got ${x}, expected ${wanted}, off by ${difference}, allowed are ${allowed}`);
    worst = Math.max(worst, difference / allowed);
  }
  return worst;
}
