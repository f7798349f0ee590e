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
  /** What it tells, the same in whatever order: rows of the same facts are held out together. Default tokens and context. */
  readonly facts?: readonly number[];
}

/** Where rows come from. */
export interface Source<R extends Row> {
  /** The next one to train on. */
  train(): R;
  /** Always the same ones in the same order, none twice. */
  heldOut(): Iterable<R>;
  /** The most of these that may be asked for. */
  heldOutCount(): number;
}

/** Makes room for a number of each row, or a list of them; shorter lists end in zeros. */
type Column<R> = (pick: (row: R) => number | readonly number[], width?: number) => Integers;

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
  extra: (column: Column<R>) => Extra,
): Task<Read, Examples & Extra> {
  const { name, readout, length, words, answers, ragged = false } = description;
  const most = Math.floor(LONGEST_AXIS / length);
  const collect = (count: number, next: () => R) =>
    filled(count, next, (first, column) => ({ ...examplesOf(first, column, length, ragged), ...extra(column) }));
  const available = () => Math.min(most, heldOutCount());
  return {
    name,
    model: { vocab: words.length, readout, ...(readout !== 'pointer' && { classes: answers.length }) },
    length,
    words,
    answers,
    batch: (count) => collect(wholeNumber(count, 'count', 1, most), train),
    heldOut: (count = Math.min(HELD_OUT, available())) => {
      const rows = heldOut()[Symbol.iterator]();
      return collect(wholeNumber(count, 'count', 1, available()), () => rows.next().value as R);
    },
    encode: (text) => encoded(text, name, words),
    decode: (tokens) => decoded(tokens, name, words),
  };
}

/** Row by row into typed arrays: as objects many of them would fill the memory. */
function filled<R extends Row, Made>(count: number, next: () => R, made: (first: R, column: Column<R>) => Made): Made {
  const columns: ((row: R, i: number) => void)[] = [];
  const first = next();
  const result = made(first, (pick, width) => {
    const one = pick(first);
    const shape = typeof one === 'number' ? [count] : [count, width ?? one.length];
    const data = new Int32Array(count * (shape[1] ?? 1));
    columns.push((row, i) => {
      const picked = pick(row);
      if (typeof picked === 'number') data[i] = picked;
      else data.set(picked, i * shape[1]!);
    });
    return { data, shape };
  });
  for (let i = 0, row = first; i < count; row = ++i < count ? next() : row) columns.forEach((fill) => fill(row, i));
  return result;
}

function examplesOf<R extends Row>(first: R, column: Column<R>, length: number, ragged: boolean): Examples {
  const options: ExampleOptions = {
    ...(ragged && { lengths: column(({ tokens }) => tokens.length).data }),
    ...(first.at !== undefined && { at: column(({ at }) => at!).data }),
    ...(first.context && { context: column(({ context }) => context!) }),
  };
  return { tokens: column(({ tokens }) => tokens, length), targets: column(({ target }) => target), options };
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
