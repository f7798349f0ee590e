/**
 * The same engine in a worker of its own.
 *
 * @module qkv/worker
 */
import { nodeModule } from './features.js';
import type { LoadOptions } from './load.js';
import { classOf } from './tensor.js';
import { Connection } from './worker-client.js';
import type { RemoteEngine } from './worker-types.js';

export type { CallOptions, Remote, RemoteDisposal, RemoteEngine, RemoteMethod, RemoteTensor, Sent, WithCallOptions } from './worker-types.js';

/**
 * An engine in a worker of its own: what load() gives, with a promise for each result, so that long calls leave this
 * thread free. In a page that is cross-origin isolated it also has threads, which a page's own thread may not wait
 * for.
 *
 * Calls may be made at any time; they run one after another, in the order in which they were made. Arguments are
 * copied when the call is made and never detached, unless {@link CallOptions.transfer} is given; results are the
 * caller's own. Errors have the code and sentence that they have without a worker. In Node, a program does not wait
 * for a worker that has nothing to do.
 *
 * @param options those of load(); each call starts a worker of its own
 * @throws QkvError as load() does; UNSUPPORTED: a host that starts no workers; LOAD_FAILED: the worker's script could
 *   not be loaded
 */
export async function spawn(options: LoadOptions = {}): Promise<RemoteEngine> {
  const sent = options?.wasm === undefined ? options : { ...options, wasm: await portable(options.wasm) };
  return new Connection().start(sent) as Promise<RemoteEngine>;
}

/** The WebAssembly's source as the worker can be told it. What is wrong with it, load() says there. */
async function portable(wasm: unknown): Promise<unknown> {
  const source = classOf(wasm) === 'Response' ? await (wasm as Response).arrayBuffer().catch(() => new ArrayBuffer()) : wasm;
  // Of a buffer that was transferred away no view can be made.
  if (classOf(source).endsWith('ArrayBuffer')) return new Uint8Array((source as ArrayBuffer).byteLength > 0 ? (source as ArrayBuffer) : []);
  if (typeof source !== 'string' && classOf(source) !== 'URL') return source;
  // An address is relative to here, and the worker's script may be elsewhere. In Node it may be a path.
  if (nodeModule('node:fs')) return String(source);
  try {
    return new Request(source as URL).url;
  } catch {
    return String(source);
  }
}
