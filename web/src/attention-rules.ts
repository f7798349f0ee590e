import { booleans, expectNames, finite, floats, holdsBytes, type List, numbers, wholeNumber, wholeNumbers } from './arguments.js';
import { QkvError } from './errors.js';
import type { AttentionSizes } from './heads.js';
import type { Input } from './memory.js';
import type { Calls } from './module.js';
import { alibiSlopes } from './positional.js';
import type { ScoreOptions } from './score-options.js';
import { describe, shorten, showShape, type TensorLike } from './tensor.js';

type InputName =
  | 'mask' | 'bias' | 'alibiSlopes' | 'sinks' | 'queryOffsets' | 'keyLengths' | 'sequenceQueries' | 'sequenceKeys';

/** What the core is told of the options: numbers, and what has to lie in memory. */
export interface AttentionRules {
  readonly fields: Calls['attention'];
  readonly inputs: Readonly<Record<InputName, Input | undefined>>;
  /** Strides of mask and bias over (batch, heads, queryLength, keyLength). */
  readonly strides: Readonly<Record<'mask' | 'bias', readonly number[] | undefined>>;
  /** As it was given. */
  readonly biasShape: readonly number[] | undefined;
}

/** Lengths of every batch, or of one packed sequence. */
interface Part {
  readonly queryLen: number;
  readonly keyLen: number;
}

/** No key is as far away, and the core counts in 32 bits. */
const FARTHEST = 2 ** 30;

/** `count` is how many batches or sequences there are. */
function positions(options: ScoreOptions, parts: readonly Part[], count: number): { causal: boolean; offset: number | Int32Array } {
  const { causal = false, queryOffset } = options;
  const meaning = options.sequences ? 'one offset a sequence' : 'one offset a batch';
  const offsets = (given: number | List, name: string) =>
    typeof given === 'object' && given !== null
      ? wholeNumbers(given, name, -FARTHEST, FARTHEST, meaning, count)
      : wholeNumber(given, name, -FARTHEST, FARTHEST);
  const given = queryOffset === undefined ? undefined : offsets(queryOffset, 'queryOffset');
  if (causal === false) return { causal, offset: given ?? 0 };
  if (causal === true) {
    const unequal = parts.find(({ queryLen, keyLen }) => queryLen !== keyLen);
    if (!unequal) return { causal, offset: given ?? 0 };
    throw new QkvError(
      'INVALID_ARGUMENT',
      `causal is true with ${unequal.queryLen} queries and ${unequal.keyLen} keys, expected 'top-left', 'bottom-right' or { offset } where the lengths differ.`,
    );
  }
  const named = causal === 'top-left' || causal === 'bottom-right';
  if (!named && (typeof causal !== 'object' || causal === null)) {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `causal is ${describe(causal)}, expected true, false, 'top-left', 'bottom-right' or { offset }.`,
    );
  }
  if (given !== undefined) {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `queryOffset is given together with causal ${named ? `'${causal}'` : '{ offset }'}, expected one of them, since both say where the queries are.`,
    );
  }
  if (!named) expectNames(causal, 'causal', ['offset']);
  if (causal === 'top-left') return { causal: true, offset: 0 };
  if (causal !== 'bottom-right') return { causal: true, offset: offsets(causal.offset, 'causal.offset') };
  const ends = parts.map(({ queryLen, keyLen }) => keyLen - queryLen);
  return { causal: true, offset: options.sequences ? Int32Array.from(ends) : (ends[0] ?? 0) };
}

function windowLimits(window: readonly [number, number] | undefined): [number, number] {
  if (window === undefined) return [-1, -1];
  if (!Array.isArray(window) || window.length !== 2) {
    throw new QkvError('INVALID_ARGUMENT', `window is ${Array.isArray(window) ? `a list of ${window.length}` : describe(window)}, expected [left, right].`);
  }
  return Array.from(window, (limit: number, side) => {
    if (limit === Infinity) return -1;
    if (Number.isInteger(limit) && limit >= 0) return limit > FARTHEST ? -1 : limit;
    throw new QkvError('INVALID_ARGUMENT', `window[${side}] is ${describe(limit)}, expected a whole number that is not negative, or Infinity.`);
  }) as [number, number];
}

/** Packed sequences: offsets that rise from 0 to the length. */
function packing({ sequences, keyLengths }: ScoreOptions, sizes: AttentionSizes) {
  if (sequences === undefined) return undefined;
  const refuse = (reason: string): never => {
    throw new QkvError('INVALID_ARGUMENT', `sequences is ${reason}.`);
  };
  expectNames(sequences, 'sequences', ['query', 'key']);
  if (sizes.batch !== 1) refuse(`given with a batch of ${sizes.batch}, expected a batch of 1`);
  if (keyLengths !== undefined) refuse('given together with keyLengths, expected one of them');
  const [query, key] = (['query', 'key'] as const).map((name) => {
    const length = name === 'query' ? sizes.queryLen : sizes.keyLen;
    const full = `sequences.${name}`;
    const offsets = wholeNumbers(sequences[name], full, 0, length, 'where each sequence begins, and the end');
    const rising = offsets.every((offset, i) => i === 0 || offset >= offsets[i - 1]!);
    if (offsets.length < 2 || offsets[0] !== 0 || offsets.at(-1) !== length || !rising) {
      throw new QkvError('INVALID_ARGUMENT', `${full} is [${shorten(offsets.join(', '))}], expected offsets that rise from 0 to ${length}.`);
    }
    return offsets;
  }) as [Int32Array, Int32Array];
  if (query.length !== key.length) {
    throw new QkvError('SHAPE_MISMATCH', `sequences.key has ${key.length} offsets, expected ${query.length} as sequences.query has.`);
  }
  return { query, key };
}

