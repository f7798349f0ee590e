import type { AdamOptions } from './adam.js';
import { expectNames, expectOptions, finite, flag, invalid, oneOf, wholeNumber } from './arguments.js';
import { describe, LONGEST_AXIS } from './tensor.js';

/** What carries information along a sequence: attention or a recurrent cell. */
export type Mixer = 'attention' | 'rnn' | 'lstm' | 'gru';

/** What a model answers: the logits of one row of a sequence, those of each, or a position. */
export type Readout = 'last' | 'every' | 'pointer';

/**
 * What a model is made of: a row of a table for each token, plus its position; `layers` mixers, each of the rows that
 * the one before it gives; and a readout.
 */
export interface SequenceModelOptions {
  /** How many tokens there are; they are whole numbers from 0 on. */
  vocab: number;
  /** Numbers in a row; of a cell also in its state. */
  embedDim: number;
  /**
   * What a layer makes of its input rows x:
   * - `'attention'`: `x + attention(x . wq, x . wk, x . wv) . wo`, heads side by side (Vaswani et al., 2017).
   * - `'rnn'`, `'lstm'`, `'gru'`: the outputs of that cell from the first row to the last, as rnn() and so on give them.
   */
  mixer: Mixer;
  /** How many mixers follow each other. Default 1. */
  layers?: number | undefined;
  /** Heads of attention; they divide embedDim. Default 1. */
  numHeads?: number | undefined;
  /**
   * How a row knows where it is: not at all; by sinusoidal() added to the table's rows; by rows of a second table that
   * is learned; or by rotary() of each head's query and key, which pairs halves. Default `'sinusoidal'` for attention
   * and `'none'` for cells, which know it by themselves. `'rotary'` is for attention.
   */
  positions?: 'none' | 'sinusoidal' | 'learned' | 'rotary' | undefined;
  /**
   * What the answer is:
   * - `'last'`: one a sequence, the logits `row . weight + bias` of its last row, or of the row `at`.
   * - `'every'`: one a row, the same logits of each.
   * - `'pointer'`: one a sequence, a position: the weights of that row in the last layer, the mean over its heads
   *   (Vinyals, Fortunato & Jaitly, "Pointer Networks", 2015). Such a layer has no wv and no wo. For attention.
   */
  readout: Readout;
  /** How many logits there are; not for `'pointer'`. Default vocab. */
  classes?: number | undefined;
  /**
   * What attention does without: `'query-key'` has one matrix for both, `'value-input'` takes x itself as the values,
   * `'all'` takes x as query, key and value. Default `'none'`: it has them all.
   */
  ties?: 'none' | 'query-key' | 'value-input' | 'all' | undefined;
  /** Whether attention sees only its own row and those before it. Default false. */
  causal?: boolean | undefined;
  /** Whether a layer adds its input to its output. Default true for attention and false for cells. */
  residual?: boolean | undefined;
  /** The longest sequence: rows of the table of `positions: 'learned'`, which needs it. */
  maxLength?: number | undefined;
  /**
   * What wh of a cell starts from, each gate's square of it: uniform numbers, 1 on its diagonal (Le, Jaitly & Hinton,
   * 2015), or a random orthogonal matrix (Saxe, McClelland & Ganguli, 2014). Default `'uniform'`.
   */
  recurrentStart?: 'uniform' | 'identity' | 'orthogonal' | undefined;
  /**
   * How much a cell keeps at the start. A number is the bias of an LSTM's forget gate, default 1. `{ chrono: length }`
   * spreads the biases of an LSTM or a GRU so that its units remember for 1 to `length` steps (Tallec & Ollivier,
   * "Can recurrent neural networks warp time?", 2018).
   */
  forgetBias?: number | {
    /** The longest time to remember, in steps; at least 3. */
    chrono: number;
  } | undefined;
  /** A whole number that says where the parameters start. Default 0. */
  seed?: number | undefined;
  /** How trainStep() steps, as adam() takes it, but that `lr` is 3e-3 by default. */
  optimizer?: AdamOptions | undefined;
  /**
   * Whether trainStep() refuses a step whose loss or whose new parameters are not finite, as it always refuses one by
   * gradients that are not; the error names the tensor and the step. Default false: they show.
   */
  check?: boolean | undefined;
}

