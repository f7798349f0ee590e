/**
 * Files of named tensors, https://github.com/huggingface/safetensors: 8 bytes, little endian, that say how long the
 * header is; the header, a JSON object of `name: { dtype, shape, data_offsets: [begin, end] }` and of `__metadata__`,
 * texts by name; the tensors' bytes side by side.
 */
import { invalid, type Numbers } from './arguments.js';
import { checkedAxes, describe, showShape, sizeOf } from './tensor.js';

/** Numbers and texts of a file, by name. Maps, since a name may be `__proto__`. */
export interface Safetensors {
  readonly tensors: ReadonlyMap<string, Numbers>;
  readonly metadata: ReadonlyMap<string, string>;
}

const LENGTH_BYTES = 8;
/** The format's own limit. */
const LONGEST_HEADER = 100_000_000;
const METADATA = '__metadata__';

/** A binary16, exactly. */
function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** Bytes of an element, and how some become float32. */
const DTYPES = new Map<unknown, readonly [bytes: number, read: (from: ArrayBuffer) => Float32Array<ArrayBuffer>]>([
  ['F32', [4, (from) => new Float32Array(from)]],
  ['F16', [2, (from) => Float32Array.from(new Uint16Array(from), fromHalf)]],
  ['BF16', [2, (from) => new Float32Array(Uint32Array.from(new Uint16Array(from), (bits) => bits << 16).buffer)]],
  ['F64', [8, (from) => new Float32Array(new Float64Array(from))]],
]);

/** An entry of the header: where the tensor is, counted from the header's end. */
interface Entry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
  readonly read: (from: ArrayBuffer) => Float32Array<ArrayBuffer>;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

