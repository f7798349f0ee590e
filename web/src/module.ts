/** The WebAssembly module as Embind exports it: what cpp/bindings declares, name by name. */

/** A byte offset into the module's memory; 0 stands for "not given". */
export type Address = number;

/** cpp/bindings/attention.cpp, attention_call. */
export interface AttentionCall {
  query: Address;
  key: Address;
  value: Address;
  mask: Address;
  out: Address;
  weights: Address;
  logSumExp: Address;
  workspace: Address;
  workspaceBytes: number;
  batch: number;
  numHeads: number;
  numKvHeads: number;
  queryLen: number;
  keyLen: number;
  headDim: number;
  valueDim: number;
  lengthFirst: boolean;
  maskBatch: number;
  maskHeads: number;
  maskQueryLen: number;
  maskKeyLen: number;
  scale: number;
  causal: boolean;
  causalOffset: number;
}

/** cpp/bindings/attention.cpp, trace_call. */
export interface TraceCall {
  attention: AttentionCall;
  x: Address;
  wq: Address;
  wk: Address;
  wv: Address;
  scores: Address;
  scaled: Address;
  embedDim: number;
}

/** cpp/bindings/recurrent.cpp, rnn_call. */
export interface RnnCall {
  x: Address;
  wx: Address;
  wh: Address;
  bx: Address;
  bh: Address;
  h0: Address;
  outputs: Address;
  h: Address;
  workspace: Address;
  workspaceBytes: number;
  batch: number;
  length: number;
  inputDim: number;
  hidden: number;
}

export interface RawModule {
  readonly OK: number;
  readonly INVALID_ARGUMENT: number;
  readonly SHAPE_MISMATCH: number;
  readonly OUT_OF_MEMORY: number;
  _malloc(bytes: number): Address;
  _free(address: Address): void;
  startThreads(threads: number): number;
  attention(call: AttentionCall): number;
  attentionWorkspaceBytes(headDim: number, valueDim: number): number;
  trace(call: TraceCall): number;
  traceWorkspaceBytes(embedDim: number, headDim: number, valueDim: number): number;
  rnn(call: RnnCall): number;
  rnnWorkspaceBytes(inputDim: number, hidden: number): number;
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
