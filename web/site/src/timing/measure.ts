// How long something takes, on a machine that does other things too: samples long enough for a coarse clock,
// contestants in turn, until the medians hold still; and a winner only where the quartiles leave no doubt.

export interface Contestant {
  readonly name: string;
  run(): void;
}

export interface Timing {
  readonly name: string;
  /** Milliseconds per run, one number per sample. */
  readonly samples: readonly number[];
  readonly lower: number;
  readonly median: number;
  readonly upper: number;
}

export interface Measurement {
  readonly timings: readonly Timing[];
  /** False when the medians still moved after the last round. */
  readonly stable: boolean;
}

export interface MeasureOptions {
  /** Milliseconds, from any origin. */
  clock: () => number;
  /** Awaited between samples, so that the thread can hear of a cancellation. */
  pause: () => Promise<void>;
  signal?: AbortSignal;
  onRound?: (round: number) => void;
  shortestSample?: number;
  fewestRounds?: number;
  mostRounds?: number;
}

export const roundLimits = { fewest: 7, most: 31 } as const;
const steadyRounds = 3;
const steadyWithin = 0.02;
const mostRepetitions = 1e8;

export async function measure(contestants: readonly Contestant[], options: MeasureOptions): Promise<Measurement> {
  const { fewestRounds = roundLimits.fewest, mostRounds = roundLimits.most } = options;
  const samplers = contestants.map((contestant) => new Sampler(contestant, options));
  const medians = contestants.map(() => [] as number[]);
  for (let round = 1; round <= mostRounds; round++) {
    for (let turn = 0; turn < samplers.length; turn++) {
      // Whoever begins may find a cold cache: begin with another one each round.
      await samplers[(round + turn) % samplers.length]!.sample();
    }
    samplers.forEach((sampler, i) => medians[i]!.push(quantile(sampler.samples, 0.5)));
    options.onRound?.(round);
    if (round >= fewestRounds && medians.every(holdsStill)) return { timings: samplers.map(summarise), stable: true };
  }
  return { timings: samplers.map(summarise), stable: false };
}

/** The fastest contestant's name, or nothing when another one's quartile range touches its own. */
export function winner(timings: readonly Timing[]): string | undefined {
  const [first, ...others] = [...timings].sort((a, b) => a.median - b.median);
  return first && others.every(({ lower }) => first.upper < lower) ? first.name : undefined;
}

/** The value below which the given part of the samples lies, linear between two samples. */
export function quantile(samples: readonly number[], part: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const place = part * (sorted.length - 1);
  const below = sorted[Math.floor(place)]!;
  const above = sorted[Math.ceil(place)]!;
  return below + (above - below) * (place - Math.floor(place));
}

class Sampler {
  readonly samples: number[] = [];
  readonly contestant: Contestant;
  readonly #options: MeasureOptions;
  readonly #shortest: number;
  #repetitions = 1;

  constructor(contestant: Contestant, options: MeasureOptions) {
    this.contestant = contestant;
    this.#options = options;
    this.#shortest = options.shortestSample ?? 20;
  }

  /** Takes one sample; one that was too short for the clock is taken again with more repetitions. */
  async sample(): Promise<void> {
    for (;;) {
      await this.#options.pause();
      this.#options.signal?.throwIfAborted();
      const elapsed = this.#time();
      if (elapsed >= this.#shortest) {
        this.samples.push(elapsed / this.#repetitions);
        return;
      }
      const factor = elapsed > 0 ? Math.min(10, (1.2 * this.#shortest) / elapsed) : 10;
      this.#repetitions = Math.ceil(this.#repetitions * factor);
      if (this.#repetitions > mostRepetitions) throw new Error('The clock of this browser does not move: nothing can be timed with it.');
    }
  }

  #time(): number {
    const { clock } = this.#options;
    const start = clock();
    for (let i = 0; i < this.#repetitions; i++) this.contestant.run();
    return clock() - start;
  }
}

function holdsStill(medians: readonly number[]): boolean {
  const recent = medians.slice(-steadyRounds);
  return Math.max(...recent) - Math.min(...recent) <= steadyWithin * recent.at(-1)!;
}

function summarise({ contestant, samples }: Sampler): Timing {
  const [lower, median, upper] = [0.25, 0.5, 0.75].map((part) => quantile(samples, part)) as [number, number, number];
  return { name: contestant.name, samples, lower, median, upper };
}
