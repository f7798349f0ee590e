import { check, QkvError } from './errors.js';
import type { Address, CallField, Calls, RawModule } from './module.js';
import { type Resident, ResidentTensor } from './resident.js';
import { allocate, frozen, sizeOf, Tensor } from './tensor.js';

/** Blocks begin on a cache line. */
const ALIGNMENT = 64;
const BYTES_PER_FLOAT = 4;
const BYTES_PER_FIELD = 4;
/** Bytes, more than any call struct takes. */
const LARGEST_CALL = 1024;

const align = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** Numbers or flags as they lie in memory. */
export type HeapArray = Float32Array | Float64Array | Int32Array | Uint8Array;

/** What goes into a call: an array to copy in, or an argument, which may lie in memory already. */
export type Input = HeapArray | { readonly data: HeapArray; readonly resident?: Resident };

/** A place in the engine's memory; that of a {@link Frame} has its address once the frame runs. */
export class Block {
  address: Address = 0;
  constructor(
    readonly bytes: number,
    readonly data?: HeapArray,
  ) {}
}

const NONE = new Block(0);

const isSame = (a: HeapArray, b: HeapArray): boolean =>
  a.byteLength === b.byteLength && a.byteOffset === b.byteOffset && a.buffer === b.buffer;

/**
 * The memory of one call: first say what it takes, then {@link run} one operation of the core or
 * several over the same blocks. Everything is allocated at once, before the first, so a call is
 * either refused before it begins or has all it needs.
 */
export class Frame {
  readonly #memory: EngineMemory;
  readonly #blocks: Block[] = [];
  #bytes = 0;
  readonly #workspace = new Block(0);
  #workspaceBytes = 0;
  #placed = false;

  constructor(memory: EngineMemory) {
    this.#memory = memory;
  }