// In the order of cpp/include/qkv/sequence_model.hpp.
const MIXERS: readonly Mixer[] = ['attention', 'rnn', 'lstm', 'gru'];
const POSITIONS = ['none', 'sinusoidal', 'learned', 'rotary'] as const;
const READOUTS: readonly Readout[] = ['last', 'every', 'pointer'];
const TIES = ['none', 'query-key', 'value-input', 'all'] as const;
const STARTS = ['uniform', 'identity', 'orthogonal'] as const;

/** The options with their defaults. What is undefined has no meaning for the model. */
export interface SequenceSettings {
  readonly vocab: number;
  readonly embedDim: number;
  readonly mixer: Mixer;
  readonly layers: number;
  readonly numHeads: number;
  readonly positions: (typeof POSITIONS)[number];
  readonly readout: Readout;
  readonly classes: number | undefined;
  readonly ties: (typeof TIES)[number];
  readonly causal: boolean;
  readonly residual: boolean;
  readonly maxLength: number | undefined;
  readonly recurrentStart: (typeof STARTS)[number];
  readonly forgetBias: SequenceModelOptions['forgetBias'];
  readonly seed: number;
  readonly optimizer: AdamOptions;
  readonly check: boolean;
}

/** As in cpp/include/qkv/sequence_model.hpp. */
const LARGEST_SIZE = 2 ** 24;
const MOST_LAYERS = 1024;
const SHORTEST_CHRONO = 3;

/** The options that say what a model computes, as its parameters alone do not. */
export const STRUCTURE = [
  'vocab', 'embedDim', 'mixer', 'layers', 'numHeads', 'positions', 'readout', 'classes', 'ties', 'causal', 'residual', 'maxLength',
] as const;

const NAMES = [...STRUCTURE, 'recurrentStart', 'forgetBias', 'seed', 'optimizer', 'check'];

/** Of an option that only some mixers have, others may be given no more than `harmless`. */
function expectMixer(options: SequenceModelOptions, name: keyof SequenceModelOptions, mixers: readonly Mixer[], harmless: readonly unknown[]): void {
  const { [name]: given, mixer } = options;
  if (given === undefined || mixers.includes(mixer) || harmless.includes(given)) return;
  const expected = harmless.length > 0 ? harmless.map((value) => (typeof value === 'string' ? `'${value}'` : value)).join(' or ') : 'none';
  invalid(`${name} is ${describe(given)} with mixer '${mixer}', expected ${expected}; other values are for ${mixers.join(' and ')}.`);
}

function expectForget({ forgetBias, mixer }: SequenceModelOptions): void {
  if (forgetBias === undefined) return;
  if (typeof forgetBias === 'number' && mixer === 'gru') {
    invalid(`forgetBias is ${forgetBias} with mixer 'gru', expected { chrono }; a number is for lstm.`);
  }
  if (typeof forgetBias !== 'object' || forgetBias === null) finite(forgetBias, 'forgetBias');
  else {
    expectNames(forgetBias, 'forgetBias', ['chrono']);
    wholeNumber(forgetBias.chrono, 'forgetBias.chrono', SHORTEST_CHRONO, LONGEST_AXIS);
  }
}

