// Everything that can be wrong with one argument by its kind alone, as refusals: what a JavaScript program
// may hand over where no compiler looks. Each family takes the argument's name in sentences, and a call that
// is right but for the value it is given.
import type { Refusal } from './refusals.js';

type Call = (value: unknown) => unknown;
/** What it is called here, the value, and what the sentence calls it. */
type Wrong = readonly [name: string, value: unknown, came: string];

/** Sentences that begin with this text. */
export const literal = (text: string): RegExp => new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`);

const sentence = (name: string, verb: string, came: string, expected: string): RegExp =>
  literal(`${name} ${verb} ${came}, expected ${expected}`);

const detached = <Data extends Float32Array | Int32Array | Uint8Array>(data: Data): Data => {
  structuredClone(data, { transfer: [data.buffer as ArrayBuffer] });
  return data;
};

const NOTHING: Wrong = ['nothing', undefined, 'undefined'];
const NAN: Wrong = ['NaN', NaN, 'NaN'];
const SEVEN: Wrong = ['a number', 7, '7'];
const TRUE: Wrong = ['true', true, 'true'];
const TEXT: Wrong = ['a text', 'abc', '"abc"'];
const DIGITS: Wrong = ['digits', '1', '"1"'];
const ARRAY: Wrong = ['an array', [1], 'an array'];
const OBJECT: Wrong = ['an object', {}, 'an object of class Object'];
/** No argument takes one of these. */
const NEVER: Wrong[] = [
  ['null', null, 'null'],
  ['a bigint', 5n, '5n'],
  ['a symbol', Symbol('s'), 'a symbol'],
  ['a function', () => 1, 'a function'],
];
const NEVER_OBJECTS: Wrong[] = [
  ['a date', new Date(0), 'an object of class Date'],
  ['an object without a class', Object.create(null), 'an object of class none'],
  ['a promise', Promise.resolve([[1]]), 'an object of class Promise'],
];
const NO_NUMBERS: Wrong[] = [...NEVER, TRUE, TEXT, DIGITS];
const OBJECTS: Wrong[] = [...NEVER_OBJECTS, ARRAY, OBJECT];

const named = (numbers: readonly number[]): Wrong[] => numbers.map((x) => [String(x), x, String(x)]);

const kinds = (name: string, call: Call, wrong: readonly Wrong[], expected: string): Refusal[] =>
  wrong.map(([what, value, came]) => [what, () => call(value), 'INVALID_ARGUMENT', sentence(name, 'is', came, expected)]);

const needed = (isNeeded: boolean): Wrong[] => (isNeeded ? [NOTHING] : []);

const NO_SHAPES: Wrong[] = [
  ...NEVER, TEXT, SEVEN, OBJECT,
  ['a typed array', Int32Array.of(2, 3), 'an object of class Int32Array'],
  ['a negative axis', [-2, -3], '(-2, -3)'],
  ['half an axis', [1.5, 4], '(1.5, 4)'],
  ['NaN', [NaN, 3], '(NaN, 3)'],
  ['texts', ['2', '3'], '("2", "3")'],
  ['a symbol inside', [Symbol('s'), 3], '(a symbol, 3)'],
  ['a hole', Object.assign(Array(2), { 1: 6 }), '(undefined, 6)'],
  ['an axis beyond 32 bits', [0, 5e9], '(0, 5000000000)'],
];

/** Typed data and its shape. */
export function wrongShapes(name: string, call: Call, data: Float32Array | Uint8Array): Refusal[] {
  const noData: Wrong[] = [
    ...NEVER,
    ['an array', [1, 2, 3, 4, 5, 6], 'an array'],
    ['a DataView', new DataView(new ArrayBuffer(8)), 'an object of class DataView'],
    ['a buffer', new ArrayBuffer(24), 'an object of class ArrayBuffer'],
  ];
  return [
    ...kinds(`${name}.shape`, (shape) => call({ data, shape }), [NOTHING, ...NO_SHAPES], 'whole numbers from 0 to 2147483647'),
    ...kinds(`${name}.data`, (none) => call({ data: none, shape: [2, 3] }), noData, 'a typed array'),
    ['a shape of another size', () => call({ data, shape: [2, 4] }), 'SHAPE_MISMATCH', literal(`${name}.shape (2, 4) holds 8 elements, but the data has 6.`)],
    ['a buffer that was transferred away', () => call({ data: detached(data.slice() as Float32Array), shape: [2, 3] }), 'SHAPE_MISMATCH',
      literal(`${name}.shape (2, 3) holds 6 elements, but the data has 0 (was its buffer transferred away?).`)],
  ];
}

/** Each level is the only element of the one around it, and there is no end. */
const endless: unknown[] = [];
endless.push(endless);
const manyRows = Array(1e5).fill(Array(1e5).fill(Array(1e5).fill(1)));

/** Nested arrays; `good` is an element as it should be. */
function wrongNests(name: string, call: Call, good: unknown, kind: string): Refusal[] {
  const holds = (came: string) => sentence(name, 'holds', came, kind);
  const ragged = (came: string) => literal(`${name} is ragged: ${came} where rows of 2 were expected at depth 1`);
  return [
    ...[...NEVER, ...NEVER_OBJECTS, NOTHING, TEXT, OBJECT].map(([what, value, came]): Refusal => [
      `${what} inside`, () => call([[good, value]]), 'INVALID_ARGUMENT', holds(came)]),
    ['a hole inside', () => call([Object.assign(Array(2), { 0: good })]), 'INVALID_ARGUMENT', holds('undefined')],
    ['an array inside', () => call([[good, [good]]]), 'INVALID_ARGUMENT', holds('an array')],
    ['a short row', () => call([[good, good], [good]]), 'SHAPE_MISMATCH', ragged('a row of 1')],
    ['a long row', () => call([[good, good], [good, good, good]]), 'SHAPE_MISMATCH', ragged('a row of 3')],
    ['no row', () => call([[good, good], 'abc']), 'SHAPE_MISMATCH', ragged('"abc"')],
    ['no end', () => call(endless), 'INVALID_ARGUMENT', sentence(name, 'is', 'nested more than 32 levels deep', 'one for each axis')],
    ['more than a host can hold', () => call(manyRows), 'OUT_OF_MEMORY', /^[\w.[\]: ]+ takes \d+ bytes, which this host does not give\.$/],
  ];
}

const NO_TENSORS: Wrong[] = [
  ...NO_NUMBERS, ...NEVER_OBJECTS, SEVEN, NAN, OBJECT,
  ['a typed array', new Float32Array(6), 'an object of class Float32Array'],
  ['data alone', { data: new Float32Array(6) }, 'an object of class Object'],
  ['a shape alone', { shape: [2, 3] }, 'an object of class Object'],
];

/** Where results are written to. */
export const wrongPlace = (name: string, call: Call): Refusal[] => [
  ...kinds(name, call, NO_TENSORS, 'a tensor with a Float32Array'),
  ...wrongShapes(name, call, new Float32Array(6)),
];

/** A tensor; `shapes` are some of wrong ranks, `ranks` says which are right. */
export function wrongTensor(name: string, call: Call, ranks: string, shapes: readonly number[][], isNeeded = true): Refusal[] {
  return [
    ...kinds(name, call, [...needed(isNeeded), ...NO_TENSORS], 'a tensor or nested arrays'),
    ...wrongNests(name, call, 1, 'numbers'),
    ['booleans', () => call([[true, false]]), 'INVALID_ARGUMENT', sentence(name, 'holds', 'booleans', 'numbers')],
    ['a boolean inside', () => call([[1, true]]), 'INVALID_ARGUMENT', sentence(name, 'holds', 'booleans', 'numbers')],
    ...wrongShapes(name, call, new Float32Array(6)),
    ...shapes.map((shape): Refusal => {
      const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
      return [`rank ${shape.length}`, () => call({ data, shape }), 'SHAPE_MISMATCH', sentence(name, 'has', `rank ${shape.length} with shape (${shape.join(', ')})`, ranks)];
    }),
  ];
}

/** Booleans. */
export function wrongMask(name: string, call: Call): Refusal[] {
  const numbers = (what: string, value: unknown): Refusal => [what, () => call(value), 'INVALID_ARGUMENT', sentence(name, 'holds', 'numbers', 'booleans')];
  return [
    ...kinds(name, call, NO_TENSORS, 'a tensor or nested arrays'),
    ...wrongNests(name, call, true, 'booleans'),
    ...wrongShapes(name, call, new Uint8Array(6)),
    numbers('ones and zeros', [[1, 0], [0, 1]]),
    numbers('a number inside', [[true, 0]]),
    numbers('floats', { data: new Float32Array(4), shape: [2, 2] }),
    numbers('integers', { data: new Int32Array(4), shape: [2, 2] }),
  ];
}

/** A finite number from `least` on. */
export function wrongNumber(name: string, call: Call, least = -Infinity): Refusal[] {
  const expected = least === -Infinity ? 'a finite number' : `a finite number that is at least ${least}`;
  const below = least === -Infinity ? [] : [least - 1, least - 1e-3];
  return kinds(name, call, [...NO_NUMBERS, ...OBJECTS, ...named([NaN, Infinity, -Infinity, 1e300, -1e300, ...below])], expected);
}

const wrongWholes = (least: number, most: number): Wrong[] => named([0.5, NaN, Infinity, -Infinity, least - 1, most + 1]);

/** A whole number. */
export const wrongWhole = (name: string, call: Call, least: number, most = Number.MAX_SAFE_INTEGER, isNeeded = false): Refusal[] =>
  kinds(name, call, [...needed(isNeeded), ...NO_NUMBERS, ...OBJECTS, ...wrongWholes(least, most)], `a whole number from ${least} to ${most}`);

/** Of how many entries a list is, where it matters, and what they are. */
type ListOf = { count?: number; meaning: string };

/** Without its entries. */
export const wrongBuffer = (name: string, call: Call): Refusal => [
  'a buffer that was transferred away', () => call(detached(new Int32Array(2))), 'INVALID_ARGUMENT',
  sentence(name, 'is', 'a typed array whose buffer was transferred away', 'one that holds its entries')];

function wrongLengths(name: string, call: Call, { count, meaning }: ListOf): Refusal[] {
  const shaped = (what: string, value: unknown, shape: string): Refusal => [
    what, () => call(value), 'SHAPE_MISMATCH', sentence(name, 'has shape', shape, count === undefined ? `a list: ${meaning}` : `${count} entries: ${meaning}`)];
  return [
    shaped('a table', { data: new Float32Array(6), shape: [2, 3] }, '(2, 3)'),
    ...(count === undefined ? [] : [shaped('one too many', Array(count + 1).fill(1), `(${count + 1})`), shaped('none', [], '(0)')]),
    wrongBuffer(name, call),
  ];
}

/** In place of the first entry. */
const wrongEntries = (name: string, call: Call, { count = 1 }: ListOf, wrong: readonly Wrong[], expected: string): Refusal[] =>
  kinds(`${name}[0]`, (entry) => call([entry, ...Array(count - 1).fill(0)]), wrong, expected)
    .map(([what, ...rest]) => [`${what} as an entry`, ...rest]);

const NO_LISTS: Wrong[] = [...NEVER_OBJECTS, OBJECT];

function wrongWholeEntries(name: string, call: Call, least: number, most: number, list: ListOf): Refusal[] {
  const expected = `a whole number from ${least} to ${most}`;
  // Bigints are right, as entries of typed arrays are.
  const noEntries = [NOTHING, ...NO_NUMBERS.filter(([, value]) => typeof value !== 'bigint'), ...OBJECTS, ...wrongWholes(least, most)];
  return [
    ...kinds(name, call, NO_LISTS, `a list: ${list.meaning}`),
    ...wrongLengths(name, call, list),
    ...wrongEntries(name, call, list, noEntries, expected),
    ['half of one in a typed array', () => call(new Float64Array(list.count ?? 1).fill(0.5)), 'INVALID_ARGUMENT', sentence(`${name}[0]`, 'is', '0.5', expected)],
  ];
}

/** A list of whole numbers. */
export const wrongWholeList = (name: string, call: Call, least: number, most: number, list: ListOf): Refusal[] => [
  ...kinds(name, call, [...NO_NUMBERS, SEVEN, NAN], `a list: ${list.meaning}`),
  ...wrongWholeEntries(name, call, least, most, list),
];

/** A whole number, or a list of them. */
export const wrongOffset = (name: string, call: Call, least: number, most: number, list: ListOf): Refusal[] => [
  ...kinds(name, call, [...NO_NUMBERS, ...wrongWholes(least, most)], `a whole number from ${least} to ${most}`),
  ...wrongWholeEntries(name, call, least, most, list),
];

/** A list of numbers; `besides` is a kind that is right too. */
export function wrongNumberList(name: string, call: Call, list: ListOf, besides?: unknown): Refusal[] {
  return [
    ...kinds(name, call, [...NO_NUMBERS, SEVEN, NAN, ...NO_LISTS].filter(([, value]) => value !== besides), `a list: ${list.meaning}`),
    ...wrongLengths(name, call, list),
    ...wrongEntries(name, call, list, [NOTHING, ...NO_NUMBERS, ...OBJECTS], 'a number'),
  ];
}

/** true or false. */
export const wrongFlag = (name: string, call: Call): Refusal[] =>
  kinds(name, call, [...NEVER, ...OBJECTS, TEXT, NAN, SEVEN, ['one', 1, '1'], ['a word', 'true', '"true"']], 'true or false');

/** One of some words, which `expected` names. */
export const wrongChoice = (name: string, call: Call, expected: string, isNeeded = false): Refusal[] =>
  kinds(name, call, [...needed(isNeeded), ...NO_NUMBERS, ...OBJECTS, SEVEN, NAN], expected);

/** One of some words or an object of names; `besides` is a kind that is right too. */
export const wrongChoiceOrNames = (name: string, call: Call, expected: string, known: string, besides?: unknown): Refusal[] => [
  ...kinds(name, call, [...NO_NUMBERS, SEVEN, NAN].filter(([, value]) => value !== besides), expected),
  ...wrongObjects(name, call, known),
];

function wrongObjects(name: string, call: Call, known: string): Refusal[] {
  const noNames: Wrong[] = [
    ...NEVER_OBJECTS.filter(([what]) => what !== 'an object without a class'), ARRAY,
    ['no entries', [], 'an array'], ['a map', new Map(), 'an object of class Map'], ['a typed array', new Float32Array(0), 'an object of class Float32Array'],
    ['a number object', Object(3), 'an object of class Number'],
  ];
  return [
    ...kinds(name, call, noNames, `an object of ${known}`),
    ...['cuasal', 'a "b"\nc', ''].map((key): Refusal => [
      `an unknown name, ${key}`, () => call({ [key]: 1 }), 'INVALID_ARGUMENT', literal(`${name} has no ${JSON.stringify(key)}; it may have ${known}`)]),
  ];
}

/** An object of the names that are `known`. */
export const wrongNames = (name: string, call: Call, known: string, isNeeded = false): Refusal[] => [
  ...kinds(name, call, [...needed(isNeeded), ...NO_NUMBERS, SEVEN, NAN], `an object of ${known}`),
  ...wrongObjects(name, call, known),
];

/** What tensors are made from: `make(data, shape)`. Arrays inside and shapes as in {@link wrongTensor}. */
export function wrongMadeFrom(make: (data: unknown, shape?: unknown) => unknown): Record<string, Refusal[]> {
  const noData = [NOTHING, ...NO_NUMBERS, ...NEVER_OBJECTS, SEVEN, NAN, OBJECT];
  const noMemory: Wrong[] = [
    ['a DataView', new DataView(new ArrayBuffer(8)), 'an object of class DataView'],
    ['a buffer', new ArrayBuffer(24), 'an object of class ArrayBuffer'],
    ['a tensor', { data: new Float32Array(6), shape: [2, 3] }, 'an object of class Object'],
  ];
  const numbers = new Float32Array(6);
  return {
    data: kinds('tensor: data', make, [...noData, ...noMemory], 'nested arrays of numbers or a typed array'),
    'numbers inside': wrongNests('data', make, 1, 'numbers'),
    'booleans inside': [
      ...wrongNests('data', make, true, 'booleans'),
      ['a boolean among numbers', () => make([1, true]), 'INVALID_ARGUMENT', sentence('data', 'holds', 'booleans', 'numbers')],
      ['a number among booleans', () => make([true, 1]), 'INVALID_ARGUMENT', sentence('data', 'holds', 'numbers', 'booleans')],
    ],
    'shape of a typed array': kinds('shape', (shape) => make(numbers, shape), NO_SHAPES, 'whole numbers from 0 to 2147483647'),
    'shape of nested arrays': kinds('shape', (shape) => make([1, 2, 3, 4, 5, 6], shape), NO_SHAPES, 'whole numbers from 0 to 2147483647'),
    'a shape of another size': [
      ['of a typed array', () => make(numbers, [4]), 'SHAPE_MISMATCH', literal('shape (4) holds 4 elements, but the data has 6.')],
      ['of nested arrays', () => make([[1, 2]], [1]), 'SHAPE_MISMATCH', literal('shape (1) holds 1 elements, but the data has 2.')],
      ['of a buffer that was transferred away', () => make(detached(new Float32Array(6)), [2, 3]), 'SHAPE_MISMATCH',
        literal('shape (2, 3) holds 6 elements, but the data has 0 (was its buffer transferred away?).')],
    ],
  };
}
