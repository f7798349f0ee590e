// Seeded attention problems of random shapes, forms and options. QKV_SEED names the only seed to run.
import { type AttentionCase, type Extras, type Form, FORMS, makeCase, show } from './attention-case.js';
import type { AttentionRules, AttentionSizes } from './attention-reference.js';
import { randomSource } from './reference.js';

const LENGTHS = [0, 1, 2, 3, 4, 5, 16, 17, 31, 63, 64, 65, 127, 128, 129, 130, 257];
const DIMS = [0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 33, 64, 65];
/** Multiply-adds of one case, so that the plain loops keep up. */
const LARGEST = 400_000;

export interface RandomCase extends AttentionCase {
  seed: number;
  dropout: NonNullable<Extras['dropout']> | undefined;
  /** What a failing test says, so that the case can be run again alone. */
  again: string;
}

export class Choices {
  readonly #next: () => number;
  constructor(seed: number) {
    this.#next = randomSource(seed);
  }
  /** A whole number from 0 below `count`. */
  below(count: number): number {
    return Math.floor(((this.#next() + 1) / 2) * count);
  }
  between(low: number, high: number): number {
    return low + ((this.#next() + 1) / 2) * (high - low);
  }
  oneIn(count: number): boolean {
    return this.below(count) === 0;
  }
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
  list<T>(count: number, make: () => T): T[] {
    return Array.from({ length: count }, make);
  }
  /** Distinct, in no order. */
  some(count: number, of: number): number[] {
    const left = Array.from({ length: of }, (_, i) => i);
    return this.list(Math.min(count, of), () => left.splice(this.below(left.length), 1)[0]!);
  }
}

function sizesFor(choices: Choices, form: Form): Required<AttentionSizes> {
  for (;;) {
    const single = form === 'rank 2';
    const unbatched = single || form === 'rank 3' || form === 'joined';
    const kvHeads = single ? 1 : 1 + choices.below(3);
    const sizes = {
      batch: unbatched ? 1 : choices.oneIn(20) ? 0 : 1 + choices.below(3),
      heads: single ? 1 : kvHeads * (1 + choices.below(3)),
      kvHeads,
      queryLen: choices.pick(LENGTHS),
      keyLen: choices.pick(LENGTHS),
      dim: choices.pick(DIMS),
      valueDim: choices.pick(DIMS),
    };
    if (choices.oneIn(4)) sizes.keyLen = sizes.queryLen;
    if (sizes.batch * sizes.heads * sizes.queryLen * sizes.keyLen * (sizes.dim + sizes.valueDim + 8) <= LARGEST) return sizes;
  }
}

/** Rising from 0 to the length, empty sequences among them. */
function cuts(choices: Choices, count: number, length: number): number[] {
  const inner = choices.list(count - 1, () => choices.below(length + 1)).sort((a, b) => a - b);
  return [0, ...inner, length];
}

/** A shape that broadcasts to the scores', of any rank. */
function broadcastShape(choices: Choices, { batch, heads, queryLen, keyLen }: Required<AttentionSizes>): number[] {
  const shape = [batch, heads, queryLen, keyLen].map((length) => (choices.oneIn(2) ? 1 : length));
  while (shape.length > 1 && shape[0] === 1 && choices.oneIn(2)) shape.shift();
  // One a batch or one a head? That is refused.
  return shape.length === 3 && batch > 1 && batch === heads && shape[0] === batch ? [1, ...shape] : shape;
}

function positionRules(choices: Choices, sizes: Required<AttentionSizes>, rules: AttentionRules): void {
  const { batch, queryLen, keyLen } = sizes;
  const count = rules.sequences ? rules.sequences.query.length - 1 : batch;
  const offset = () => choices.below(keyLen + queryLen + 2) - queryLen;
  const offsets = () => (choices.oneIn(2) ? offset() : choices.list(count, offset));
  const causal = choices.below(6);
  if (causal === 1) rules.causal = 'top-left';
  if (causal === 2) rules.causal = 'bottom-right';
  if (causal === 3) rules.causal = { offset: offsets() };
  const equal = rules.sequences ? rules.sequences.query.every((cut, i) => cut === rules.sequences!.key[i]) : queryLen === keyLen;
  if (causal === 4 && equal) rules.causal = true;
  if (causal === 5) rules.causal = false;
  if (typeof (rules.causal ?? false) === 'boolean' && choices.oneIn(3)) rules.queryOffset = offsets();
  const limit = () => (choices.oneIn(3) ? Infinity : choices.below(keyLen + 1));
  if (choices.oneIn(3)) rules.window = [limit(), limit()];
}

export type Rule = keyof AttentionRules | 'dropout' | 'positions';

/** `without` lists the rules that a property does not hold for; 'positions' are causal, window and offsets. */
export function randomCase(seed: number, without: readonly Rule[] = []): RandomCase {
  const choices = new Choices(seed);
  const form = choices.pick(FORMS);
  const sizes = sizesFor(choices, form);
  const rules: AttentionRules = {};
  const maybe = (rule: Rule) => choices.oneIn(3) && !without.includes(rule);
  if (maybe('scale')) rules.scale = choices.pick([0, -0.7, 0.05, 0.5, 1]);
  if (sizes.batch === 1 && maybe('sequences')) {
    const count = 1 + choices.below(4);
    const query = cuts(choices, count, sizes.queryLen);
    rules.sequences = { query, key: sizes.queryLen === sizes.keyLen ? query : cuts(choices, count, sizes.keyLen) };
  } else if (maybe('keyLengths')) {
    rules.keyLengths = choices.list(sizes.batch, () => choices.below(sizes.keyLen + 1));
  }
  if (!without.includes('positions')) positionRules(choices, sizes, rules);
  const filled = (shape: number[]) => shape.reduce((a, b) => a * b, 1);
  if (maybe('mask')) {
    const shape = broadcastShape(choices, sizes);
    rules.mask = { shape, data: Uint8Array.from(choices.list(filled(shape), () => Number(!choices.oneIn(4)))) };
  }
  if (maybe('bias')) {
    const shape = broadcastShape(choices, sizes);
    rules.bias = { shape, data: Float32Array.from(choices.list(filled(shape), () => (choices.oneIn(10) ? -Infinity : choices.between(-3, 3)))) };
  }
  if (maybe('alibi')) rules.alibi = choices.oneIn(2) ? true : choices.list(sizes.heads, () => choices.between(0, 0.5));
  if (maybe('softcap')) rules.softcap = choices.pick([0.5, 2, 30]);
  if (maybe('sinks')) rules.sinks = choices.list(sizes.heads, () => choices.between(-4, 4));
  const dropout = maybe('dropout') ? { p: choices.pick([0, 0.1, 0.5, 0.9]), seed: choices.pick([0, 7, 2 ** 40 + seed]) } : undefined;
  const one = makeCase(sizes, seed, rules, { form, magnitude: choices.pick([1, 1, 3]) });
  return { ...one, seed, dropout, again: `QKV_SEED=${seed}: ${show(one)}${dropout ? ` dropout ${JSON.stringify(dropout)}` : ''}` };
}

/** Seeds from 1 on that give a case to the property, `count` of them; or the one that QKV_SEED names. */
export function* randomCases(count: number, without: readonly Rule[] = [], suits: (one: RandomCase) => boolean = () => true): Generator<RandomCase> {
  const only = process.env['QKV_SEED'];
  if (only !== undefined) {
    const one = randomCase(Number(only), without);
    if (suits(one)) yield one;
    return;
  }
  for (let seed = 1, found = 0; found < count; seed++) {
    const one = randomCase(seed, without);
    if (!suits(one)) continue;
    found++;
    yield one;
  }
}
