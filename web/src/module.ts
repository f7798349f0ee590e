/** The WebAssembly module as Embind exports it: what cpp/bindings declares, name by name. */

/** A byte offset into the module's memory; 0 stands for "not given". */
export type Address = number;

/** What a call struct holds by name: names in the core are the same in snake_case. */
export type CallFields<Ints extends string, Floats extends string = never> = Record<Ints, CallField> &
  Record<Floats, number>;
/** A number, a flag, or a place in memory. */
export type CallField = number | boolean | { readonly address: Address };

type AttentionInts =
  | 'query' | 'key' | 'value' | 'mask' | 'out' | 'weights' | 'logSumExp' | 'workspace' | 'workspaceBytes'
  | 'batch' | 'numHeads' | 'numKvHeads' | 'queryLen' | 'keyLen' | 'headDim' | 'valueDim' | 'lengthFirst'
  | 'maskBatch' | 'maskHeads' | 'maskQueryLen' | 'maskKeyLen' | 'causal' | 'causalOffset';
type TraceInts = 'x' | 'wq' | 'wk' | 'wv' | 'scores' | 'scaled' | 'embedDim';
type RnnInts =
  | 'x' | 'wx' | 'wh' | 'bx' | 'bh' | 'h0' | 'outputs' | 'h' | 'workspace' | 'workspaceBytes'
  | 'batch' | 'length' | 'inputDim' | 'hidden';

/** The operations that take a call struct, and its fields. */
export interface Calls {
  attention: CallFields<AttentionInts, 'scale'>;
  trace: CallFields<AttentionInts | TraceInts, 'scale'>;
  rnn: CallFields<RnnInts>;
}

type Operations = Record<keyof Calls, (call: Address) => number> &
  Record<`${keyof Calls}Layout`, () => Address>;

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
  traceWorkspaceBytes(length: number, embedDim: number, headDim: number, valueDim: number): number;
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
