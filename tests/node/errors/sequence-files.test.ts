// What load() of a model refuses: files that are broken, other models' files, and records. Each refusal leaves the
// model as it was.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, type SequenceModel, type SequenceModelOptions, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { bytesOf, fileOf } from '../support/safetensors.js';
import { literal, wrongTensor } from '../support/wrong.js';

/** embedding (2, 1), layers.0.wo (1, 1), readout.weight (1, 2), readout.bias (2): 7 numbers. */
const SMALL = { vocab: 2, embedDim: 1, mixer: 'attention', readout: 'last', ties: 'all', classes: 2, positions: 'none' } as const satisfies SequenceModelOptions;

let engine: Engine;
let other: Engine;
let model: SequenceModel;
let own: Uint8Array;
before(async () => {
  engine = await loadVariant();
  other = await loadVariant({ maxMemory: 2 ** 25 });
  model = engine.sequenceModel(SMALL);
  own = model.save();
});
after(() => [engine, other].forEach((one) => one.dispose()));

const load = (from: unknown) => (model.load as (from: unknown) => void).call(model, from);
const invalid = (name: string, from: () => unknown, sentence: string | RegExp): Refusal => [name, () => load(from()), 'INVALID_ARGUMENT', typeof sentence === 'string' ? literal(`load: ${sentence}`) : sentence];

