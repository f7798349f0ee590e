import { invalid } from './arguments.js';
import { arrayKind, classOf, isNumericArray, type NumericArray } from './tensor.js';
import { rebuild, special, type Special } from './worker-protocol.js';
import type { CallOptions } from './worker-types.js';

/** What a call was given: what is meant for the worker, and what for this side. */
export interface Given extends CallOptions {
  readonly values: readonly unknown[];
  readonly out?: { readonly data: Float32Array } | undefined;
}

const isTensor = (value: object): boolean => 'data' in value && 'shape' in value;

/** Takes out of the last argument, where that is an object of options, those that are not for the worker. */
export function readGiven(values: readonly unknown[]): Given {
  const last = values.at(-1);
  if (classOf(last) !== 'Object' || isTensor(last as object)) return { values };
  const { signal, onProgress, transfer, ...own } = last as CallOptions & Partial<Given>;
  const expect = (name: string, value: unknown, kind: string) => {
    if (value !== undefined && !classOf(value).endsWith(kind)) invalid(`${name} is of kind ${classOf(value)}, expected ${kind}.`);
  };
  expect('signal', signal, 'AbortSignal');
  expect('onProgress', onProgress, 'Function');
  expect('transfer', transfer, 'Boolean');
  return { values: [...values.slice(0, -1), own], signal, onProgress, transfer, out: own.out };
}

/**
 * The arguments as the worker can be sent them: a copy of all they hold, or with `transfer` their memory itself.
 *
 * @param moved receives the memory that goes over with them
 * @param madeOf what is sent for an object that a worker has made
 */
export function packed(
  { values, transfer, out }: Given,
  moved: Set<Transferable>,
  madeOf: (part: object) => Special | undefined,
): unknown[] {
  // What stays with an engine, or goes over as a copy, would keep no result.
  const isKept = classOf(out) === 'Object' && 'dispose' in out!;
  const known = new Map<unknown, unknown>(isKept ? [[out, special('class', 'ResidentTensor')]] : []);
  const outData = isKept ? undefined : out?.data;
  const mayMove = ({ buffer, byteLength }: NumericArray): boolean =>
    transfer === true && classOf(buffer) === 'ArrayBuffer' && byteLength > 0 && byteLength === buffer.byteLength;
  const pack = (part: object): unknown => {
    const made = madeOf(part);
    if (made) return made;
    if (isNumericArray(part)) {
      const sent = part !== outData && mayMove(part) ? part : copied(part);
      moved.add(sent.buffer as ArrayBuffer);
      return sent;
    }
    if (Array.isArray(part)) return undefined;
    if (classOf(part) === 'WebAssembly.Module') return part;
    if (classOf(part) !== 'Object') return special('class', typeof part === 'object' ? part.constructor?.name : typeof part);
    // Of tensors of other libraries, data and shape may be getters of their class.
    if (!isTensor(part) || Object.getPrototypeOf(part) === Object.prototype) return undefined;
    const { data, shape } = part as { data: unknown; shape: unknown };
    return rebuild({ data, shape }, pack, known);
  };
  return rebuild(values, pack, known) as unknown[];
}

/** In plain memory of its own, whatever it is a part of. Of memory that was transferred away, no copy can be made. */
function copied(part: NumericArray): NumericArray {
  const Kind = (globalThis as unknown as Record<string, new (from: NumericArray | number) => NumericArray>)[arrayKind(part)!]!;
  return new Kind(part.length === 0 ? 0 : part);
}
