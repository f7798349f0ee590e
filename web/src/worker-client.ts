import { invalid } from './arguments.js';
import { QkvError } from './errors.js';
import { tensor } from './index.js';
import { classOf, type Tensor } from './tensor.js';
import { type Given, packed, readGiven } from './worker-arguments.js';
import { notStarted, openPort, type Port } from './worker-port.js';
import { type Answer, type Call, type Made, rebuild, ROOT, special, type Special, type Target } from './worker-protocol.js';
import type { RemoteDisposal } from './worker-types.js';

/** A call between its promise's making and its end. */
interface Pending {
  readonly call: Call;
  readonly moved: ReadonlySet<Transferable>;
  /** What the user called. */
  readonly name: string;
  readonly signal: AbortSignal | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

const START = 'spawn';

/** What stands here for something in a worker. */
const remotes = new WeakMap<object, { readonly connection: Connection; readonly target: Target }>();

/** A worker and the calls that are on their way to it, in the order in which they were made. */
export class Connection {
  readonly #port: Port;
  #waiting: Pending[] = [];
  /** By their call's id. */
  readonly #sent = new Map<number, Pending>();
  readonly #signals = new WeakSet<AbortSignal>();
  #count = 0;
  /** Why no call is taken any more. */
  #end: ((name: string) => QkvError) | undefined;

