import { invalid, wholeNumber } from '../arguments.js';
import type { Readout } from '../sequence-options.js';
import { describe, isNumericArray, LONGEST_AXIS, shorten } from '../tensor.js';
import type { ExampleOptions, Examples, Integers, Task } from './task.js';

/** One example, before it stands in a row beside others. */
export interface Row {
  readonly tokens: readonly number[];
  readonly target: number | readonly number[];
  readonly at?: number;
  readonly context?: readonly number[];
}

/** Where rows come from. */
export interface Source<R extends Row> {
  /** The next one to train on. */
  train(): R;
  /** Always the same ones. */
  heldOut(count: number): R[];
  /** How many of these there are. Default no end of them. */
  readonly heldOutCount?: number;
}

/** What a task is, but for its rows. */
export interface Description<Read extends Readout> {
  readonly name: string;
  readonly readout: Read;
  readonly length: number;
  readonly words: readonly string[];
  readonly answers: readonly string[];
  /** Whether sequences may be shorter than `length`. */
  readonly ragged?: boolean;
}

const HELD_OUT = 256;

/** `extra` makes what the task's examples have besides. */
export function makeTask<Read extends Readout, R extends Row, Extra extends object>(
  description: Description<Read>,
  { train, heldOut, heldOutCount }: Source<R>,
  extra: (rows: readonly R[]) => Extra,
): Task<Read, Examples & Extra> {
  const { name, readout, length, words, answers, ragged = false } = description;
  const most = Math.floor(LONGEST_AXIS / length);
  const collect = (rows: readonly R[]) => ({ ...examplesOf(rows, length, ragged), ...extra(rows) });
  return {
    name,
    model: { vocab: words.length, readout, ...(readout !== 'pointer' && { classes: answers.length }) },
    length,
    words,
    answers,
    batch: (count) => collect(Array.from({ length: wholeNumber(count, 'count', 1, most) }, train)),
    heldOut: (count = heldOutCount ?? HELD_OUT) => collect(heldOut(wholeNumber(count, 'count', 1, heldOutCount ?? most))),
    encode: (text) => encoded(text, name, words),
    decode: (tokens) => decoded(tokens, name, words),
  };
}

function examplesOf(rows: readonly Row[], length: number, ragged: boolean): Examples {
  const targets = rows.map(({ target }) => target);
  const options: ExampleOptions = {
    ...(ragged && { lengths: Int32Array.from(rows, ({ tokens }) => tokens.length) }),
    ...(rows[0]?.at !== undefined && { at: Int32Array.from(rows, ({ at }) => at!) }),
    ...(rows[0]?.context && { context: table(rows.map(({ context }) => context!)) }),
  };
  return {
    tokens: table(rows.map(({ tokens }) => tokens), length),
    targets: typeof targets[0] === 'number' ? list(targets as number[]) : table(targets as number[][]),
    options,
  };
}

const list = (numbers: readonly number[]): Integers => ({ data: Int32Array.from(numbers), shape: [numbers.length] });

/** Shorter rows end in zeros. */
export function table(rows: readonly (readonly number[])[], length = rows[0]!.length): Integers {
  const data = new Int32Array(rows.length * length);
  rows.forEach((row, i) => data.set(row, i * length));
  return { data, shape: [rows.length, length] };
}

function encoded(text: string, name: string, words: readonly string[]): Int32Array<ArrayBuffer> {
  if (typeof text !== 'string') return invalid(`text is ${describe(text)}, expected words of ${name} with spaces between them.`);
  return Int32Array.from(text.split(/\s+/).filter(Boolean), (word) => {
    const token = words.indexOf(word);
    return token >= 0 ? token : invalid(`text has the word ${describe(word)}, expected words of ${name}: ${shorten(words.join(', '))}.`);
  });
}

function decoded(tokens: readonly number[] | Int32Array, name: string, words: readonly string[]): string {
  if (!Array.isArray(tokens) && !isNumericArray(tokens)) return invalid(`tokens is ${describe(tokens)}, expected a list of tokens of ${name}.`);
  return Array.from(tokens, (token, i) => words[wholeNumber(token as number, `tokens[${i}]`, 0, words.length - 1)]).join(' ');
}
