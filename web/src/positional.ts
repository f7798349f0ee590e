import { expectOptions, finite, invalid, wholeNumber } from './arguments.js';
import { allocate, LONGEST_AXIS, Tensor } from './tensor.js';

/**
 * Sinusoidal positions (Vaswani et al., "Attention Is All You Need", 2017, section 3.5), (length, dim):
 * sine in even columns, cosine in odd ones, of the angle t / base^(2i / dim) in columns 2i and 2i + 1.
 *
 * @param length how many positions, from 0 on
 * @param dim columns; an odd one ends with a sine
 * @param options what the angles are made of
 * @throws QkvError INVALID_ARGUMENT: a length or dim that is no whole number >= 0, a base not above 0.
 */
export function sinusoidal(length: number, dim: number, options: {
  /** The longest wave is 2 pi base positions. Above 0, default 10000. */
  base?: number | undefined;
} = {}): Tensor {
  expectOptions('sinusoidal', options, ['base']);
  const { base = 10000 } = options;
  wholeNumber(length, 'length', 0, LONGEST_AXIS);
  wholeNumber(dim, 'dim', 0, LONGEST_AXIS);
  if (finite(base, 'base') <= 0) invalid(`base is ${base}, expected a finite number above 0.`);
  const data = allocate(length * dim, 'sinusoidal');
  for (let column = 0; column < dim; column++) {
    const frequency = base ** (-(column - (column % 2)) / dim);
    for (let t = 0; t < length; t++) {
      data[t * dim + column] = column % 2 === 0 ? Math.sin(t * frequency) : Math.cos(t * frequency);
    }
  }
  return new Tensor(data, Object.freeze([length, dim]));
}

/**
 * Slopes of attention with linear biases, one a head (Press et al., "Train Short, Test Long", 2022,
 * section 3, and their code where the heads are no power of two): 2^(-8 i / n), i = 1..n, of the largest
 * power of two n that is not above numHeads, then every other slope of 2n heads. (numHeads)
 *
 * @param numHeads how many slopes
 * @throws QkvError INVALID_ARGUMENT: no whole number >= 0.
 */
export function alibiSlopes(numHeads: number): Tensor {
  wholeNumber(numHeads, 'numHeads', 0, LONGEST_AXIS);
  const power = 2 ** Math.floor(Math.log2(numHeads));
  const data = allocate(numHeads, 'alibiSlopes');
  for (let head = 0; head < numHeads; head++) {
    data[head] = head < power ? 2 ** ((-8 * (head + 1)) / power) : 2 ** ((-8 * (2 * (head - power) + 1)) / (2 * power));
  }
  return new Tensor(data, Object.freeze([numHeads]));
}
