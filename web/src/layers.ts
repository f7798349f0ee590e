import { expectOptions, expectShape, finite, numbers, oneOf } from './arguments.js';
import type { EngineMemory } from './memory.js';
import type { Calls } from './module.js';
import { sizeOf, type Tensor, type TensorLike } from './tensor.js';

/** What rmsNorm() may be told. */
export interface RmsNormOptions {
  /** Multiplies each column, (columns). Default 1. */
  gamma?: TensorLike | undefined;
  /** Added to the variance (of rmsNorm() to the mean of the squares) below the root; at least 0, default 1e-5. */
  eps?: number | undefined;
}

/** What layerNorm() may be told. */
export interface LayerNormOptions extends RmsNormOptions {
  /** Added to each column, (columns). Default 0. */
  beta?: TensorLike | undefined;
}

/** What gelu() may be told. */
export interface GeluOptions {
  /**
   * Which formula of Hendrycks & Gimpel, 2016:
   * - `'none'` (default): `x (1 + erf(x / sqrt 2)) / 2`.
   * - `'tanh'`: `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
   */
  approximate?: 'none' | 'tanh' | undefined;
}

/** As in cpp/bindings/layers.cpp. */
const ROW_OPERATIONS = ['softmax', 'layerNorm', 'rmsNorm', 'gelu', 'geluTanh', 'silu'] as const;
type RowOperation = (typeof ROW_OPERATIONS)[number];

/** Rows along x's last axis become rows, whatever the axes before it. */
function run(
  memory: EngineMemory,
  operation: RowOperation,
  xLike: TensorLike,
  { eps = 1e-5, ...columnWise }: LayerNormOptions = {},
): Tensor {
  const x = numbers(xLike, 'x');
  const columns = x.shape.at(-1)!;
  const frame = memory.frame();
  const fields: { -readonly [Name in keyof Calls['rows']]: Calls['rows'][Name] } = {
    operation: ROW_OPERATIONS.indexOf(operation),
    rows: sizeOf(x.shape.slice(0, -1)),
    columns,
    x: frame.input(x),
    epsilon: finite(eps, 'eps', 0),
  };
  for (const name of ['gamma', 'beta'] as const) {
    if (columnWise[name] === undefined) continue;
    const parameter = numbers(columnWise[name], name, 1);
    expectShape(parameter, name, [columns], "(columns), x's last axis");
    fields[name] = frame.input(parameter);
  }
  const out = frame.output(x.shape);
  frame.run(operation === 'geluTanh' ? 'gelu' : operation, 'rows', { ...fields, out });
  return frame.read(out, x.shape);
}

export const softmax = (memory: EngineMemory, x: TensorLike): Tensor => run(memory, 'softmax', x);

export const silu = (memory: EngineMemory, x: TensorLike): Tensor => run(memory, 'silu', x);

export function layerNorm(memory: EngineMemory, x: TensorLike, options: LayerNormOptions = {}): Tensor {
  expectOptions('layerNorm', options, ['gamma', 'beta', 'eps']);
  return run(memory, 'layerNorm', x, options);
}

export function rmsNorm(memory: EngineMemory, x: TensorLike, options: RmsNormOptions = {}): Tensor {
  expectOptions('rmsNorm', options, ['gamma', 'eps']);
  return run(memory, 'rmsNorm', x, options);
}

export function gelu(memory: EngineMemory, x: TensorLike, options: GeluOptions = {}): Tensor {
  expectOptions('gelu', options, ['approximate']);
  const { approximate = 'none' } = options;
  return run(memory, oneOf(approximate, 'approximate', ['none', 'tanh']) === 'none' ? 'gelu' : 'geluTanh', x);
}
