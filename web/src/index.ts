export type { AttentionOptions, AttentionResult, Causal } from './attention.js';
export { Engine, type EngineInfo } from './engine.js';
export { QkvError, type QkvErrorCode } from './errors.js';
export type { Explanation, ExplainOptions } from './explain.js';
export { load, type LoadOptions, version } from './load.js';
export { sinusoidal } from './positional.js';
export type { RnnOptions, RnnParameters, RnnResult } from './recurrent.js';
export {
  type MaskLike,
  type NestedBooleans,
  type NestedNumbers,
  type NumericArray,
  type Tensor,
  tensor,
  type TensorLike,
} from './tensor.js';
export type { Variant } from './variants.js';
export type { WasmSource } from './wasm-source.js';