  /** An input; at address 0 where there is none. What comes several times, as x of attention(x, x, x), is copied once. */
  input(given: Input | undefined): Block {
    if (given === undefined) return NONE;
    if ('resident' in given) return ResidentTensor.blockIn(this.#memory, given.resident);
    const data = 'data' in given ? given.data : given;
    return this.#blocks.find((block) => block.data && isSame(block.data, data)) ?? this.#add(new Block(data.byteLength, data));
  }

  /** An output, or what one operation hands to the next; at address 0 where it is not wanted. */
  output(shape: readonly number[], wanted = true): Block {
    return wanted ? this.#add(new Block(sizeOf(shape) * BYTES_PER_FLOAT)) : NONE;
  }

  /** What a call struct says of its scratch. Operations of one frame share it, one after another. */
  workspace(workspaceBytes: number): { workspace: Block; workspaceBytes: number } {
    this.#workspaceBytes = Math.max(this.#workspaceBytes, workspaceBytes);
    return { workspace: this.#workspace, workspaceBytes };
  }

  #add(block: Block): Block {
    this.#blocks.push(block);
    this.#bytes += align(block.bytes);
    return block;
  }

  /** Gives each block its address and copies the inputs in. */
  #place(name: string): void {
    let next = align(this.#memory.reserve(ALIGNMENT + this.#bytes + align(this.#workspaceBytes), name));
    for (const block of this.#blocks) {
      block.address = next;
      if (block.data) this.#memory.write(next, block.data);
      next += align(block.bytes);
    }
    this.#workspace.address = next;
    this.#placed = true;
  }

  /**
   * Calls the core. `name` is what the user called; of fields given twice the last counts.
   * @throws QkvError OUT_OF_MEMORY, and nothing has changed.
   */
  run<Operation extends keyof Calls>(name: string, operation: Operation, ...fields: Calls[Operation][]): void {
    check(this.#memory.module, this.call(name, operation, ...fields), name);
  }

  /** The same, for what may be refused with good reason: returns the core's status. */
  call<Operation extends keyof Calls>(name: string, operation: Operation, ...fields: Calls[Operation][]): number {
    if (!this.#placed) this.#place(name);
    return this.#memory.call(operation, fields);
  }

  /** A result: the caller's own copy, or in memory that the caller brought. */
  read(block: Block, shape: readonly number[], out?: Tensor<Float32Array>): Tensor {
    const data = out?.data ?? allocate(sizeOf(shape), 'The call');
    this.#memory.read(block.address, data);
    return (out ?? new Tensor(data, frozen(shape))) as Tensor;
  }
}

/** All memory, as what lies there. */
interface Views {
  readonly bytes: Uint8Array;
  readonly ints: Int32Array;
  readonly floats: Float32Array;
}

const viewsOf = ({ buffer }: WebAssembly.Memory): Views => ({
  bytes: new Uint8Array(buffer),
  ints: new Int32Array(buffer),
  floats: new Float32Array(buffer),
});

const isStrides = (field: object): field is readonly number[] => Array.isArray(field);

/** Where the fields of a call struct are, counted in 4 bytes. A tensor is its address and 4 strides. */
type Layout = ReadonlyMap<string, { readonly at: number; readonly isFloat: boolean }>;

/** The engine's WebAssembly memory: the only code that touches the heap. */
export class EngineMemory {
  readonly module: RawModule;
  readonly #memory: WebAssembly.Memory;
  /** The most bytes that the memory may grow to. */
  readonly limit: number;
  #views: Views;
  readonly #layouts = new Map<keyof Calls, Layout>();
  /** One region serves all calls, one after another. */
  #region = { address: 0, bytes: 0 };
  /** Where call structs are written: taken first, so that it never lies in the way of a growing region. */
  readonly #callAddress: Address;

  constructor(module: RawModule, memory: WebAssembly.Memory, limit: number) {
    this.module = module;
    this.#memory = memory;
    this.limit = limit;
    this.#views = viewsOf(memory);
    this.#callAddress = this.#allocate(LARGEST_CALL, 'load');
  }

  /** Bytes that the host has given to the engine. They are given back by disposing it. */
  get used(): number {
    return this.#memory.buffer.byteLength;
  }

  frame(): Frame {
    return new Frame(this);
  }

  /** The address of at least `bytes` bytes, which hold until the next call. */
  reserve(bytes: number, operation: string): Address {
    if (bytes <= this.#region.bytes) return this.#region.address;
    this.#region = { address: this.#allocate(bytes, operation, ' for its inputs, outputs and scratch'), bytes };
    return this.#region.address;
  }

  /** Memory that holds until it is released: blocks of these bytes. */
  hold(sizes: readonly number[], what: string): { blocks: Block[]; release(): void } {
    const blocks = sizes.map((bytes) => new Block(bytes));
    const total = blocks.reduce((sum, { bytes }) => sum + align(bytes), ALIGNMENT);
    const address = this.#allocate(total, what);
    blocks.reduce((next, block) => (block.address = next) + align(block.bytes), align(address));
    return { blocks, release: () => this.module._free(address) };
  }

  #allocate(bytes: number, operation: string, purpose = ''): Address {
    // Between calls the region holds nothing, and what is allocated may need its place.
    this.module._free(this.#region.address);
    this.#region = { address: 0, bytes: 0 };
    const address = bytes <= this.limit ? this.module._malloc(bytes) >>> 0 : 0;
    if (address !== 0) return address;
    // From there on a count of the core's, in 64 bits, has run over.
    const needed = bytes < 2 ** 63 ? bytes : `more than ${this.limit}`;
    throw new QkvError(
      'OUT_OF_MEMORY',
      `${operation} needs ${needed} bytes${purpose}, but the engine may use at most ${this.limit} bytes; give load() a larger maxMemory, or ask for less.`,
    );
  }

  /** An argument's elements where they lie: of a resident one until memory grows. */
  elements(given: { readonly data: Float32Array; readonly resident?: Resident }): Float32Array {
    if (!given.resident) return given.data;
    const { address, bytes } = ResidentTensor.blockIn(this, given.resident);
    return this.#upTo(address + bytes).floats.subarray(address / BYTES_PER_FLOAT, (address + bytes) / BYTES_PER_FLOAT);
  }

  write(address: Address, data: HeapArray): void {
    const { bytes, floats } = this.#upTo(address + data.byteLength);
    if (data instanceof Float32Array) floats.set(data, address / BYTES_PER_FLOAT);
    else bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), address);
  }

  /** Fills `into` from the heap. */
  read(address: Address, into: HeapArray): void {
    const end = address + into.byteLength;
    const { bytes, floats } = this.#upTo(end);
    if (into instanceof Float32Array) into.set(floats.subarray(address / BYTES_PER_FLOAT, end / BYTES_PER_FLOAT));
    else new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(bytes.subarray(address, end));
  }

  /** Calls an operation of the core and returns its status. What the fields leave out is 0. */
  call<Operation extends keyof Calls>(operation: Operation, fieldSets: readonly Calls[Operation][]): number {
    return this.ask(operation, fieldSets, (call) => this.module[operation](call));
  }

  /** What the core answers to a question about a call, or to the call itself. */
  ask<Operation extends keyof Calls>(operation: Operation, fieldSets: readonly Calls[Operation][], question: (call: Address) => number): number {
    const layout = this.#layoutOf(operation);
    const { ints, floats } = this.#upTo(this.#callAddress + LARGEST_CALL);
    const start = this.#callAddress / BYTES_PER_FIELD;
    ints.fill(0, start, start + LARGEST_CALL / BYTES_PER_FIELD);
    for (const fields of fieldSets) {
      for (const name in fields) {
        const field = fields[name] as CallField | readonly number[] | undefined;
        if (field === undefined) continue;
        const place = layout.get(name);
        if (!place) throw new TypeError(`The core's ${operation} has no ${name}.`);
        const at = start + place.at;
        if (place.isFloat) floats[at] = field as number;
        else if (typeof field !== 'object') ints[at] = Number(field);
        else if (isStrides(field)) ints.set(field, at);
        else ints[at] = field.address;
      }
    }
    return question(this.#callAddress);
  }

  /** The core's text at this address. */
  text(start: Address): string {
    const { bytes } = this.#upTo(this.used);
    // A copy: text is not decoded from shared memory.
    return new TextDecoder().decode(bytes.slice(start, bytes.indexOf(0, start)));
  }

  /** What the core says of a call struct: "query:t,log_sum_exp:i,scale:f,". */
  #layoutOf(operation: keyof Calls): Layout {
    const known = this.#layouts.get(operation);
    if (known) return known;
    const text = this.text(this.module[`${operation}Layout`]());
    const layout = new Map<string, { at: number; isFloat: boolean }>();
    let at = 0;
    for (const field of text.split(',').slice(0, -1)) {
      const [theirs, kind] = field.split(':') as [string, string];
      const name = theirs.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
      layout.set(name, { at: at++, isFloat: kind === 'f' });
      if (kind !== 't') continue;
      layout.set(`${name}Strides`, { at, isFloat: false });
      at += 4;
    }
    this.#layouts.set(operation, layout);
    return layout;
  }

  /** Views that reach as far as `end`. Once memory has grown old ones are empty or, where it is shared, short. */
  #upTo(end: number): Views {
    if (this.#views.bytes.length < end) this.#views = viewsOf(this.#memory);
    return this.#views;
  }
}
