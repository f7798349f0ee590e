/**
 * The engine on the calling thread, and tensors.
 *
 * @module qkv
 */
export type { Adam, AdamOptions } from './adam.js';
export type { Destination, IndicesLike, List } from './arguments.js';
export type { AttentionOptions, AttentionResult } from './attention.js';
export type { AttentionGradients } from './attention-backward.js';
export type { Causal, ScoreOptions, WeightRows } from './score-options.js';
export type { EmbeddingGradient } from './embedding.js';
export type { BuildingBlocks } from './building-blocks.js';
export { Engine, type EngineInfo } from './engine.js';
export { QkvError, type QkvErrorCode } from './errors.js';
export type { Explanation, ExplainOptions } from './explain.js';
export type { HeadLayout } from './heads.js';
export type { GeluOptions, LayerNormGradients, LayerNormOptions, RmsNormGradients, RmsNormOptions, XGradient } from './layers.js';
export type { LinearGradients } from './linear.js';
export type { CacheAttentionOptions, KvCache, KvCacheOptions } from './kv-cache.js';
export { load, type LoadOptions, version } from './load.js';
export type { CrossEntropyResult } from './loss.js';
export type { MultiHeadAttention, MultiHeadForwardOptions, MultiHeadOptions, MultiHeadParameters } from './multi-head.js';
export type { MultiHeadGradients, MultiHeadParameterGradients } from './multi-head-backward.js';
export type { ParameterSource } from './multi-head-import.js';
export { alibiSlopes, sinusoidal } from './positional.js';
export type {
  BothDirections,
  GruOptions,
  GruStepOptions,
  LstmOptions,
  LstmParameters,
  LstmResult,
  LstmState,
  LstmStepOptions,
  RecurrentOptions,
  RecurrentParameters,
  RecurrentResult,
  RecurrentState,
  RnnOptions,
  RnnStepOptions,
} from './recurrent-options.js';
export type {
  LstmGradients,
  LstmOutputGradients,
  ParameterGradients,
  RecurrentGradients,
  RecurrentOutputGradients,
} from './recurrent-backward.js';
export type { RecurrentCells } from './recurrent-cells.js';
export {
  gruParameters,
  type ImportedLstm,
  type ImportedParameters,
  type ImportedRecurrent,
  lstmParameters,
  type NamedTensors,
  type RecurrentSource,
  rnnParameters,
} from './recurrent-import.js';
export type { ResidentTensor } from './resident.js';
export type { RotaryOptions } from './rotary.js';
export type { SequenceOptions, TrainStepOptions } from './sequence-inputs.js';
export type { SequenceModel } from './sequence-model.js';
export type { Mixer, Readout, SequenceModelOptions } from './sequence-options.js';
export type { SequenceForward, SequenceGradients, SequenceResult } from './sequence-results.js';
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
