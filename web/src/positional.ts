import { expectOptions } from './arguments.js';
import { QkvError } from './errors.js';
import { allocate, describe, Tensor } from './tensor.js';

/**
 * Sinusoidal positions ("Attention Is All You Need", section 3.5), (length, dim):
 * sine in even columns, cosine in odd ones, of the angle t / base^(2i / dim) in columns 2i and 2i + 1.
 *
 * @param options.base default 10000
 * @throws QkvError INVALID_ARGUMENT: a length or dim that is no whole number >= 0, a base not above 0.
 */
export function sinusoidal(length: number, dim: number, options: { base?: number | undefined } = {}): Tensor {
  expectOptions('sinusoidal', options, ['base']);
  const { base = 10000 } = options;
  for (const [name, value] of [['length', length], ['dim', dim]] as const) {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new QkvError('INVALID_ARGUMENT', `${name} is ${describe(value)}, expected a whole number that is not negative.`);
    }
  }
  if (!(base > 0) || !Number.isFinite(base)) {
    throw new QkvError('INVALID_ARGUMENT', `base is ${describe(base)}, expected a finite number above 0.`);
  }
  const data = allocate(length * dim, 'sinusoidal');
  for (let column = 0; column < dim; column++) {
    const frequency = base ** (-(column - (column % 2)) / dim);
    for (let t = 0; t < length; t++) {
      data[t * dim + column] = column % 2 === 0 ? Math.sin(t * frequency) : Math.cos(t * frequency);
    }
  }
  return new Tensor(data, Object.freeze([length, dim]));
}
