/** The WebAssembly module as Embind exports it: what cpp/bindings declares, name by name. */

/** A byte offset into the module's memory; 0 stands for "not given". */
export type Address = number;

/** What a call struct holds by name: names in the core are the same in snake_case. What is left out is 0. */
export type CallFields<Names extends string, Tensors extends string = never> = {
  readonly [Name in Names | Tensors]?: CallField | undefined;
} & {
  /** In elements, of each axis. */
  readonly [Name in Tensors as `${Name}Strides`]?: readonly number[] | undefined;
};
/** A number, a flag, or a place in memory. */
export type CallField = number | boolean | { readonly address: Address };

type AttentionTensors = 'query' | 'key' | 'value' | 'out' | 'mask' | 'bias';
type AttentionFields =
  | 'batch' | 'numHeads' | 'numKvHeads' | 'queryLen' | 'keyLen' | 'headDim' | 'valueDim'
  | 'scale' | 'softcap' | 'alibiSlopes' | 'sinks' | 'causal' | 'windowLeft' | 'windowRight'
  | 'queryOffset' | 'queryOffsets' | 'keyLengths' | 'sequences' | 'sequenceQueries' | 'sequenceKeys'
  | 'dropout' | 'seedLow' | 'seedHigh'
  | 'weights' | 'weightHeads' | 'weightHeadCount' | 'weightQueries' | 'weightQueryCount' | 'meanWeights'
  | 'scores' | 'scoreStage' | 'logSumExp' | 'dQuery' | 'dKey' | 'dValue' | 'dBias' | 'dSinks'
  | 'workspace' | 'workspaceBytes';
type LinearFields = 'x' | 'weight' | 'bias' | 'out' | 'rows' | 'inDim' | 'outDim' | 'workspace' | 'workspaceBytes';
type RowsFields = 'operation' | 'x' | 'out' | 'rows' | 'columns' | 'gamma' | 'beta' | 'epsilon';
type LinearBackwardFields =
  | 'dOut' | 'x' | 'weight' | 'dX' | 'dWeight' | 'dBias' | 'rows' | 'inDim' | 'outDim' | 'workspace' | 'workspaceBytes';
type RowsBackwardFields =
  | 'operation' | 'dOut' | 'x' | 'dX' | 'rows' | 'columns' | 'gamma' | 'dGamma' | 'dBeta' | 'epsilon'
  | 'workspace' | 'workspaceBytes';
type EmbeddingBackwardFields = 'dOut' | 'indices' | 'dTable' | 'count' | 'rows' | 'dim' | 'workspace' | 'workspaceBytes';
type CrossEntropyFields = 'logits' | 'targets' | 'loss' | 'dLogits' | 'rows' | 'classes' | 'workspace' | 'workspaceBytes';
type AdamFields =
  | 'parameters' | 'gradients' | 'mean' | 'square' | 'count' | 'settings' | 'fault' | 'workspace' | 'workspaceBytes';
type RotaryTablesFields = 'base' | 'positions' | 'cosines' | 'sines' | 'rows' | 'pairs';
type RotaryFields =
  | 'batch' | 'heads' | 'length' | 'dim' | 'cosines' | 'sines' | 'rows' | 'pairs' | 'tableRows' | 'neighbours' | 'backward';
type WeightFields = 'wx' | 'wh' | 'bx' | 'bh' | 'peephole';
type WeightGradientFields = 'dWx' | 'dWh' | 'dBx' | 'dBh' | 'dPeephole';
type RecurrentFields =
  | 'cell' | 'direction' | 'onnxOrder' | 'resetBefore' | 'relu' | 'batch' | 'length' | 'inputDim' | 'hidden' | 'lengths'
  | 'x' | 'h0' | 'c0' | 'outputs' | 'h' | 'c' | 'trace' | WeightFields | `${WeightFields}2`
  | 'dOutputs' | 'dH' | 'dC' | 'dX' | 'dH0' | 'dC0' | WeightGradientFields | `${WeightGradientFields}2` | 'workspace' | 'workspaceBytes';