type Entry = { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
const numbers = Float32Array.of(1, 2, 3, 4, 5, 6, 7);
const data = bytesOf(numbers);
const header = {
  embedding: { dtype: 'F32', shape: [2, 1], data_offsets: [0, 8] },
  'layers.0.wo': { dtype: 'F32', shape: [1, 1], data_offsets: [8, 12] },
  'readout.weight': { dtype: 'F32', shape: [1, 2], data_offsets: [12, 20] },
  'readout.bias': { dtype: 'F32', shape: [2], data_offsets: [20, 28] },
} as const;
/** The whole header with something of readout.bias otherwise; undefined leaves it out. */
const bias = (changed: Entry, bytes: Uint8Array = data) => () => fileOf(JSON.stringify({ ...header, 'readout.bias': { ...header['readout.bias'], ...changed } }), bytes);
const withMetadata = (metadata: unknown) => () => fileOf(JSON.stringify({ __metadata__: metadata, ...header }), data);
const text = JSON.stringify(header);

const noEntries = ([[null, 'null'], [5, '5'], ['F32', '"F32"'], [[1], 'an array'], [true, 'true']] as const).map(([entry, came]) =>
  invalid(`${came} as an entry`, () => fileOf(JSON.stringify({ ...header, 'readout.bias': entry }), data), `"readout.bias" is ${came}, expected an object of dtype, shape and data_offsets.`));

const dtypes = ([['I8', '"I8"'], ['F8_E4M3', '"F8_E4M3"'], ['f32', '"f32"'], ['__proto__', '"__proto__"'], ['toString', '"toString"'], [null, 'null'], [5, '5'], [['F32'], 'an array'], [undefined, 'undefined']] as const)
  .map(([dtype, came]) => invalid(came, bias({ dtype }), `"readout.bias" has dtype ${came}, expected F32 or F16 or BF16 or F64.`));

const WHOLE = 'expected whole numbers from 0 to 2147483647.';
const shapes = ([[undefined, 'undefined'], [null, 'null'], [2, '2'], ['2', '"2"'], [{ 0: 2 }, 'an object of class Object'], [[-2], '(-2)'], [[1.5], '(1.5)'], [['2'], '("2")'], [[null], '(null)'], [[[2]], '(an array)'], [[2 ** 31], '(2147483648)']] as const)
  .map(([shape, came]) => invalid(`a shape of ${came}`, bias({ shape }), `"readout.bias".shape is ${came}, ${WHOLE}`));

const OFFSETS = 'expected where its bytes begin and end, whole numbers from 0 to 28.';
const offsets = ([[undefined, 'undefined'], [null, 'null'], [20, '20'], [[20], '(20)'], [[20, 28, 28], '(20, 28, 28)'], [['20', 28], '("20", 28)'], [[20, 28.5], '(20, 28.5)'], [[-8, 0], '(-8, 0)'], [[28, 20], '(28, 20)'], [[20, 29], '(20, 29)'], [[20, 1e300], '(20, 1e+300)']] as const)
  .map(([given, came]) => invalid(`offsets of ${came}`, bias({ data_offsets: given }), `"readout.bias".data_offsets is ${came}, ${OFFSETS}`));

const escaped = text.replace('"readout.bias"', '"readout.\\u0062ias"');

const tables: Record<string, Refusal[]> = {
  'what is no file': [
    ...([
      [undefined, 'undefined'], [null, 'null'], [7, '7'], [NaN, 'NaN'], [true, 'true'], ['abc', '"abc"'], [5n, '5n'], [Symbol('s'), 'a symbol'], [() => 1, 'a function'],
      [[], 'an array'], [new Map(), 'an object of class Map'], [new Date(0), 'an object of class Date'], [Promise.resolve(data), 'an object of class Promise'],
      [new ArrayBuffer(8), 'an object of class ArrayBuffer'], [new DataView(new ArrayBuffer(8)), 'an object of class DataView'],
      [new Float32Array(2), 'an object of class Float32Array'], [new Uint8ClampedArray(9), 'an object of class Uint8ClampedArray'],
    ] as const).map(([from, came]) => invalid(came, () => from, `${came} came, expected the bytes of a file in a Uint8Array, or an object of tensors by name.`)),
  ],
  'the header’s length': [
    invalid('no bytes', () => new Uint8Array(), 'the file has 0 bytes (was its buffer transferred away?), expected at least 8.'),
    invalid('seven bytes', () => own.subarray(0, 7), 'the file has 7 bytes, expected at least 8.'),
    invalid('beyond the file', () => fileOf(text, data, 400n), /^load: the header has 400 bytes, expected at most the \d+ that the file goes on\.$/),
    invalid('one beyond the file', () => own.subarray(0, 8 + 10), /^load: the header has \d+ bytes, expected at most the 10 that the file goes on\.$/),
    invalid('beyond the format’s limit', () => fileOf(text, data, 100_000_001n), 'the header has 100000001 bytes, expected at most 100000000.'),
    invalid('negative, were it signed', () => fileOf(text, data, 2n ** 64n - 1n), 'the header has 18446744073709552000 bytes, expected at most 100000000.'),
  ],
  header: [
    ...['', ' ', '{', '{"a":}', `${text.slice(0, -1)},}`, `${text}x`, 'nothing', '{"a": NaN}'].map((wrong) =>
      invalid(`"${wrong.slice(0, 9)}"`, () => fileOf(wrong, data), 'the header is no JSON in UTF-8, expected an object of tensors by name.')),
    invalid('no UTF-8', () => fileOf(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), data), 'the header is no JSON in UTF-8'),
    ...([['[]', '"["'], ['5', '"5"'], ['null', '"n"'], ['"a"', '"\\""'], [` ${text}`, '" "'], [`\n${text}`, '"\\n"']] as const).map(([wrong, came]) =>
      invalid(`begins with ${came}`, () => fileOf(wrong, data), `the header begins with ${came}, expected the { of an object.`)),
    invalid('a byte order mark', () => fileOf(`\uFEFF${text}`, data), 'the header is no JSON in UTF-8'),
    ...noEntries,
  ],
  'names that come twice': [
    invalid('a tensor', () => fileOf(text.replace('{', '{"readout.bias":{"dtype":"F32","shape":[2],"data_offsets":[20,28]},'), data), 'the header has "readout.bias" twice in one object, expected each name once.'),
    invalid('a tensor, written in another way', () => fileOf(escaped.replace('{', '{"readout.bias":5,'), data), 'the header has "readout.bias" twice in one object'),
    invalid('a dtype', () => fileOf(text.replace('"dtype"', '"dtype":"F16", "dtype"'), data), 'the header has "dtype" twice in one object'),
    invalid('__metadata__', () => fileOf(text.replace('{', '{"__metadata__":{},"__metadata__" : {},'), data), 'the header has "__metadata__" twice in one object'),
    invalid('a text of the metadata', () => fileOf(text.replace('{', '{"__metadata__":{"a":"}{\\"b\\":","a":""},'), data), 'the header has "a" twice in one object'),
    invalid('__proto__', () => fileOf(text.replace('{', '{"__proto__":{},"__proto__":{},'), data), 'the header has "__proto__" twice in one object'),
  ],
  dtype: dtypes,
  shape: [
    ...shapes,
    invalid('of fewer numbers', bias({ shape: [1] }), '"readout.bias" has 8 bytes, expected 4 for (1) of F32.'),
    invalid('of more numbers', bias({ shape: [3] }), '"readout.bias" has 8 bytes, expected 12 for (3) of F32.'),
    invalid('of none', bias({ shape: [0] }), '"readout.bias" has 8 bytes, expected 0 for (0) of F32.'),
    invalid('of far more', bias({ shape: Array(40).fill(2 ** 31 - 1) }), '"readout.bias" has 8 bytes, expected Infinity for ('),
    invalid('of far more, and none', bias({ shape: [...Array<number>(40).fill(2 ** 31 - 1), 0] }), '"readout.bias" has 8 bytes, expected NaN for ('),
    invalid('of a wider dtype', bias({ dtype: 'F64' }), '"readout.bias" has 8 bytes, expected 16 for (2) of F64.'),
  ],
  data_offsets: [
    ...offsets,
    invalid('a hole', bias({ data_offsets: [24, 32] }, new Uint8Array(32)), '"readout.bias" begins at byte 24 of the data, expected 20, where the tensor before it ends.'),
    invalid('a hole at the start', () => fileOf(text.replace(/\[(\d+),(\d+)\]}/g, (_, a: string, b: string) => `[${+a + 4},${+b + 4}]}`), new Uint8Array(32)), '"embedding" begins at byte 4 of the data, expected 0'),
    invalid('an overlap', bias({ data_offsets: [16, 24] }, data.subarray(0, 24)), '"readout.bias" begins at byte 16 of the data, expected 20'),
    invalid('one in another', bias({ data_offsets: [0, 8] }, data.subarray(0, 20)), '"readout.bias" begins at byte 0 of the data, expected 8'),
    ['of a tensor without bytes, anywhere in the header, are right', () => load(fileOf(text.replace('{', '{"none":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},'), data)), 'INVALID_ARGUMENT', literal('load: the model has no "none"')],
    invalid('bytes after the last', () => fileOf(text, new Uint8Array(29)), 'the file has 29 bytes of data, expected the 28 of its tensors.'),
    invalid('bytes too few', () => fileOf(text, data.subarray(0, 27)), '"readout.bias".data_offsets is (20, 28), expected where its bytes begin and end, whole numbers from 0 to 27.'),
  ],
  __metadata__: [
    ...([[null, 'null'], [5, '5'], ['a', '"a"'], [[], 'an array']] as const).map(([given, came]) => invalid(came, withMetadata(given), `__metadata__ is ${came}, expected an object of texts.`)),
    ...([[1, '1'], [null, 'null'], [{}, 'an object of class Object'], [['a'], 'an array']] as const).map(([given, came]) =>
      invalid(`${came} inside`, withMetadata({ a: 'b', c: given }), `__metadata__ has ${came} for "c", expected a text.`)),
  ],
  'names of tensors': [
    ...['__proto__', 'constructor', 'embeding', 'layers.1.wo', ''].map((name) =>
      invalid(`"${name}"`, () => fileOf(text.replace('"readout.bias"', JSON.stringify(name)), data), `the model has no ${JSON.stringify(name)}, expected embedding, layers.0.wo, readout.weight, readout.bias.`)),
    invalid('one too few', () => fileOf(text.replace(/,"readout.bias".*?}/, ''), data.subarray(0, 20)), 'there is no readout.bias, expected all of embedding, layers.0.wo, readout.weight, readout.bias.'),
    invalid('none', () => fileOf('{}'), 'there is no embedding, expected all of'),
    ['of another shape', () => load(bias({ shape: [1, 2] })()), 'SHAPE_MISMATCH', literal('load: readout.bias has shape (1, 2), expected (2): as in this model.')],
  ],
};

