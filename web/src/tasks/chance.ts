import { randomNumbers } from '../random.js';

/** Seeded choices. */
export class Chance {
  readonly #next: () => number;

  /** `stream`: another series of the same seed. */
  constructor(seed: number, stream: number) {
    this.#next = randomNumbers(hashed([seed % 2 ** 32, Math.floor(seed / 2 ** 32)], stream));
  }

  /** A whole number from 0, below `limit`. */
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  /** `count` whole numbers from 0, below `limit`. */
  list(count: number, limit: number): number[] {
    return Array.from({ length: count }, () => this.below(limit));
  }

  /** `count` of the whole numbers from 0 below `limit`, each at most once, in any order. */
  some(count: number, limit: number): number[] {
    const all = Array.from({ length: limit }, (_, i) => i);
    // Fisher and Yates, as far as it is needed.
    for (let i = 0; i < count; i++) {
      const other = i + this.below(limit - i);
      [all[i], all[other]] = [all[other]!, all[i]!];
    }
    return all.slice(0, count);
  }

  /** The same elements in any order. */
  shuffled<T>(list: readonly T[]): T[] {
    return this.some(list.length, list.length).map((i) => list[i]!);
  }
}

/** 32 bits that depend on every number and on their order; each is mixed in as MurmurHash3 ends (A. Appleby, public domain). */
export function hashed(numbers: Iterable<number>, salt: number): number {
  let hash = salt | 0;
  for (const number of numbers) {
    hash = Math.imul(hash ^ number, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash >>> 0;
}
