/** The script of the worker: holds the engine and what it made, and answers one call after another. */
import { nodeModule } from './features.js';
import { load, QkvError } from './index.js';
import type { Tensor } from './tensor.js';
import { type Answer, type Call, type Made, rebuild, ROOT, special, type Target } from './worker-protocol.js';

interface Port {
  postMessage(answer: Answer, transfer: Transferable[]): void;
  onmessage: ((event: { readonly data: Call }) => void) | null;
  onmessageerror: (() => void) | null;
}

type Members = Record<string, unknown>;

const port = nodeModule<{ parentPort: Port }>('node:worker_threads')?.parentPort ?? (globalThis as unknown as Port);
const objects = new Map<Target, Members>([[ROOT, { load }]]);
const targets = new WeakMap<Members, Target>();
/** The last that was disposed. As an argument it is refused with the same words as any other. */
let disposed: Members | undefined;
let count = ROOT;
let last = Promise.resolve();

port.onmessage = ({ data }) => {
  last = last.then(() => answer(data));
};
// Nobody knows whose call it was, so all have to end.
port.onmessageerror = () => {
  throw new Error('a call could not be read');
};

async function answer({ id, target, member, values }: Call): Promise<void> {
  const moved = new Set<Transferable>();
  try {
    const object = objects.get(target)!;
    const found = object[member];
    const isMethod = typeof found === 'function';
    const result: unknown = isMethod ? await found.apply(object, rebuild(values, revived)) : found;
    if (member === 'dispose') {
      objects.delete(target);
      disposed = object;
    }
    // A result belongs to the caller, so its memory moves there. What a property holds stays in use.
    const value = rebuild(result, (part) => packed(part, isMethod ? moved : new Set()));
    port.postMessage({ id, value }, [...moved]);
  } catch (error) {
    const { code, message, cause } = error as QkvError;
    port.postMessage({ id, error: error instanceof QkvError ? { code, message, cause } : (error as Error) }, []);
  }
}

function packed(part: object, moved: Set<Transferable>): unknown {
  if ('dispose' in part) return special('made', keep(part as Members));
  if (!('toArray' in part)) return ArrayBuffer.isView(part) ? part : undefined;
  const { data, shape } = part as Tensor;
  moved.add(data.buffer);
  return special('tensor', [data, shape]);
}

function keep(object: Members): Made {
  // A layer's resident parameters come more than once.
  const target = targets.get(object) ?? ++count;
  targets.set(object, target);
  objects.set(target, object);
  const methods: string[] = [];
  const properties = Object.keys(object);
  for (let level = Object.getPrototypeOf(object); level !== Object.prototype; level = Object.getPrototypeOf(level)) {
    for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (name !== 'constructor') (get ? properties : methods).push(name);
    }
  }
  return { target, methods, properties };
}

function revived(part: object): unknown {
  if (!(part instanceof Map)) return ArrayBuffer.isView(part) || part instanceof WebAssembly.Module ? part : undefined;
  if (part.has('made')) return objects.get(part.get('made') as Target) ?? disposed;
  // Only its name is of interest, in the sentence that refuses it.
  const name = part.get('class') as string;
  return name === 'function' ? () => {} : name === 'symbol' ? Symbol() : { constructor: { name }, [Symbol.toStringTag]: name };
}