type SequenceFields =
  | 'task' | 'mixer' | 'positions' | 'ties' | 'readout' | 'causal' | 'residual' | 'vocab' | 'embedDim' | 'classes' | 'layers'
  | 'numHeads' | 'maxLength' | 'recurrentStart' | 'forgetBias' | 'chronoLength' | 'seedLow' | 'seedHigh'
  | 'parameters' | 'tokens' | 'batch' | 'length' | 'lengths' | 'readAt' | 'context' | 'contextLength' | 'contextLengths'
  | 'targets' | 'output' | 'result' | 'gradients' | 'inputNorms' | 'mean' | 'square' | 'settings' | 'check' | 'fault'
  | 'workspace' | 'workspaceBytes';

/** The operations that take a call struct, and its fields. */
export interface Calls {
  attention: CallFields<AttentionFields, AttentionTensors>;
  /** `out` is the loss's gradient by the output; gradients have the strides of what they are by. */
  attentionBackward: CallFields<AttentionFields, AttentionTensors>;
  linear: CallFields<LinearFields>;
  linearBackward: CallFields<LinearBackwardFields>;
  rows: CallFields<RowsFields>;
  rowsBackward: CallFields<RowsBackwardFields>;
  embeddingBackward: CallFields<EmbeddingBackwardFields>;
  crossEntropy: CallFields<CrossEntropyFields>;
  adam: CallFields<AdamFields>;
  rotaryTables: CallFields<RotaryTablesFields>;
  rotary: CallFields<RotaryFields, 'x' | 'out'>;
  recurrent: CallFields<RecurrentFields>;
  /** `trace` is what recurrent left for the same inputs; it is used up. */
  recurrentBackward: CallFields<RecurrentFields>;
  /** What each field is, and which tasks need it: cpp/bindings/sequence_model.cpp. */
  sequence: CallFields<SequenceFields>;
}

type Operations = Record<keyof Calls, (call: Address) => number> &
  Record<`${keyof Calls}Layout`, () => Address>;

/** All as in the call. */
export type RecurrentSizes = readonly [cell: number, direction: number, batch: number, length: number, inputDim: number, hidden: number];

export interface RawModule extends Operations {
  readonly OK: number;
  readonly INVALID_ARGUMENT: number;
  readonly SHAPE_MISMATCH: number;
  readonly OUT_OF_MEMORY: number;
  _malloc(bytes: number): Address;
  _free(address: Address): void;
  startThreads(threads: number): number;
  /** `rows` is batch * heads * queries where weights are wanted, else 0. */
  attentionWorkspaceBytes(headDim: number, valueDim: number, rows: number): number;
  /** `rows` is batch * heads * queries. */
  attentionBackwardWorkspaceBytes(rows: number, keyLen: number, headDim: number, valueDim: number): number;
  linearWorkspaceBytes(inDim: number, outDim: number): number;
  recurrentWorkspaceBytes(...sizes: RecurrentSizes): number;
  recurrentTraceBytes(...sizes: RecurrentSizes): number;
  recurrentBackwardWorkspaceBytes(...sizes: RecurrentSizes): number;
  linearBackwardWorkspaceBytes(rows: number, inDim: number, outDim: number): number;
  normBackwardWorkspaceBytes(rows: number, columns: number): number;
  embeddingBackwardWorkspaceBytes(count: number, rows: number): number;
  crossEntropyWorkspaceBytes(rows: number): number;
  adamWorkspaceBytes(count: number): number;
  /** Of the `sequence` call at this address: its task, the model's fields, batch, length and contextLength. */
  sequenceWorkspaceBytes(call: Address): number;
  /** Numbers that the model of a `sequence` call learns; 0 where the core has no such model. */
  sequenceParameterCount(call: Address): number;
  /**
   * Parameter number `index` of the model of a `sequence` call: writes layer, rows (0: one axis), columns and offset
   * in numbers, 4 integers, to `out`, and returns the address of its name, in which # stands for the layer; 0 where
   * there are no more.
   */
  sequenceParameter(call: Address, index: number, out: Address): Address;
  /** Threaded builds only. */
  PThread?: { terminateAllThreads(): void };
}

/** What the loader hands to the glue. */
export interface ModuleInit {
  wasmMemory: WebAssembly.Memory;
  instantiateWasm(
    imports: WebAssembly.Imports,
    receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): object;
  /** Threaded builds: workers to start beforehand, and what to do when one fails. */
  poolSize: number;
  onWorkerError(error: { message?: string }): void;
}

export type ModuleFactory = (init: ModuleInit) => Promise<RawModule>;