  constructor() {
    this.#port = openPort((answer) => this.#answer(answer), (why) => {
      const reason = why.replace(/\.?\s*(\n.*)?$/s, '');
      void this.#close((name) =>
        name === START
          ? notStarted(reason)
          : new QkvError('DISPOSED', `${name}: the worker has ended: ${reason}; spawn() gives a new one.`));
    });
  }

  /** The engine that load() gives in the worker. */
  async start(options: unknown): Promise<unknown> {
    try {
      return await this.#call(ROOT, 'load', START, { values: [options] });
    } catch (error) {
      await this.#dispose();
      throw error;
    }
  }

  async #call(target: Target, member: string, name: string, given: Given): Promise<unknown> {
    if (this.#end) throw this.#end(name);
    const { signal, onProgress, out } = given;
    signal?.throwIfAborted();
    const moved = new Set<Transferable>();
    const call = { id: ++this.#count, target, member, values: this.#packed(name, given, moved) };
    if (signal) this.#listen(signal);
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.push({ call, moved, name, signal, resolve, reject });
    });
    this.#advance();
    const value = await answered;
    onProgress?.(1);
    // The gradients of a call that had `out` have none.
    return out && 'output' in (value as object) ? written(value as Written, out) : value;
  }

  /** A step of adam() is in place: what it makes of the copies in the worker is written back. */
  async #step(target: Target, name: string, values: readonly unknown[]): Promise<unknown> {
    const given = { ...readGiven(values), transfer: false };
    const made = (await this.#call(target, 'step', name, given)) as Place[];
    const parameters = given.values[0] as Place[];
    made.forEach(({ data }, i) => fill(parameters[i]!, data, `parameters[${i}]`));
    return parameters;
  }

  /** Once for each signal, since one may be for many calls. */
  #listen(signal: AbortSignal): void {
    if (this.#signals.has(signal)) return;
    this.#signals.add(signal);
    signal.addEventListener('abort', () => {
      for (const pending of [...this.#sent.values(), ...this.#waiting]) if (pending.signal === signal) pending.reject(signal.reason);
      this.#waiting = this.#waiting.filter((pending) => pending.signal !== signal);
      this.#advance();
    });
  }

  #packed(name: string, given: Given, moved: Set<Transferable>): unknown[] {
    try {
      return packed(given, moved, (part) => {
        const remote = remotes.get(part);
        return remote && (remote.connection === this ? special('made', remote.target) : special('class', 'Remote (of another engine)'));
      });
    } catch (cause) {
      throw cause instanceof QkvError ? cause : notSent(name, cause);
    }
  }

  /** Sends what may be sent. What may be cancelled waits until no other call is with the worker: it begins at once. */
  #advance(): void {
    for (let next = this.#waiting[0]; next && !(next.signal && this.#sent.size > 0); next = this.#waiting[0]) {
      this.#waiting.shift();
      try {
        this.#port.postMessage(next.call, [...next.moved]);
        this.#sent.set(next.call.id, next);
      } catch (cause) {
        next.reject(notSent(next.name, cause));
      }
    }
    if (this.#sent.size > 0) this.#port.ref?.();
    else this.#port.unref?.();
  }

  #answer({ id, value, error }: Answer): void {
    const pending = this.#sent.get(id);
    if (!pending) return;
    this.#sent.delete(id);
    this.#advance();
    if (error) return pending.reject(error.code ? new QkvError(error.code, error.message, error.cause ? error : undefined) : error);
    const result = this.#unpacked(value, pending.name);
    // Nobody will have what a cancelled call has made.
    if (pending.signal?.aborted) (result as Partial<RemoteDisposal> | undefined)?.dispose?.();
    pending.resolve(result);
  }

  #unpacked(value: unknown, name: string): unknown {
    return rebuild(value, (part) => {
      if (classOf(part) !== 'Map') return ArrayBuffer.isView(part) ? part : undefined;
      const map = part as Special;
      if (map.has('made')) return this.#remote(map.get('made') as Made, name);
      const [data, shape] = map.get('tensor') as [Float32Array, number[]];
      return tensor(data, shape);
    });
  }

  /** What stands here for something in the worker that the call `name` has made. */
  #remote({ target, methods, properties }: Made, name: string): object {
    const remote: Record<PropertyKey, unknown> = {};
    const isEngine = name === START;
    let isDisposed = false;
    const call = async (member: string, given: readonly unknown[]): Promise<unknown> => {
      const called = isEngine ? member : `${name}.${member}`;
      if (isDisposed) throw new QkvError('DISPOSED', `${called}: this was disposed; engine.${name}() gives a new one.`);
      if (called === 'adam.step') return this.#step(target, called, given);
      return this.#call(target, member, called, readGiven(given));
    };
    const dispose = async (): Promise<void> => {
      if (isEngine) return this.#dispose();
      if (isDisposed) return;
      // An engine that is disposed has no memory to give back.
      const done = call('dispose', []).then(() => {}, () => {});
      isDisposed = true;
      return done;
    };
    for (const method of methods) remote[method] = (...given: unknown[]) => call(method, given);
    for (const property of properties) Object.defineProperty(remote, property, { get: () => call(property, []) });
    remotes.set(remote, { connection: this, target });
    const disposeNow = () => void dispose();
    return Object.assign(remote, { dispose: disposeNow, [Symbol.dispose]: disposeNow, [Symbol.asyncDispose]: dispose });
  }

  #dispose(): Promise<void> {
    return this.#close((name) => new QkvError('DISPOSED', `${name}: this engine was disposed; spawn() gives a new one.`));
  }

  async #close(end: (name: string) => QkvError): Promise<void> {
    if (!this.#end) {
      this.#end = end;
      for (const { name, reject } of [...this.#sent.values(), ...this.#waiting.splice(0)]) reject(end(name));
      this.#sent.clear();
    }
    await this.#port.terminate();
  }
}

/** Buffers that the host does not give, or does not let go. */
function notSent(name: string, cause: unknown): QkvError {
  const code = (cause as Error).name === 'RangeError' ? 'OUT_OF_MEMORY' : 'INVALID_ARGUMENT';
  return new QkvError(code, `${name}: the arguments could not be sent to the worker: ${(cause as Error).message}.`, { cause });
}

interface Written {
  readonly output: Tensor;
}

/** Memory of the caller's that a call writes to. */
interface Place {
  readonly data: Float32Array;
}

function fill(place: Place, data: Float32Array, name: string): void {
  if (place.data.length !== data.length) invalid(`${name}: its memory was transferred away while the call ran.`);
  place.data.set(data);
}

/** The result with its output in the caller's memory. */
function written(result: Written, out: Place): Written {
  const { data, shape, constructor } = result.output;
  fill(out, data, 'out');
  return { ...result, output: (out instanceof constructor ? out : tensor(out.data, shape)) as Tensor };
}
