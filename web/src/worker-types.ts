import type { IndicesLike } from './arguments.js';
import type { AttentionResult } from './attention.js';
import type { Engine } from './engine.js';
import type { NamedTensors } from './recurrent-import.js';
import type { ResidentTensor } from './resident.js';
import type { ScoreOptions } from './score-options.js';
import type { NestedBooleans, NestedNumbers, NumericArray, TensorLike } from './tensor.js';

/**
 * What every call to a worker may be told besides its own options: in these, or in an object of their own after
 * the last argument.
 */
export interface CallOptions {
  /**
   * Cancels the call, which then rejects with the signal's reason. A call that has not begun never runs. One that
   * has rejects at once too, but the worker finishes it, so that what it does to a layer or a cache is done; its
   * result is dropped, `out` stays as it is, and the next call works.
   */
  signal?: AbortSignal | undefined;
  /**
   * Hears how much of the call is done; for now that all of it is, before the promise resolves.
   *
   * @param done from 0 to 1
   */
  onProgress?: ((done: number) => void) | undefined;
  /**
   * Hands the memory of the arguments over instead of a copy: typed arrays are empty afterwards. Those over a part
   * of a buffer or over shared memory, `out`, and all that adam's step() is given are copied all the same. Default
   * false.
   */
  transfer?: boolean | undefined;
}

/** What everything in a worker can do at once. Disposing twice is harmless. */
export interface RemoteDisposal {
  /**
   * Gives the memory back. Of the engine: ends the worker, and every call that has no result yet rejects with
   * DISPOSED. Of what lives in it: after the calls made before.
   */
  dispose(): void;
  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void;
  /** dispose(), and resolves when it is done: for an `await using` declaration. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * An engine, layer, model, cache or resident tensor that lives in a worker: methods give promises and take {@link CallOptions} too, and
 * properties are promises of what they are when all calls before are done. Tensors are copies: change those of
 * `parameters`, and give them back with load().
 */
export type Remote<Local> = RemoteDisposal & {
  readonly [Name in keyof Local as Name extends 'dispose' | symbol ? never : Name]: Local[Name] extends Method
    ? RemoteMethod<Parameters<Local[Name]>, ReturnType<Local[Name]>>
    : Promise<Local[Name]>;
};

type Method = (...args: never[]) => unknown;

/** A method in a worker. Where its result depends on the options, as attention's does, it still does. */
export type RemoteMethod<Args extends readonly unknown[], Result> = [AttentionResult, Result] extends [Result, AttentionResult]
  ? Required<Args> extends [...infer Operands, infer Options]
    ? {
        /** @param args those of the method, its options last */
        <const Given extends Sent<Options & ScoreOptions> & CallOptions = Sent<Options & ScoreOptions> & CallOptions>(
          ...args: [...Sent<Operands>, options?: Given]
        ): Promise<AttentionResult<Given>>;
      }
    : never
  : {
      /** @param args those of the method */
      (...args: WithCallOptions<Sent<Args>>): Promise<Result extends Disposable ? Remote<Result> : Result>;
    };

/** The arguments of a method; its own options, where it has some, may hold {@link CallOptions}. */
export type WithCallOptions<Args extends readonly unknown[]> = Required<Args> extends [...infer Operands, infer Last]
  ? [Last] extends [Operand]
    ? [...Args, call?: CallOptions]
    : Args extends Required<Args>
      ? [...Operands, options: Last & CallOptions]
      : [...Operands, options?: Last & CallOptions]
  : Args extends readonly []
    ? [call?: CallOptions]
    : Args;

/** Last arguments that are not options. */
type Operand = Sent<IndicesLike | readonly TensorLike[] | NamedTensors | undefined | number>;

/** A tensor in the memory of an engine in a worker. It goes into the calls of that engine as a tensor does. */
export type RemoteTensor = Remote<ResidentTensor<Float32Array | Uint8Array>>;

/** An argument, whose tensors may all be {@link RemoteTensor}s but for those that are written to. */
export type Sent<Argument> = Argument extends Readonly<Record<'data', infer Data> & Record<'shape', readonly number[]>>
  ? [Data] extends [Float32Array]
    ? Argument
    : Argument | RemoteTensor
  : Argument extends Method | NumericArray | NestedNumbers | NestedBooleans
    ? Argument
    : { [Name in keyof Argument]: Sent<Argument[Name]> };

/** The engine that spawn() starts. */
export type RemoteEngine = Remote<Engine>;