function partsOf(packed: ReturnType<typeof packing>, { batch, queryLen, keyLen }: AttentionSizes): Part[] {
  if (!packed) return batch === 0 ? [] : [{ queryLen, keyLen }];
  const length = (offsets: Int32Array, i: number) => offsets[i + 1]! - offsets[i]!;
  return Array.from({ length: packed.query.length - 1 }, (_, i) => ({
    queryLen: length(packed.query, i),
    keyLen: length(packed.key, i),
  }));
}

/** Strides over (batch, heads, queryLength, keyLength), 0 where an axis broadcasts. */
function broadcastStrides(name: string, shape: readonly number[], sizes: AttentionSizes, hasBatch: boolean): number[] {
  const { batch, numHeads, queryLen, keyLen } = sizes;
  const full = [batch, numHeads, queryLen, keyLen];
  const padded = [...Array<number>(Math.max(0, 4 - shape.length)).fill(1), ...shape];
  const fits = padded.length === 4 && padded.every((n, axis) => n === 1 || n === full[axis]);
  // One a batch, or one a head? Where both counts are equal nobody can tell what was meant.
  const ambiguous = shape.length === 3 && hasBatch && batch > 1 && batch === numHeads && shape[0] === batch;
  if (!fits || ambiguous) {
    throw new QkvError(
      'SHAPE_MISMATCH',
      `${name} has shape ${showShape(shape)}, ${ambiguous ? `which could be one a batch or one a head; expected (${batch}, 1, ${queryLen}, ${keyLen}) or (1, ${numHeads}, ${queryLen}, ${keyLen})` : `expected one that broadcasts, aligned right, to (batch, heads, queryLength, keyLength) = ${showShape(full)}`}.`,
    );
  }
  let stride = 1;
  return padded.reduceRight<number[]>((strides, n) => {
    strides.unshift(n === 1 ? 0 : stride);
    stride *= n;
    return strides;
  }, []);
}

function biasNumbers(bias: TensorLike) {
  if (holdsBytes(bias)) {
    throw new QkvError('INVALID_ARGUMENT', 'bias holds bytes, expected numbers to add to the scores; give true and false as mask.');
  }
  return numbers(bias, 'bias', 0, 1, 2, 3, 4);
}

function dropoutOf(dropout: ScoreOptions['dropout']): { p: number; seed: number } {
  if (dropout === undefined) return { p: 0, seed: 0 };
  expectNames(dropout, 'dropout', ['p', 'seed']);
  const { p, seed } = dropout;
  if (typeof p !== 'number' || !(p >= 0 && Math.fround(p) < 1)) {
    throw new QkvError('INVALID_ARGUMENT', `dropout.p is ${describe(p)}, expected a number from 0 to below 1.`);
  }
  return { p, seed: wholeNumber(seed, 'dropout.seed', 0) };
}

function softcapOf(softcap: number | undefined): number {
  if (softcap === undefined) return 0;
  if (Math.fround(finite(softcap, 'softcap')) > 0) return softcap;
  throw new QkvError('INVALID_ARGUMENT', `softcap is ${softcap}, expected a number above 0 (as a float32).`);
}

function slopesOf(alibi: ScoreOptions['alibi'], numHeads: number): Float32Array | undefined {
  if (alibi === undefined || alibi === false) return undefined;
  if (alibi === true) return alibiSlopes(numHeads).data;
  return floats(alibi, 'alibi', numHeads, 'one slope a head, or true for the standard ones');
}

/** `rowAxes` is how many of (batch, heads, queryLength) the arguments have. */
export function attentionRules(options: ScoreOptions, sizes: AttentionSizes, rowAxes: number): AttentionRules {
  const { scale = sizes.headDim === 0 ? 1 : 1 / Math.sqrt(sizes.headDim), dropout } = options;
  const packed = packing(options, sizes);
  const parts = partsOf(packed, sizes);
  const { causal, offset } = positions(options, parts, packed ? parts.length : sizes.batch);
  const [windowLeft, windowRight] = windowLimits(options.window);
  const mask = options.mask === undefined ? undefined : booleans(options.mask, 'mask');
  const bias = options.bias === undefined ? undefined : biasNumbers(options.bias);
  const { p, seed } = dropoutOf(dropout);
  return {
    fields: {
      scale: finite(scale, 'scale'),
      softcap: softcapOf(options.softcap),
      causal,
      windowLeft,
      windowRight,
      queryOffset: typeof offset === 'number' ? offset : 0,
      sequences: packed ? packed.query.length - 1 : 0,
      dropout: p,
      seedLow: seed % 2 ** 32 | 0,
      seedHigh: Math.floor(seed / 2 ** 32),
    },
    inputs: {
      mask,
      bias,
      alibiSlopes: slopesOf(options.alibi, sizes.numHeads),
      sinks: options.sinks === undefined ? undefined : floats(options.sinks, 'sinks', sizes.numHeads, 'one logit a head', -Infinity),
      queryOffsets: typeof offset === 'number' ? undefined : offset,
      keyLengths:
        options.keyLengths === undefined
          ? undefined
          : wholeNumbers(options.keyLengths, 'keyLengths', 0, sizes.keyLen, 'one length a batch', sizes.batch),
      sequenceQueries: packed?.query,
      sequenceKeys: packed?.key,
    },
    strides: {
      mask: mask && broadcastStrides('mask', mask.shape, sizes, rowAxes === 3),
      bias: bias && broadcastStrides('bias', bias.shape, sizes, rowAxes === 3),
    },
    biasShape: bias?.shape,
  };
}
