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
    // Fisher and Yates, as far as it is needed; what stands elsewhere than at its own place is noted.
    const moved = new Map<number, number>();
    return Array.from({ length: count }, (_, i) => {
      const other = i + this.below(limit - i);
      const one = moved.get(other) ?? other;
      moved.set(other, moved.get(i) ?? i);
      return one;
    });
  }

  /** One or more of the whole numbers from 0 below `limit`. */
  subset(limit: number): Set<number> {
    return new Set(this.some(1 + this.below(limit), limit));
  }

  /** The same elements in any order. */
  shuffled<T>(list: readonly T[]): T[] {
    return this.some(list.length, list.length).map((i) => list[i]!);
  }
}

/** How many results {@link Chance.some} may have. */
export const orders = (count: number, limit: number): number => {
  let product = 1;
  for (let i = 0; i < count; i++) product *= limit - i;
  return product;
};

/** Chooses another way each time, the last choice first. */
class Ways extends Chance {
  readonly #made: { choice: number; readonly limit: number }[] = [];
  #at = 0;

  override below(limit: number): number {
    return (this.#made[this.#at++] ??= { choice: 0, limit }).choice;
  }

  /** Each once, and not in every order of its elements. */
  override subset(limit: number): Set<number> {
    const bits = 1 + this.below(2 ** limit - 1);
    return new Set(Array.from({ length: limit }, (_, i) => i).filter((i) => (bits >> i) & 1));
  }

  next(): boolean {
    this.#at = 0;
    for (let last; (last = this.#made.at(-1)); this.#made.pop()) {
      if (++last.choice < last.limit) return true;
    }
    return false;
  }
}

/** All that `draw` can make; it chooses the same way wherever it is told the same. */
export function* everyWay<Made>(draw: (chance: Chance) => Made): Generator<Made, void> {
  const ways = new Ways(0, 0);
  do yield draw(ways); while (ways.next());
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
