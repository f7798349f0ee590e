// The two machines of the first view, each showing one step at a time, and counting the steps it shows.
import { tensor } from 'qkv';
import type { RemoteEngine } from 'qkv/worker';
import { largestDifference } from './reference.js';
import { seeded, squareWeights } from './random.js';
import { makeProjections, runStages, stages, type Trace } from './stages.js';
import type { Sentence } from './words.js';

/** Self-attention: one step is one stage, for all words at once. The engine runs all its stages in one call. */
export class AttentionMachine {
  readonly trace: Trace;
  steps = 0;

  constructor(trace: Trace) {
    this.trace = trace;
  }

  static async run(engine: RemoteEngine, { words, vectors, dims }: Sentence, seed: number): Promise<AttentionMachine> {
    return new AttentionMachine(await runStages(engine, words, vectors, makeProjections('random', dims, seed)));
  }

  get done(): boolean {
    return this.steps === stages.length;
  }

  step(): void {
    this.steps++;
  }

  reset(): void {
    this.steps = 0;
  }
}

/** The RNN: one step is one call to the engine for one word, with the state of the word before. */
export class RnnMachine {
  /** What its calls have given, one for each word. */
  readonly #given: readonly Float32Array[];
  readonly #difference: number;
  steps = 0;

  constructor(given: readonly Float32Array[], difference: number) {
    this.#given = given;
    this.#difference = difference;
  }

  static async run(engine: RemoteEngine, { words, vectors, dims }: Sentence, seed: number): Promise<RnnMachine> {
    const next = seeded(seed);
    const parameters = {
      wx: tensor(squareWeights(dims, next), [dims, dims]),
      wh: tensor(squareWeights(dims, next), [dims, dims]),
    };
    const given: Float32Array[] = [];
    for (let t = 0; t < words.length; t++) {
      const word = tensor(vectors.slice(t * dims, (t + 1) * dims), [dims]);
      const before = tensor(given.at(-1) ?? new Float32Array(dims), [dims]);
      given.push((await engine.rnnStep(word, { h: before }, parameters)).h.data);
    }
    const { outputs } = await engine.rnn(tensor(vectors, [words.length, dims]), parameters);
    const differences = given.map((state, t) => largestDifference(state, outputs.data.subarray(t * dims, (t + 1) * dims)));
    return new RnnMachine(given, Math.max(...differences));
  }

  get states(): readonly Float32Array[] {
    return this.#given.slice(0, this.steps);
  }

  /** The largest difference between these steps and the engine's run over the whole sentence; shown at the end. */
  get difference(): number | undefined {
    return this.done ? this.#difference : undefined;
  }

  get done(): boolean {
    return this.steps === this.#given.length;
  }

  step(): void {
    this.steps++;
  }

  reset(): void {
    this.steps = 0;
  }
}

/** Multiplications and additions of pairs, as both machines are written down. */
export const work = {
  attention: (n: number, d: number): number => 3 * n * d * d + 2 * n * n * d,
  attentionMixing: (n: number, d: number): number => 2 * n * n * d,
  rnn: (n: number, d: number): number => 2 * n * d * d,
};
