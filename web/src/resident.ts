import type { Argument } from './arguments.js';
import { QkvError } from './errors.js';
import type { Block, EngineMemory } from './memory.js';
import { allocate, frozen, isBytes, type Kind, type NestedNumbers, offsetOf, sizeOf, Tensor } from './tensor.js';

/** An argument that lies in an engine's memory, and what it is called. */
export interface Resident {
  readonly tensor: ResidentTensor<Float32Array | Uint8Array>;
  readonly name: string;
}

/**
 * A tensor in the engine's memory. It goes wherever a tensor goes: the engine's operations use it where it lies,
 * and nothing is copied in. Its numbers do not change, since operations write to none of their arguments. Made by
 * engine.resident().
 */
export class ResidentTensor<Data extends Float32Array | Uint8Array = Float32Array<ArrayBuffer>> {
  /** The length of each axis. */
  readonly shape: readonly number[];
  readonly #alive: (method: string) => EngineMemory;
  readonly #memory: EngineMemory;
  readonly #held: { readonly blocks: readonly Block[]; release(): void };
  readonly #kind: Kind;
  #disposed = false;

  /** @internal Use engine.resident(). */
  constructor(alive: (method: string) => EngineMemory, { data, shape }: Argument<Float32Array | Uint8Array>) {
    this.shape = frozen(shape);
    this.#alive = alive;
    this.#memory = alive('resident');
    this.#kind = isBytes(data) ? 'boolean' : 'number';
    this.#held = this.#memory.hold([data.byteLength], 'resident');
    this.#memory.write(this.#held.blocks[0]!.address, data);
  }

  /** A copy of the elements, row by row, in memory of yours. */
  get data(): Data {
    this.#use('data');
    return this.#copy(0, sizeOf(this.shape));
  }

  /**
   * One element: `x.at(row, column)`. The others are not copied.
   *
   * @param indices one for each axis, from 0
   * @throws QkvError INVALID_ARGUMENT: an index out of range, more or fewer of them than axes
   */
  at(...indices: number[]): number {
    this.#use('at');
    return this.#copy(offsetOf(this.shape, indices), 1)[0]!;
  }

  /** The numbers as nested arrays, one level for each axis. */
  toArray(): NestedNumbers {
    this.#use('toArray');
    return new Tensor(this.data, this.shape).toArray();
  }

  /** Gives its memory back to the engine. Disposing twice is harmless. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#held.release();
  }

  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  #use(member: string): void {
    if (this.#disposed) throw new QkvError('DISPOSED', `resident.${member}: this tensor was disposed; engine.resident() gives a new one.`);
    this.#alive(`resident.${member}`);
  }

  #copy(first: number, count: number): Data {
    const copy = allocate(count, 'resident', this.#kind);
    this.#memory.read(this.#held.blocks[0]!.address + first * copy.BYTES_PER_ELEMENT, copy);
    return copy as Data;
  }

  /** @internal As an argument: where it lies, if its elements are of the kind that is wanted, or else a copy. */
  static argument(tensor: ResidentTensor<Float32Array | Uint8Array>, name: string, kind?: Kind): Argument<Float32Array | Uint8Array> {
    if (tensor.#disposed) throw new QkvError('DISPOSED', `${name} is a resident tensor that was disposed; engine.resident() gives a new one.`);
    const { shape } = tensor;
    if (tensor.#kind !== kind) return { data: tensor.data, shape };
    return {
      shape,
      resident: { tensor, name },
      get data() {
        return tensor.data;
      },
    };
  }

  /** @internal Where it lies in `memory`. */
  static blockIn(memory: EngineMemory, { tensor, name }: Resident): Block {
    if (tensor.#memory === memory) return tensor.#held.blocks[0]!;
    throw new QkvError('INVALID_ARGUMENT', `${name} is a resident tensor of another engine, expected one of this engine, or one in plain memory.`);
  }

  /** @internal Whether its elements are booleans. */
  static isMask(tensor: ResidentTensor<Float32Array | Uint8Array>): boolean {
    return tensor.#kind === 'boolean';
  }
}
