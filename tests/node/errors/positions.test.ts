// What rotary, sinusoidal, alibiSlopes and embedding refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { alibiSlopes, type Engine, type MultiHeadAttention, sinusoidal, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongBuffer, wrongChoice, wrongNames, wrongNumber, wrongNumberList, wrongTensor, wrongWhole, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
let layer: MultiHeadAttention;
before(async () => {
  engine = await loadVariant();
  layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 2 });
});
after(() => engine.dispose());

const FARTHEST = 2 ** 30;
const LARGEST = 2 ** 31 - 1;
const x = tensor([[1, 2, 3, 4], [5, 6, 7, 8]]);
const table = tensor([[1, 2], [3, 4], [5, 6]]);
const indices = Int32Array.of(0, 3);
const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const tables = { cos: zeros(3, 2), sin: zeros(3, 2) };
// As JavaScript would call them, without TypeScript to help.
const rotary = (from: unknown, options: unknown) => (engine.rotary as (...args: unknown[]) => unknown).call(engine, from, options);
const turn = (options: object) => rotary(x, { pairing: 'halves', ...options });
const turnBack = (options: object) => engine.rotaryBackward(x, x, { pairing: 'halves', ...options });
const option = (name: string) => (value: unknown) => turn({ [name]: value });
const embed = (from: unknown, which: unknown) => (engine.embedding as (...args: unknown[]) => unknown).call(engine, from, which);
const refused = (name: string, options: object, message: RegExp): Refusal => [name, () => turn(options), 'INVALID_ARGUMENT', message];
const misfit = (name: string, options: object, message: RegExp): Refusal => [name, () => turn(options), 'SHAPE_MISMATCH', message];
const untyped = (call: unknown) => call as (...args: unknown[]) => unknown;

const perRow = { count: 2, meaning: 'a position for each row of x' };

