import { type Destination, destination, expectOptions, expectShape, type Numbers, numbers, wholeNumber } from './arguments.js';
import { AttentionCall, type AttentionResult } from './attention.js';
import { SCORE_OPTIONS, type ScoreOptions } from './score-options.js';
import { QkvError } from './errors.js';
import { type AttentionHeads, contiguousHeads, expectGroups, type Heads } from './heads.js';
import type { Block, EngineMemory } from './memory.js';
import { LONGEST_AXIS, type TensorLike } from './tensor.js';

/** Sizes of a cache, whole numbers. */
export interface KvCacheOptions {
  /** Sequences side by side, all equally long. Default 1: arguments may leave the axis out. */
  batch?: number | undefined;
  /** Heads of keys and values; fewer than the query's are grouped heads (Ainslie et al., "GQA", 2023). */
  numKvHeads: number;
  /** Dimensions of a key's head. */
  headDim: number;
  /** Dimensions of a value's head. Default headDim. */
  valueDim?: number | undefined;
  /** The most positions that it holds; their memory is taken at once. */
  capacity: number;
}

/** Attention's options: `sequences` has no meaning here, since a cache holds one sequence for each batch. */
export interface CacheAttentionOptions extends Omit<ScoreOptions, 'sequences'> {
  /** Float32 memory of the output's shape to write the output to: wholly, or not at all after an error. */
  out?: Destination | undefined;
}

/** The engine's memory, or an error that names the method where engine or cache were disposed. */
type Alive = (method: string) => EngineMemory;

const BYTES_PER_FLOAT = 4;
const ATTEND_OPTIONS = [...SCORE_OPTIONS.filter((name) => name !== 'sequences'), 'out'];

/**
 * Keys and values of past positions, kept in the engine's memory, so that a new token costs one row of
 * attention and not all of them (Shazeer, "Fast Transformer Decoding", 2019). Feeding tokens one by one gives
 * what one causal call gives. Made by engine.kvCache().
 */
export class KvCache {
  /** The most positions that it holds. */
  readonly capacity: number;
  readonly #alive: Alive;
  /** Keys and values: (batch, numKvHeads, capacity, dim) each. */
  readonly #key: Heads;
  readonly #value: Heads;
  readonly #memory: { readonly blocks: readonly Block[]; release(): void };
  #length = 0;
  #disposed = false;

  /** @internal Use engine.kvCache(). */
  constructor(alive: Alive, options: KvCacheOptions) {
    expectOptions('kvCache', options, ['batch', 'numKvHeads', 'headDim', 'valueDim', 'capacity']);
    const { batch = 1, numKvHeads, headDim, valueDim = headDim, capacity } = options;
    const sizes = Object.entries({ batch, numKvHeads, headDim, valueDim, capacity });
    for (const [name, size] of sizes) wholeNumber(size, name, 0, LONGEST_AXIS);
    this.#alive = alive;
    this.capacity = capacity;
    this.#key = contiguousHeads([batch, numKvHeads, capacity, headDim], false);
    this.#value = contiguousHeads([batch, numKvHeads, capacity, valueDim], false);
    const memory = alive('kvCache');
    const rows = batch * numKvHeads * capacity;
    this.#memory = memory.hold([headDim, valueDim].map((dim) => rows * dim * BYTES_PER_FLOAT), 'kvCache');
  }

  /** How many positions it holds. */
  get length(): number {
    return this.#length;
  }

