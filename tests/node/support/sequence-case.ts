// Small models of every kind, and tokens for them.
import { type Engine, type SequenceModel, type SequenceModelOptions, type SequenceOptions, type Tensor, tensor } from 'qkv';

import { randomSource } from './reference.js';

/** Whole numbers from 0, below `limit`. */
export function randomTokens(count: number, limit: number, seed: number): Int32Array<ArrayBuffer> {
  const random = randomSource(seed);
  return Int32Array.from({ length: count }, () => Math.floor(((random() + 1) / 2) * limit));
}

export interface SequenceCase {
  readonly name: string;
  readonly options: SequenceModelOptions;
  readonly tokens: Tensor;
  readonly targets: number[] | Tensor;
  readonly given: SequenceOptions;
}

const [VOCAB, BATCH, LENGTH, CONTEXT] = [7, 3, 5, 4] as const;
const ints = (seed: number, limit: number, ...shape: number[]) => tensor(randomTokens(shape.reduce((a, b) => a * b), limit, seed), shape);

function one(options: Omit<SequenceModelOptions, 'vocab' | 'embedDim'>, given: SequenceOptions = {}): SequenceCase {
  const { readout, classes = VOCAB } = options;
  const ragged = given.lengths !== undefined;
  const positions = (given.contextLengths ?? (given.context ? Array(BATCH).fill(CONTEXT) : given.lengths ?? Array(BATCH).fill(LENGTH))) as number[];
  const every = tensor(ints(3, classes, BATCH, LENGTH).data.map((target, i) => (i % 4 === 1 ? -1 : target)), [BATCH, LENGTH]);
  return {
    name: `${JSON.stringify(options)}${given.context ? ' with a context' : ''}${ragged ? ' with lengths' : ''}`,
    options: { vocab: VOCAB, embedDim: 4, seed: 5, ...options },
    tokens: ints(1, VOCAB, BATCH, LENGTH),
    targets: readout === 'every' ? every : readout === 'pointer' ? positions.map((length, i) => (i * 2) % length) : [...randomTokens(BATCH, classes, 4)],
    given,
  };
}

const LENGTHS = { lengths: [5, 2, 4] };
const AT = { lengths: [5, 2, 4], at: [1, 0, 3] };
const context = ints(2, VOCAB, BATCH, CONTEXT);

/** Every mixer, readout, tie and kind of positions, and what a call may be told. */
export const sequenceCases: readonly SequenceCase[] = [
  one({ mixer: 'attention', readout: 'last', layers: 2, numHeads: 2 }, LENGTHS),
  one({ mixer: 'attention', readout: 'every', positions: 'learned', maxLength: 6, causal: true, classes: 3 }, LENGTHS),
  one({ mixer: 'attention', readout: 'pointer', positions: 'rotary', layers: 2 }, AT),
  one({ mixer: 'attention', readout: 'last', ties: 'query-key', positions: 'none', residual: false }, AT),
  one({ mixer: 'attention', readout: 'every', ties: 'value-input', numHeads: 2, layers: 2 }),
  one({ mixer: 'attention', readout: 'last', ties: 'all', positions: 'rotary' }),
  one({ mixer: 'attention', readout: 'pointer', ties: 'query-key', numHeads: 2 }, LENGTHS),
  one({ mixer: 'attention', readout: 'last', layers: 2, positions: 'learned', maxLength: 5 }, { ...LENGTHS, context, contextLengths: [4, 1, 3] }),
  one({ mixer: 'attention', readout: 'pointer', layers: 2, numHeads: 2 }, { context, contextLengths: [4, 1, 3] }),
  one({ mixer: 'attention', readout: 'every' }, { context }),
  one({ mixer: 'rnn', readout: 'last', layers: 2, recurrentStart: 'orthogonal' }, AT),
  one({ mixer: 'rnn', readout: 'every', positions: 'sinusoidal', residual: true }, LENGTHS),
  one({ mixer: 'lstm', readout: 'last', layers: 2 }, LENGTHS),
  one({ mixer: 'lstm', readout: 'every', positions: 'learned', maxLength: 5, forgetBias: { chrono: 5 } }),
  one({ mixer: 'gru', readout: 'last', layers: 2, recurrentStart: 'identity' }, AT),
  one({ mixer: 'gru', readout: 'every', residual: true, classes: 2 }, LENGTHS),
];

/** Logits, or the weights of a pointer. */
export function answersOf(model: SequenceModel, { tokens, given }: Pick<SequenceCase, 'tokens' | 'given'>): Tensor {
  const { logits, weights } = model.forward(tokens, given);
  return (logits ?? weights)!;
}

/** Sequences whose answer is their first token: (batch, length) tokens, and targets. */
export function recall(batch: number, length: number, symbols: number, seed: number): { tokens: Tensor; targets: Int32Array<ArrayBuffer> } {
  const data = randomTokens(batch * length, symbols, seed);
  return { tokens: tensor(data, [batch, length]), targets: Int32Array.from({ length: batch }, (_, i) => data[i * length]!) };
}

/** How many steps it takes until the mean accuracy of the last ten batches of recall() is above 0.95; Infinity beyond `most`. */
export function stepsToRecall(engine: Engine, options: Omit<SequenceModelOptions, 'vocab' | 'readout'>, length: number, most: number): number {
  using model: SequenceModel<'last'> = engine.sequenceModel({ vocab: 8, readout: 'last', ...options });
  const last: number[] = [];
  for (let step = 1; step <= most; step++) {
    const { tokens, targets } = recall(32, length, 8, step);
    last.push(model.trainStep(tokens, targets).accuracy);
    const recent = last.slice(-10);
    if (recent.length === 10 && recent.reduce((a, b) => a + b) / 10 > 0.95) return step;
  }
  return Infinity;
}