refuses('rotary refuses', {
  engine: () => engine,
  untouched: () => [x.data, tables.cos.data, tables.sin.data],
  next: () => assert.deepEqual(engine.rotary(x, { pairing: 'halves', positions: [0, 0] }), x, 'the next call was wrong'),
  tables: {
    x: [
      ...wrongTensor('x', (from) => rotary(from, { pairing: 'halves' }), 'rank at least 1', [[]]),
      ['rank 1', () => rotary([1, 2], { pairing: 'halves' }), 'SHAPE_MISMATCH', /^x has rank 1 with shape \(2\), expected \(\.\.\., length, dim\)/],
    ],
    options: wrongNames('rotary: options', (options) => rotary(x, options), 'pairing, positions, offset, base, dims, cos, sin', true),
    pairing: [
      ...wrongChoice('pairing', option('pairing'), "'halves' or 'neighbours'", true),
      ["another library's word", () => turn({ pairing: 'interleaved' }), 'INVALID_ARGUMENT', /^pairing is "interleaved", expected 'halves' or 'neighbours'/],
    ],
    positions: [
      ...wrongNumberList('positions', option('positions'), perRow),
      ...[NaN, Infinity, -Infinity, 2 ** 31, -(2 ** 31)].map((position) =>
        refused(`${position} as an entry`, { positions: [0, position] }, new RegExp(`^positions\\[1\\] is ${position}, expected a number from -1073741824 to 1073741824`))),
      ...wrongWholeList('positions', (positions) => turn({ ...tables, positions }), 0, 2, perRow),
    ],
    offset: [
      ...wrongWhole('offset', option('offset'), -FARTHEST, FARTHEST),
      ...wrongWhole('offset', (offset) => turn({ ...tables, offset }), 0, FARTHEST),
      ...[turn, turnBack, (options: object) => layer.forward(x, { rotary: { pairing: 'halves', ...options } })].map((call, i): Refusal => [
        `too far for the last row, ${i}`, () => call({ offset: FARTHEST }), 'INVALID_ARGUMENT',
        /^offset is 1073741824 for 2 rows of x, expected at most 1073741823, so that the last position, offset \+ length - 1, is at most 1073741824/]),
      refused('with positions', { offset: 1, positions: [0, 1] }, /^offset is 1 together with positions, expected one or the other/),
    ],
    base: [
      ...wrongNumber('base', option('base'), 1),
      refused('with cos and sin', { ...tables, base: 100 }, /^base is 100 together with cos and sin, expected one or the other/),
      refused('a symbol with cos and sin', { ...tables, base: Symbol('s') }, /^base is a symbol together with cos and sin/),
    ],
    dims: [
      ...wrongWhole('dims', option('dims'), 0, 4),
      refused('odd', { dims: 3 }, /^dims is 3, expected an even number, since dimensions turn in pairs/),
      ['odd, as x has them', () => rotary(zeros(2, 3), { pairing: 'halves' }), 'INVALID_ARGUMENT', /^dims is 3, expected an even number/],
    ],
    cos: [
      ...wrongTensor('cos', (cos) => turn({ ...tables, cos }), 'rank 2', [[], [6], [1, 3, 2]], false),
      refused('alone', { cos: tables.cos }, /^cos came alone, expected both cos and sin, or neither/),
      misfit('more columns than x has pairs', { cos: zeros(3, 3), sin: zeros(3, 3) }, /^cos has shape \(3, 3\), expected \(any, 2\): \(positions, dims \/ 2\)/),
      misfit('other columns than dims', { ...tables, dims: 2 }, /^cos has shape \(3, 2\), expected \(any, 1\)/),
      misfit('too few rows', { ...tables, offset: 2 }, /^cos has 3 rows, expected at least 4: one for each position/),
    ],
    sin: [
      ...wrongTensor('sin', (sin) => turn({ ...tables, sin }), 'rank 2', [[], [6], [1, 3, 2]], false),
      refused('alone', { sin: tables.sin }, /^sin came alone, expected both cos and sin, or neither/),
      misfit('another shape', { ...tables, sin: zeros(2, 3) }, /^sin has shape \(2, 3\), expected \(3, 2\): cos's shape/),
    ],
  },
});

refuses('positions refuse', {
  engine: () => engine,
  untouched: () => [table.data, indices],
  next: () => {
    assert.deepEqual(sinusoidal(1, 2).toArray(), [[0, 1]], 'the next call of sinusoidal was wrong');
    assert.deepEqual(alibiSlopes(1).toArray(), [2 ** -8], 'the next call of alibiSlopes was wrong');
    assert.deepEqual(engine.embedding(table, [2]).toArray(), [[5, 6]], 'the next call of embedding was wrong');
  },
  tables: {
    'sinusoidal, length': [
      ...wrongWhole('length', (length) => untyped(sinusoidal)(length, 2), 0, LARGEST, true),
      ['more than a host can hold', () => sinusoidal(LARGEST, 2 ** 30), 'OUT_OF_MEMORY', /^sinusoidal takes 92233720325\d+ bytes, which this host does not give/],
    ],
    'sinusoidal, dim': wrongWhole('dim', (dim) => untyped(sinusoidal)(2, dim), 0, LARGEST, true),
    'sinusoidal, base': [
      ...wrongNumber('base', (base) => untyped(sinusoidal)(2, 2, { base })),
      ...[0, -0, -1].map((base): Refusal => [String(base), () => sinusoidal(1, 2, { base }), 'INVALID_ARGUMENT', /^base is -?\d, expected a finite number above 0/]),
    ],
    'sinusoidal, options': wrongNames('sinusoidal: options', (options) => untyped(sinusoidal)(1, 2, options), 'base'),
    'alibiSlopes, numHeads': wrongWhole('numHeads', (numHeads) => untyped(alibiSlopes)(numHeads), 0, LARGEST, true),
    'embedding, table': wrongTensor('table', (from) => embed(from, [0]), 'rank 2', [[], [6], [1, 3, 2]]),
    'embedding, indices': [
      ...wrongTensor('indices', (which) => embed(table, which), '', []).filter(([name]) => name !== 'a typed array'),
      ...[[0.5, '0.5'], [-1, '-1'], [3, '3'], [NaN, 'NaN'], [Infinity, 'Infinity'], [1e-12, '1e-12'], [2 ** 32, '4294967296']].map(([index, came]): Refusal => [
        `${came}`, () => embed(table, [[0, 1], [2, index]]), 'INVALID_ARGUMENT', new RegExp(`^indices\\[1\\]\\[1\\] is ${came}, expected a whole number from 0 to 2`)]),
      wrongBuffer('indices', (which) => embed(table, which)),
      ['beyond the table in a typed array', () => embed(table, indices), 'INVALID_ARGUMENT', /^indices\[1\] is 3, expected a whole number from 0 to 2/],
      ['beyond the table as a bigint', () => embed(table, BigInt64Array.of(3n)), 'INVALID_ARGUMENT', /^indices\[0\] is 3, expected a whole number from 0 to 2/],
    ],
  },
});
