// What the page and the timing worker say to each other.
import type { Timing } from './measure.js';

export interface Contest {
  readonly n: number;
  readonly d: number;
  /** (n, d); seeded random numbers where there are none. */
  readonly x?: Float32Array;
  readonly seed: number;
}

export type Request = { type: 'run'; contest: Contest } | { type: 'cancel' };

export interface Result extends Timing {
  /** Largest difference from the double-precision reference. */
  readonly difference: number;
  readonly multiplyAdds: number;
}

export interface Outcome {
  readonly n: number;
  readonly d: number;
  readonly results: readonly Result[];
  readonly stable: boolean;
  readonly engine: { variant: string; threads: number; reason?: string };
}

export type Reply =
  /** Again and again while the engine loads. */
  | { type: 'loading' }
  /** So many rounds are measured. */
  | { type: 'round'; round: number }
  | { type: 'done'; outcome: Outcome }
  | { type: 'cancelled' }
  | { type: 'failed'; message: string };
