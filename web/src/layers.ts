import { expectOptions, expectShape, finite, type Numbers, numbers, oneOf } from './arguments.js';
import type { Block, EngineMemory } from './memory.js';
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

/** The gradient of what softmax(), gelu(), silu() or rotary() was given. */
export interface XGradient {
  /** x's shape. */
  dX: Tensor;
}

/** The gradients of what rmsNorm() was given. */
export interface RmsNormGradients extends XGradient {
  /** (columns); there where gamma was given. */
  dGamma?: Tensor;
}

/** The gradients of what layerNorm() was given. */
export interface LayerNormGradients extends RmsNormGradients {
  /** (columns); there where beta was given. */
  dBeta?: Tensor;
}

/** As in cpp/bindings/layers.cpp. */
const ROW_OPERATIONS = ['softmax', 'layerNorm', 'rmsNorm', 'gelu', 'geluTanh', 'silu'] as const;
type RowOperation = (typeof ROW_OPERATIONS)[number];

/** Rows along x's last axis, whatever the axes before it, and what becomes of them. */
function rowsOf(operation: RowOperation, x: Numbers, { eps = 1e-5, ...columnWise }: LayerNormOptions) {
  const columns = x.shape.at(-1)!;
  const [gamma, beta] = (['gamma', 'beta'] as const).map((name) => {
    if (columnWise[name] === undefined) return undefined;
    const parameter = numbers(columnWise[name], name, 1);
    expectShape(parameter, name, [columns], "(columns), x's last axis");
    return parameter;
  });
  const fields = {
    operation: ROW_OPERATIONS.indexOf(operation),
    rows: sizeOf(x.shape.slice(0, -1)),
    columns,
    epsilon: finite(eps, 'eps', 0),
  };
  return { fields, gamma, beta, name: operation === 'geluTanh' ? 'gelu' : operation };
}

function run(memory: EngineMemory, operation: RowOperation, xLike: TensorLike, options: LayerNormOptions = {}): Tensor {
  const x = numbers(xLike, 'x');
  const { fields, gamma, beta, name } = rowsOf(operation, x, options);
  const frame = memory.frame();
  const inputs = { x: frame.input(x), gamma: frame.input(gamma), beta: frame.input(beta) };
  const out = frame.output(x.shape);
  frame.run(name, 'rows', { ...fields, ...inputs, out });
  return frame.read(out, x.shape);
}

/** The gradients of what went into {@link run}. */
function runBackward(
  memory: EngineMemory,
  operation: RowOperation,
  dOutLike: TensorLike,
  xLike: TensorLike,
  options: LayerNormOptions = {},
): LayerNormGradients {
  const dOut = numbers(dOutLike, 'dOut');
  const x = numbers(xLike, 'x');
  expectShape(dOut, 'dOut', x.shape, "x's shape");
  const { fields, gamma, beta, name } = rowsOf(operation, x, options);
  const { rows, columns } = fields;
  const frame = memory.frame();
  const inputs = { dOut: frame.input(dOut), x: frame.input(x), gamma: frame.input(gamma) };
  const dX = frame.output(x.shape);
  const [dGamma, dBeta] = [gamma, beta].map((given) => frame.output([columns], given !== undefined)) as [Block, Block];
  const isNorm = operation === 'layerNorm' || operation === 'rmsNorm';
  const scratch = frame.workspace(isNorm ? memory.module.normBackwardWorkspaceBytes(rows, columns) : 0);
  frame.run(`${name}Backward`, 'rowsBackward', { ...fields, ...inputs, dX, dGamma, dBeta, ...scratch });
  return {
    dX: frame.read(dX, x.shape),
    ...(gamma && { dGamma: frame.read(dGamma, [columns]) }),
    ...(beta && { dBeta: frame.read(dBeta, [columns]) }),
  };
}

export const softmax = (memory: EngineMemory, x: TensorLike): Tensor => run(memory, 'softmax', x);

export const softmaxBackward = (memory: EngineMemory, dOut: TensorLike, x: TensorLike): XGradient =>
  runBackward(memory, 'softmax', dOut, x);

export const silu = (memory: EngineMemory, x: TensorLike): Tensor => run(memory, 'silu', x);

export const siluBackward = (memory: EngineMemory, dOut: TensorLike, x: TensorLike): XGradient =>
  runBackward(memory, 'silu', dOut, x);

const LAYER_NORM_OPTIONS = ['gamma', 'beta', 'eps'];

export function layerNorm(memory: EngineMemory, x: TensorLike, options: LayerNormOptions = {}): Tensor {
  expectOptions('layerNorm', options, LAYER_NORM_OPTIONS);
  return run(memory, 'layerNorm', x, options);
}

export function layerNormBackward(
  memory: EngineMemory,
  dOut: TensorLike,
  x: TensorLike,
  options: LayerNormOptions = {},
): LayerNormGradients {
  expectOptions('layerNormBackward', options, LAYER_NORM_OPTIONS);
  return runBackward(memory, 'layerNorm', dOut, x, options);
}

const RMS_NORM_OPTIONS = ['gamma', 'eps'];

export function rmsNorm(memory: EngineMemory, x: TensorLike, options: RmsNormOptions = {}): Tensor {
  expectOptions('rmsNorm', options, RMS_NORM_OPTIONS);
  return run(memory, 'rmsNorm', x, options);
}

export function rmsNormBackward(
  memory: EngineMemory,
  dOut: TensorLike,
  x: TensorLike,
  options: RmsNormOptions = {},
): RmsNormGradients {
  expectOptions('rmsNormBackward', options, RMS_NORM_OPTIONS);
  return runBackward(memory, 'rmsNorm', dOut, x, options);
}

function geluOperation(name: string, options: GeluOptions): RowOperation {
  expectOptions(name, options, ['approximate']);
  const { approximate = 'none' } = options;
  return oneOf(approximate, 'approximate', ['none', 'tanh']) === 'none' ? 'gelu' : 'geluTanh';
}

export const gelu = (memory: EngineMemory, x: TensorLike, options: GeluOptions = {}): Tensor =>
  run(memory, geluOperation('gelu', options), x);

export const geluBackward = (
  memory: EngineMemory,
  dOut: TensorLike,
  x: TensorLike,
  options: GeluOptions = {},
): XGradient => runBackward(memory, geluOperation('geluBackward', options), dOut, x);