/** @throws QkvError INVALID_ARGUMENT, which names the option */
export function sequenceSettings(options: SequenceModelOptions): SequenceSettings {
  expectOptions('sequenceModel', options, NAMES);
  const isAttention = oneOf(options.mixer, 'mixer', MIXERS) === 'attention';
  const size = (value: number, name: string, most = LARGEST_SIZE) => wholeNumber(value, name, 1, most);
  const { layers = 1, numHeads = 1, positions = isAttention ? 'sinusoidal' : 'none', ties = 'none', maxLength, recurrentStart = 'uniform' } = options;
  const { classes = options.vocab, causal = false, residual = isAttention, seed = 0, check = false, forgetBias, optimizer = {} } = options;
  const settings: SequenceSettings = {
    vocab: size(options.vocab, 'vocab'),
    embedDim: size(options.embedDim, 'embedDim'),
    mixer: options.mixer,
    layers: size(layers, 'layers', MOST_LAYERS),
    numHeads: size(numHeads, 'numHeads'),
    positions: oneOf(positions, 'positions', POSITIONS),
    readout: oneOf(options.readout, 'readout', READOUTS),
    classes: options.readout === 'pointer' ? options.classes : size(classes, 'classes'),
    ties: oneOf(ties, 'ties', TIES),
    causal: flag(causal, 'causal'),
    residual: flag(residual, 'residual'),
    maxLength: positions === 'learned' ? size(maxLength!, 'maxLength') : maxLength,
    recurrentStart: oneOf(recurrentStart, 'recurrentStart', STARTS),
    forgetBias,
    seed: wholeNumber(seed, 'seed', 0),
    optimizer,
    check: flag(check, 'check'),
  };
  expectTogether(options, settings);
  return settings;
}

/** Options that say something only beside others. */
function expectTogether(options: SequenceModelOptions, { embedDim, numHeads, positions, readout, classes, maxLength }: SequenceSettings): void {
  expectMixer(options, 'numHeads', ['attention'], [1]);
  expectMixer(options, 'ties', ['attention'], ['none']);
  expectMixer(options, 'causal', ['attention'], [false]);
  expectMixer(options, 'positions', ['attention'], ['none', 'sinusoidal', 'learned']);
  expectMixer(options, 'readout', ['attention'], ['last', 'every']);
  expectMixer(options, 'recurrentStart', ['rnn', 'lstm', 'gru'], ['uniform']);
  expectMixer(options, 'forgetBias', ['lstm', 'gru'], []);
  expectForget(options);
  if (embedDim % numHeads !== 0) invalid(`embedDim is ${embedDim} with ${numHeads} heads, expected a multiple of numHeads.`);
  if (positions === 'rotary' && (embedDim / numHeads) % 2 !== 0) {
    invalid(`embedDim is ${embedDim} with ${numHeads} heads, expected an even number of dimensions a head, which positions 'rotary' turns in pairs.`);
  }
  if (readout === 'pointer' && classes !== undefined) invalid(`classes is ${describe(classes)} with readout 'pointer', expected none: its answers are positions.`);
  if (positions !== 'learned' && maxLength !== undefined) invalid(`maxLength is ${describe(maxLength)} with positions '${positions}', expected none: only 'learned' has a table.`);
}

/** The model as the core's call has it. */
export const modelFields = ({ mixer, positions, ties, readout, causal, residual, vocab, embedDim, classes = 0, layers, numHeads, maxLength = 0 }: SequenceSettings) => ({
  mixer: MIXERS.indexOf(mixer),
  positions: POSITIONS.indexOf(positions),
  ties: TIES.indexOf(ties),
  readout: READOUTS.indexOf(readout),
  causal,
  residual,
  vocab,
  embedDim,
  classes,
  layers,
  numHeads,
  maxLength,
});

/** And where its parameters start. */
export const startFields = ({ recurrentStart, forgetBias = 1, seed }: SequenceSettings) => ({
  recurrentStart: STARTS.indexOf(recurrentStart),
  ...(typeof forgetBias === 'number' ? { forgetBias } : { chronoLength: forgetBias.chrono }),
  seedLow: (seed % 2 ** 32) | 0,
  seedHigh: Math.floor(seed / 2 ** 32),
});
