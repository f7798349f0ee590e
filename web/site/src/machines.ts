// The two machines of the first view, each taking one step at a time, and counting the steps it takes.
import { tensor, type Engine, type Tensor } from 'qkv';
import { largestDifference } from './reference.js';
import { seeded, squareWeights } from './random.js';
import { makeProjections, runStages, stages, type Trace } from './stages.js';
import type { Sentence } from './words.js';

/** Self-attention: one step is one stage, for all words at once. The engine runs all its stages in one call. */
export class AttentionMachine {
  readonly trace: Trace;
  steps = 0;

  constructor(engine: Engine, { words, vectors, dims }: Sentence, seed: number) {
    this.trace = runStages(engine, words, vectors, makeProjections('random', dims, seed));
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
  readonly states: Float32Array[] = [];
  /** The largest difference between these steps and the engine's run over the whole sentence; known at the end. */
  difference?: number;
  readonly #engine: Engine;
  readonly #sentence: Sentence;
  readonly #parameters: { wx: Tensor<Float32Array>; wh: Tensor<Float32Array> };

  constructor(engine: Engine, sentence: Sentence, seed: number) {
    const { dims } = sentence;
    const next = seeded(seed);
    this.#engine = engine;
    this.#sentence = sentence;
    this.#parameters = {
      wx: tensor(squareWeights(dims, next), [dims, dims]),
      wh: tensor(squareWeights(dims, next), [dims, dims]),
    };
  }

  get steps(): number {
    return this.states.length;
  }

  get done(): boolean {
    return this.steps === this.#sentence.words.length;
  }

  step(): void {
    const { vectors, dims } = this.#sentence;
    const word = vectors.slice(this.steps * dims, (this.steps + 1) * dims);
    const before = this.states.at(-1) ?? new Float32Array(dims);
    const { h } = this.#engine.rnnStep(tensor(word, [dims]), { h: tensor(before, [dims]) }, this.#parameters);
    this.states.push(h.data);
    if (this.done) this.difference = this.#compare();
  }

  reset(): void {
    this.states.length = 0;
    delete this.difference;
  }

  #compare(): number {
    const { vectors, dims, words } = this.#sentence;
    const { outputs } = this.#engine.rnn(tensor(vectors, [words.length, dims]), this.#parameters);
    return Math.max(...this.states.map((state, t) => largestDifference(state, outputs.data.subarray(t * dims, (t + 1) * dims))));
  }
}

/** Multiplications and additions of pairs, as both machines are written down. */
export const work = {
  attention: (n: number, d: number): number => 3 * n * d * d + 2 * n * n * d,
  attentionMixing: (n: number, d: number): number => 2 * n * n * d,
  rnn: (n: number, d: number): number => 2 * n * d * d,
};
