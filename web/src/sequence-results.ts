import type { Readout } from './sequence-options.js';
import type { Tensor } from './tensor.js';

/** What forward() gives: logits, or the weights of readout `'pointer'`. */
export type SequenceForward<Kind extends Readout = Readout> = Kind extends 'pointer'
  ? {
      /** How likely each position is, (length) or (batch, length); of the context's where there is one. */
      weights: Tensor;
      /** Of other readouts. */
      logits?: undefined;
    }
  : {
      /**
       * (classes) or (batch, classes); with readout `'every'` (length, classes) or (batch, length, classes), 0 beyond
       * a sequence's length.
       */
      logits: Tensor;
      /** Of readout `'pointer'`. */
      weights?: undefined;
    };

/** How well a model answers. */
export interface SequenceResult {
  /** The mean cross entropy of the answers, natural log: 0 where there are none. A pointer's weight below 2^-100 counts as that. */
  loss: number;
  /** The share of answers whose first largest logit or weight is the target's. */
  accuracy: number;
}

/** And how that changes with its parameters. */
export interface SequenceGradients extends SequenceResult {
  /** The loss's gradients, by the names and of the shapes of `parameters`. */
  gradients: Record<string, Tensor>;
}