/** JSON.parse() keeps the last of what comes twice, and says nothing. `json` is valid. */
function expectNamesOnce(json: string): void {
  const levels: Set<string>[] = [];
  let inText = false;
  let [begin, end] = [0, 0];
  // No pattern of a whole text: that of a long one would overflow the host's stack.
  for (const { 0: token, index } of json.matchAll(/\\.|["{}:]/g)) {
    if (token === '"') {
      if (inText) end = index + 1;
      else begin = index;
      inText = !inText;
    } else if (!inText) {
      if (token === '{') levels.push(new Set());
      else if (token === '}') levels.pop();
      else {
        const name = JSON.parse(json.slice(begin, end)) as string;
        if (levels.at(-1)!.has(name)) invalid(`load: the header has ${describe(name)} twice in one object, expected each name once.`);
        levels.at(-1)!.add(name);
      }
    }
  }
}

/** The header's object, and where the data begins. */
function readHeader(file: Uint8Array): { header: object; start: number } {
  if (file.length < LENGTH_BYTES) {
    invalid(`load: the file has ${file.length} bytes${file.length === 0 ? ' (was its buffer transferred away?)' : ''}, expected at least ${LENGTH_BYTES}.`);
  }
  const length = file.subarray(0, LENGTH_BYTES).reduceRight((sum, byte) => sum * 256 + byte, 0);
  const left = file.length - LENGTH_BYTES;
  if (length > LONGEST_HEADER) invalid(`load: the header has ${length} bytes, expected at most ${LONGEST_HEADER}.`);
  if (length > left) invalid(`load: the header has ${length} bytes, expected at most the ${left} that the file goes on.`);
  const start = LENGTH_BYTES + length;
  let json = '';
  let header: unknown;
  try {
    // A copy: text is not decoded from shared memory.
    json = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(file.slice(LENGTH_BYTES, start));
    header = JSON.parse(json);
  } catch {
    invalid('load: the header is no JSON in UTF-8, expected an object of tensors by name.');
  }
  if (!json.startsWith('{')) invalid(`load: the header begins with ${describe(json.slice(0, 1))}, expected the { of an object.`);
  expectNamesOnce(json);
  return { header: header as object, start };
}

function readEntry(name: string, given: unknown, dataBytes: number): Entry {
  const called = `load: ${describe(name)}`;
  if (!isObject(given)) return invalid(`${called} is ${describe(given)}, expected an object of dtype, shape and data_offsets.`);
  const { dtype, shape: axes, data_offsets: offsets } = given as { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
  const kind = DTYPES.get(dtype);
  if (!kind) return invalid(`${called} has dtype ${describe(dtype)}, expected ${[...DTYPES.keys()].join(' or ')}.`);
  const shape = checkedAxes(axes, `${called}.shape`);
  const [bytes, read] = kind;
  const [begin, end] = Array.isArray(offsets) && offsets.length === 2 ? (offsets as [number, number]) : [NaN, NaN];
  if (!(Number.isInteger(begin) && Number.isInteger(end) && 0 <= begin && begin <= end && end <= dataBytes)) {
    const came = Array.isArray(offsets) ? showShape(offsets.map(describe)) : describe(offsets);
    invalid(`${called}.data_offsets is ${came}, expected where its bytes begin and end, whole numbers from 0 to ${dataBytes}.`);
  }
  const wanted = sizeOf(shape) * bytes;
  if (end - begin !== wanted) invalid(`${called} has ${end - begin} bytes, expected ${wanted} for ${showShape(shape)} of ${String(dtype)}.`);
  return { name, shape, begin, end, read };
}

/** Neither holes nor overlaps, so that every byte has one meaning. */
function expectSideBySide(entries: readonly Entry[], dataBytes: number): void {
  let next = 0;
  for (const { name, begin, end } of [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== next) invalid(`load: ${describe(name)} begins at byte ${begin} of the data, expected ${next}, where the tensor before it ends.`);
    next = end;
  }
  if (next !== dataBytes) invalid(`load: the file has ${dataBytes} bytes of data, expected the ${next} of its tensors.`);
}

function readMetadata(given: unknown): Map<string, string> {
  if (given === undefined) return new Map();
  if (!isObject(given)) return invalid(`load: ${METADATA} is ${describe(given)}, expected an object of texts.`);
  const texts = Object.entries(given);
  for (const [name, text] of texts) {
    if (typeof text !== 'string') invalid(`load: ${METADATA} has ${describe(text)} for ${describe(name)}, expected a text.`);
  }
  return new Map(texts as [string, string][]);
}

/** @throws QkvError INVALID_ARGUMENT, which says what is wrong with the file */
export function readSafetensors({ buffer, byteOffset, length }: Uint8Array): Safetensors {
  // slice() of Node's Buffers would be no copy.
  const file = new Uint8Array(buffer, byteOffset, length);
  const { header, start } = readHeader(file);
  const { [METADATA]: metadata, ...tensors } = header as Record<string, unknown>;
  const dataBytes = file.length - start;
  const entries = Object.entries(tensors).map(([name, given]) => readEntry(name, given, dataBytes));
  expectSideBySide(entries, dataBytes);
  return {
    metadata: readMetadata(metadata),
    // A copy, since the data may begin anywhere.
    tensors: new Map(entries.map(({ name, shape, begin, end, read }) => [name, { data: read(file.slice(start + begin, start + end).buffer), shape }])),
  };
}

/** A file of float32 tensors, in this order, whose data begins on 8 bytes. */
export function writeSafetensors(tensors: Readonly<Record<string, Numbers>>, metadata: Readonly<Record<string, string>>): Uint8Array<ArrayBuffer> {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, { data, shape }]) =>
    [name, { dtype: 'F32', shape, data_offsets: [end, (end += data.byteLength)] }] as const);
  const json = new TextEncoder().encode(JSON.stringify({ [METADATA]: metadata, ...Object.fromEntries(entries) }));
  const start = Math.ceil((LENGTH_BYTES + json.length) / 8) * 8;
  const file = new Uint8Array(start + end).fill(32, 0, start);
  new DataView(file.buffer).setBigUint64(0, BigInt(start - LENGTH_BYTES), true);
  file.set(json, LENGTH_BYTES);
  let at = start;
  for (const { data } of Object.values(tensors)) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}