const ours = (options: unknown, version = '1') => withMetadata({ format: 'qkv-sequence-model', version, ...(options === undefined ? {} : { options: typeof options === 'string' ? options : JSON.stringify(options) }) });
const settled = { ...SMALL, layers: 1, numHeads: 1, causal: false, residual: true };
const others: Record<string, [unknown, string]> = {
  vocab: [3, '3'], embedDim: [2, '2'], mixer: ['lstm', '"lstm"'], layers: [2, '2'], numHeads: [2, '2'], positions: ['rotary', '"rotary"'], readout: ['every', '"every"'],
  classes: [undefined, 'undefined'], ties: ['none', '"none"'], causal: [true, 'true'], residual: [false, 'false'], maxLength: [9, '9'],
};

refuses('load refuses', {
  engine: () => engine,
  untouched: () => [own, data, ...Object.values(model.parameters).map((parameter) => parameter.data)],
  next: () => {
    using next = engine.sequenceModel(SMALL);
    next.load(fileOf(text, data));
    assert.deepEqual(Object.values(next.parameters).flatMap((parameter) => [...parameter.data]), [...numbers], 'the next file was read wrongly');
  },
  tables: {
    ...tables,
    'another model’s file': [
      ...Object.entries(others).map(([name, [value, came]]) => {
        const expected = (settled as Record<string, unknown>)[name];
        return invalid(name, ours({ ...settled, [name]: value }), `the file's model has ${name} ${came}, expected ${typeof expected === 'string' ? JSON.stringify(expected) : expected} as in this one.`);
      }),
      invalid('a version of later', ours(settled, '2'), 'the file\'s version is "2", expected "1".'),
      ...[undefined, '', '5', 'null', '{', '"a"'].map((options) =>
        invalid(`options ${options}`, ours(options), `the file's options are ${options === undefined ? 'undefined' : JSON.stringify(options)}, expected the JSON of an object.`)),
      invalid('one with other parameters', () => {
        using lstm = engine.sequenceModel({ ...SMALL, ties: 'none', mixer: 'lstm' });
        return lstm.save();
      }, 'the file\'s model has mixer "lstm", expected "attention" as in this one.'),
    ],
    'a record': [
      ...wrongTensor('load: embedding', (embedding) => load({ ...model.parameters, embedding }), 'rank at least 1', [[]]),
      ...['embeding', 'a "b"\nc', ''].map((name) =>
        invalid(`an unknown name, ${name}`, () => ({ ...model.parameters, [name]: [1] }), `the model has no ${JSON.stringify(name)}, expected embedding, layers.0.wo, readout.weight, readout.bias.`)),
      invalid('a name that is missing', () => ({ embedding: [[1], [2]] }), 'there is no layers.0.wo, expected all of embedding, layers.0.wo, readout.weight, readout.bias.'),
      ['another shape', () => load({ ...model.parameters, 'readout.bias': [1, 2, 3] }), 'SHAPE_MISMATCH', literal('load: readout.bias has shape (3), expected (2): as in this model.')],
      invalid('a resident tensor of another engine', () => ({ ...model.parameters, embedding: [[7], [7]], 'readout.bias': other.resident(tensor([1, 2])) }), 'readout.bias is a resident tensor of another engine, expected one of this engine'),
    ],
  },
});
