// What models of the training workloads learn from: to recall the first symbol at the end.
import { seeded } from './inputs.mjs';

/** { tokens: (batch, length), targets: (batch) }, the same in every process and host. */
export function trainingBatch({ batch, length, vocab }) {
  const next = seeded(7);
  const tokens = Int32Array.from({ length: batch * length }, () => Math.floor(vocab * next()));
  return { tokens, targets: Int32Array.from({ length: batch }, (_, b) => tokens[b * length]) };
}

/** The losses of this many steps are compared: gradients and Adam show in all but the first. */
export const COMPARED_STEPS = 5;

export const ADAM = { lr: 0.003, betas: [0.9, 0.999], eps: 1e-7 };
