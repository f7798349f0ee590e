import { check, QkvError } from './errors.js';
import type { Address, CallField, Calls, RawModule } from './module.js';
import { allocate, sizeOf, Tensor } from './tensor.js';

/** Blocks begin on a cache line. */
const ALIGNMENT = 64;
const BYTES_PER_FLOAT = 4;
const BYTES_PER_FIELD = 4;

const align = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** One argument's place in a {@link Frame}; its address holds once the frame is placed. */
class Block {
  address: Address = 0;
  constructor(
    readonly bytes: number,
    readonly data?: Float32Array | Uint8Array,
  ) {}
}

const NONE = new Block(0);

/**
 * The memory of one call: first say what it takes, then {@link run} it. Everything is allocated at
 * once and nothing while the core runs, so a call is either refused before it begins or has all it
 * needs.
 */
export class Frame {
  readonly #memory: EngineMemory;
  readonly #blocks: Block[] = [];

  constructor(memory: EngineMemory) {
    this.#memory = memory;
  }

  /** An input; at address 0 where there is none. */
  input(data: Float32Array | Uint8Array | undefined): Block {
    return data === undefined ? NONE : this.#add(new Block(data.byteLength, data));
  }

  /** An output; at address 0 where it is not wanted. */
  output(shape: readonly number[], wanted = true): Block {
    return wanted ? this.#add(new Block(sizeOf(shape) * BYTES_PER_FLOAT)) : NONE;
  }

  /** What a call struct says of its scratch. */
  workspace(workspaceBytes: number): { workspace: Block; workspaceBytes: number } {
    return { workspace: this.#add(new Block(workspaceBytes)), workspaceBytes };
  }

  #add(block: Block): Block {
    this.#blocks.push(block);
    return block;
  }

  /**
   * Copies the inputs in and calls the core. `name` is what the user called.
   * @throws QkvError OUT_OF_MEMORY, and nothing has changed.
   */
  run<Operation extends keyof Calls>(name: string, operation: Operation, fields: Calls[Operation]): void {
    const { module } = this.#memory;
    const layout = this.#memory.layoutOf(operation);
    const call = this.#add(new Block(layout.length * BYTES_PER_FIELD));
    const total = this.#blocks.reduce((sum, block) => sum + align(block.bytes), ALIGNMENT);
    let next = align(this.#memory.reserve(total, name));
    for (const block of this.#blocks) {
      block.address = next;
      if (block.data) this.#memory.write(block.address, block.data);
      next += align(block.bytes);
    }
    this.#memory.writeCall(call.address, layout, fields);
    check(module, module[operation](call.address), name);
  }

  /** A result: the caller's own copy. */
  read(block: Block, shape: readonly number[]): Tensor {
    return new Tensor(this.#memory.read(block.address, sizeOf(shape)), Object.freeze([...shape]));
  }
}

/** The fields of a call struct, 4 bytes each, in order. */
type Layout = readonly { readonly name: string; readonly isFloat: boolean }[];

/**
 * The engine's WebAssembly memory: the only code that touches the heap. Views are made anew whenever
 * memory has grown, since growth leaves old ones empty (or, when shared, short).
 */
export class EngineMemory {
  readonly module: RawModule;
  readonly #memory: WebAssembly.Memory;
  /** The most bytes that the memory may grow to. */
  readonly limit: number;
  #bytes: Uint8Array;
  readonly #layouts = new Map<keyof Calls, Layout>();
  /** One region serves all calls, one after another. */
  #region = { address: 0, bytes: 0 };

  constructor(module: RawModule, memory: WebAssembly.Memory, limit: number) {
    this.module = module;
    this.#memory = memory;
    this.limit = limit;
    this.#bytes = new Uint8Array(memory.buffer);
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
    this.module._free(this.#region.address);
    this.#region = { address: 0, bytes: 0 };
    const address = bytes <= this.limit ? this.module._malloc(bytes) >>> 0 : 0;
    if (address === 0) {
      throw new QkvError(
        'OUT_OF_MEMORY',
        `${operation} needs ${bytes} bytes for its inputs, outputs and scratch, but the engine may use at most ${this.limit} bytes; give load() a larger maxMemory, or ask for less.`,
      );
    }
    this.#region = { address, bytes };
    return address;
  }

  write(address: Address, data: Float32Array | Uint8Array): void {
    this.#view().set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), address);
  }

  read(address: Address, floats: number): Float32Array<ArrayBuffer> {
    const result = allocate(floats, 'The call');
    const end = address + result.byteLength;
    new Uint8Array(result.buffer).set(this.#view().subarray(address, end));
    return result;
  }

  /** What the core says of a call struct: "log_sum_exp:i,scale:f,". */
  layoutOf(operation: keyof Calls): Layout {
    let layout = this.#layouts.get(operation);
    if (!layout) {
      const bytes = this.#view();
      const start = this.module[`${operation}Layout`]();
      // A copy: text is not decoded from shared memory.
      const text = new TextDecoder().decode(bytes.slice(start, bytes.indexOf(0, start)));
      layout = text.split(',').slice(0, -1).map((field) => {
        const [name, kind] = field.split(':') as [string, string];
        return { name: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()), isFloat: kind === 'f' };
      });
      this.#layouts.set(operation, layout);
    }
    return layout;
  }

  writeCall<Operation extends keyof Calls>(address: Address, layout: Layout, fields: Calls[Operation]): void {
    const view = new DataView(this.#memory.buffer, address);
    layout.forEach(({ name, isFloat }, i) => {
      const field = fields[name as keyof Calls[Operation]] as CallField | undefined;
      if (field === undefined) throw new TypeError(`The core wants ${name}, which module.ts does not know.`);
      if (isFloat) view.setFloat32(i * BYTES_PER_FIELD, field as number, true);
      else view.setInt32(i * BYTES_PER_FIELD, typeof field === 'object' ? field.address : Number(field), true);
    });
  }

  #view(): Uint8Array {
    const { buffer } = this.#memory;
    if (this.#bytes.buffer !== buffer || this.#bytes.byteLength !== buffer.byteLength) {
      this.#bytes = new Uint8Array(buffer);
    }
    return this.#bytes;
  }
}
