import { QkvError } from './errors.js';
import { nodeModule } from './features.js';
import type { Answer, Call } from './worker-protocol.js';

/** A worker, the same for browsers and Node. */
export interface Port {
  postMessage(call: Call, transfer: Transferable[]): void;
  terminate(): Promise<number> | void;
  /** Node only: whether a program waits for it before it ends. */
  ref?(): void;
  unref?(): void;
}

type Listener = (event: never) => void;
interface HostPort extends Port {
  on?(event: string, listener: Listener): void;
  addEventListener?(event: string, listener: Listener): void;
}
type NodeWorker = new (script: URL, options: object) => HostPort;

/** @param onEnd hears why the worker is not there any more */
export function openPort(onAnswer: (answer: Answer) => void, onEnd: (reason: string) => void): Port {
  const port = startWorker();
  const listen = (event: string, listener: Listener) => (port.on ? port.on(event, listener) : port.addEventListener!(event, listener));
  // Node's events are the data itself, the error itself, the exit code.
  listen('message', (event: MessageEvent<Answer>) => onAnswer(port.on ? (event as unknown as Answer) : event.data));
  listen('messageerror', () => onEnd('an answer could not be read'));
  listen('error', (event: ErrorEvent) => {
    // The calls tell of it.
    event.preventDefault?.();
    onEnd(event.message || 'its script could not be loaded');
  });
  listen('exit', (code: number) => onEnd(`it ended with exit code ${code}`));
  return port;
}

function startWorker(): HostPort {
  const node = nodeModule<{ Worker: NodeWorker }>('node:worker_threads');
  if (!node && typeof Worker === 'undefined') {
    throw new QkvError('UNSUPPORTED', 'spawn: this host starts no workers from here; load() gives an engine without one.');
  }
  try {
    // Not the literal that bundlers follow: they would make a second file of it. Of the program's flags, workers
    // refuse some, such as --input-type.
    if (node) return new node.Worker(new URL(import.meta.url.replace(/[^/]*$/, 'worker-side.js')), { name: 'qkv', execArgv: [] });
    return new Worker(new URL('./worker-side.js', import.meta.url), { type: 'module' }) as unknown as HostPort;
  } catch (cause) {
    throw notStarted((cause as Error).message, { cause });
  }
}

export const notStarted = (reason: string, options?: ErrorOptions): QkvError =>
  new QkvError('LOAD_FAILED', `spawn: the worker could not be started: ${reason.replace(/\.$/, '')}.`, options);