  /**
   * Adds positions at the end.
   *
   * @param key (batch?, numKvHeads, n, headDim)
   * @param value (batch?, numKvHeads, n, valueDim)
   * @throws QkvError SHAPE_MISMATCH: other heads or dims than the cache's; INVALID_ARGUMENT: more than the
   *   capacity has room for. The cache is as before.
   */
  append(key: TensorLike, value: TensorLike): void {
    const memory = this.#use('append');
    const [batch] = this.#key.sizes;
    const ranks = batch === 1 ? [3, 4] : [4];
    const rows = [numbers(key, 'key', ...ranks), numbers(value, 'value', ...ranks)] as const;
    const added = rows[0].shape.at(-2)!;
    const expected = ({ sizes: [, heads, , dim] }: Heads, { shape }: Numbers, length: number | null) =>
      [batch, heads, length, dim].slice(4 - shape.length);
    expectShape(rows[0], 'key', expected(this.#key, rows[0], null), "the cache's heads and dim");
    expectShape(rows[1], 'value', expected(this.#value, rows[1], added), "the cache's heads and dim, and the key's length");
    if (added > this.capacity - this.#length) {
      throw new QkvError(
        'INVALID_ARGUMENT',
        `key has ${added} positions, but the cache holds ${this.#length} of at most ${this.capacity}, expected no more than ${this.capacity - this.#length}.`,
      );
    }
    const elements = rows.map((given) => memory.elements(given));
    [this.#key, this.#value].forEach(({ sizes: [, heads, , dim], strides }, i) => {
      for (let head = 0; head < batch * heads; head++) {
        const start = this.#memory.blocks[i]!.address + (head * strides[1]! + this.#length * dim) * BYTES_PER_FLOAT;
        memory.write(start, elements[i]!.subarray(head * added * dim, (head + 1) * added * dim));
      }
    });
    this.#length += added;
  }

  /**
   * Attention of queries over what the cache holds. Causal 'bottom-right' unless the options say otherwise:
   * the last query sees everything.
   *
   * @param query (batch?, numHeads, n, headDim), numHeads a multiple of numKvHeads
   * @param options those of attention(), but for layout, numHeads and sequences
   * @returns as attention() does
   */
  attend<const Options extends CacheAttentionOptions = {}>(query: TensorLike, options?: Options): AttentionResult<Options> {
    const memory = this.#use('attend');
    const given: CacheAttentionOptions = options === undefined ? {} : options;
    expectOptions('attend', given, ATTEND_OPTIONS);
    const rows = numbers(query, 'query', ...(this.#key.sizes[0] === 1 ? [3, 4] : [4]));
    const heads = this.#headsFor(rows);
    // Causal by default; where the queries are, an offset says too.
    const byDefault = given.causal === undefined;
    const placed = byDefault && given.queryOffset === undefined ? { ...given, causal: 'bottom-right' as const } : given;
    const out = destination(given.out, heads.outputShape);
    const frame = memory.frame();
    const queryBlock = frame.input(rows);
    const output = frame.output(heads.outputShape);
    const call = new AttentionCall(memory, frame, heads, placed);
    call.run('attend', queryBlock, this.#memory.blocks[0]!, this.#memory.blocks[1]!, output, byDefault ? { causal: true } : {});
    const extras = call.extras();
    return { output: frame.read(output, heads.outputShape, out), ...extras } as AttentionResult<Options>;
  }

  #headsFor({ shape }: Numbers): AttentionHeads {
    const [batch, numKvHeads, , headDim] = this.#key.sizes;
    const valueDim = this.#value.sizes[3];
    const [numHeads, queryLen] = shape.slice(-3) as [number, number];
    expectShape({ shape }, 'query', [batch, null, null, headDim].slice(4 - shape.length), "the cache's batch and dim");
    expectGroups(numHeads, numKvHeads, `query has ${numHeads} heads and the cache has ${numKvHeads}`);
    return {
      sizes: { batch, numHeads, numKvHeads, queryLen, keyLen: this.#length, headDim, valueDim },
      query: contiguousHeads([batch, numHeads, queryLen, headDim], false),
      key: this.#key,
      value: this.#value,
      output: contiguousHeads([batch, numHeads, queryLen, valueDim], false),
      outputShape: [...shape.slice(0, -1), valueDim],
      rowsShape: shape.slice(0, -1),
    };
  }

  /**
   * Keeps the first n positions.
   *
   * @param n from 0 to length
   */
  truncate(n: number): void {
    this.#use('truncate');
    this.#length = wholeNumber(n, 'n', 0, this.#length);
  }

  /** Forgets all positions. */
  reset(): void {
    this.#use('reset');
    this.#length = 0;
  }

  /** Gives its memory back to the engine. Disposing twice is harmless. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#memory.release();
  }

  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  #use(method: string): EngineMemory {
    if (this.#disposed) throw new QkvError('DISPOSED', `kvCache.${method}: this cache was disposed; engine.kvCache() gives a new one.`);
    return this.#alive(`kvCache.${method}`);
  }
}
