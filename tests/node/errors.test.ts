import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, load, sinusoidal, tensor } from 'qkv';

import { errorOf, loadVariant, variant } from './support/engine.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const x23 = tensor([[1, 2, 3], [4, 5, 6]]);
const square = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
// As JavaScript would call it, without TypeScript to help.
const call = (method: 'attention' | 'explain' | 'rnn' | 'rnnStep', ...args: unknown[]) => () =>
  (engine[method] as (...args: unknown[]) => unknown)(...args);

type Code = 'INVALID_ARGUMENT' | 'SHAPE_MISMATCH';
// What is called, the code, and what the message must say: the argument, what came, what was expected.
const REFUSED: [string, () => unknown, Code, RegExp][] = [
  ['query: nothing', call('attention'), 'INVALID_ARGUMENT', /^query is undefined, expected a tensor/],
  ['query: a string', call('attention', 'abc', x23, x23), 'INVALID_ARGUMENT', /^query is "abc"/],
  ['query: rank 1', call('attention', [1, 2], x23, x23), 'SHAPE_MISMATCH', /^query has rank 1 with shape \(2\), expected rank 2 or 3 or 4/],
  ['query: booleans', call('attention', [[true, false]], x23, x23), 'INVALID_ARGUMENT', /^query holds booleans, expected numbers/],
  ['query: ragged', call('attention', [[1, 2, 3], [4]], x23, x23), 'SHAPE_MISMATCH', /^query is ragged: a row of 1 where rows of 3 were expected/],
  ['query: a word inside', call('attention', [[1, 'x', 3]], x23, x23), 'INVALID_ARGUMENT', /^query holds "x", expected only numbers/],
  ['query: data that is no typed array', call('attention', { data: [1, 2], shape: [1, 2] }, x23, x23), 'INVALID_ARGUMENT', /^query.data is an array, expected a typed array/],
  ['query: a DataView', call('attention', { data: new DataView(new ArrayBuffer(8)), shape: [1, 2] }, x23, x23), 'INVALID_ARGUMENT', /^query.data is an object of class DataView/],
  ['query: a shape that does not hold the data', call('attention', { data: new Float32Array(5), shape: [2, 3] }, x23, x23), 'SHAPE_MISMATCH', /^query.shape \(2, 3\) holds 6 elements, but the data has 5/],
  ['query: a negative shape', call('attention', { data: new Float32Array(6), shape: [-2, -3] }, x23, x23), 'INVALID_ARGUMENT', /^query.shape is \(-2, -3\), expected whole numbers from 0 to 2147483647/],
  ['query: an axis beyond 32 bits', call('attention', { data: new Float32Array(0), shape: [0, 5e9] }, x23, x23), 'INVALID_ARGUMENT', /^query.shape is \(0, 5000000000\)/],
  ['key: another rank', call('attention', x23, [x23.toArray()], x23), 'SHAPE_MISMATCH', /^key has rank 3 with shape \(1, 2, 3\), expected rank 2/],
  ['key: another dim', call('attention', x23, [[1, 2]], [[1]]), 'SHAPE_MISMATCH', /^key has shape \(1, 2\), expected \(any, 3\): its rank, batch and dim are the query's/],
  ['value: another length', call('attention', x23, x23, [[1]]), 'SHAPE_MISMATCH', /^value has shape \(1, 1\), expected \(2, any\)/],
  ['heads: not a multiple', call('attention', [[[1]], [[1]], [[1]]], [[[1]], [[1]]], [[[1]], [[1]]]), 'SHAPE_MISMATCH', /^query has 3 heads and key has 2, expected a multiple/],
  ['batch: unlike', call('attention', [[[[1]]]], [[[[1]]], [[[1]]]], [[[[1]]], [[[1]]]]), 'SHAPE_MISMATCH', /^key has shape \(2, 1, 1, 1\), expected \(1, 1, any, 1\)/],
  ['options: null', call('attention', x23, x23, x23, null), 'INVALID_ARGUMENT', /^attention: options is null, expected an object of scale, causal/],
  ['options: misspelt', call('attention', x23, x23, x23, { cuasal: true }), 'INVALID_ARGUMENT', /^attention: options has no "cuasal"; it may have scale, causal/],
  ['scale: NaN', call('attention', x23, x23, x23, { scale: NaN }), 'INVALID_ARGUMENT', /^scale is NaN, expected a finite number/],
  ['scale: Infinity', call('attention', x23, x23, x23, { scale: Infinity }), 'INVALID_ARGUMENT', /^scale is Infinity/],
  ['scale: beyond float32', call('attention', x23, x23, x23, { scale: 1e300 }), 'INVALID_ARGUMENT', /^scale is 1e\+300/],
  ['scale: a string', call('attention', x23, x23, x23, { scale: '1' }), 'INVALID_ARGUMENT', /^scale is "1"/],
  ['causal: a word', call('attention', x23, x23, x23, { causal: 'yes' }), 'INVALID_ARGUMENT', /^causal is "yes", expected true, false, 'top-left'/],
  ['causal: null', call('attention', x23, x23, x23, { causal: null }), 'INVALID_ARGUMENT', /^causal is null/],
  ['causal: true with unlike lengths', call('attention', x23, [[1, 2, 3]], [[1]], { causal: true }), 'INVALID_ARGUMENT', /^causal is true with 2 queries and 1 keys, expected 'top-left'/],
  ['causal: half an offset', call('attention', x23, x23, x23, { causal: { offset: 0.5 } }), 'INVALID_ARGUMENT', /^causal is \{ offset: 0.5 \}/],
  ['mask: numbers', call('attention', x23, x23, x23, { mask: [[1, 0], [0, 1]] }), 'INVALID_ARGUMENT', /^mask holds numbers, expected booleans/],
  ['mask: another shape', call('attention', x23, x23, x23, { mask: [[true, false, true]] }), 'SHAPE_MISMATCH', /^mask has shape \(1, 3\), expected one that broadcasts, aligned right, to \(batch, heads, queryLength, keyLength\) = \(1, 1, 2, 2\)/],
  ['mask: one a batch or one a head', call('attention', ...Array(3).fill(tensor(new Float32Array(8), [2, 2, 2, 1])), { mask: [[[true, true], [true, true]], [[true, false], [true, false]]] }), 'SHAPE_MISMATCH', /^mask has shape \(2, 2, 2\), which could be one a batch or one a head; expected \(2, 1, 2, 2\) or \(1, 2, 2, 2\)/],
  ['layout: unknown', call('attention', x23, x23, x23, { layout: 'lbhd' }), 'INVALID_ARGUMENT', /^layout is "lbhd", expected 'bhld' or 'blhd'/],
  ['layout: of rank 2', call('attention', x23, x23, x23, { layout: 'blhd' }), 'INVALID_ARGUMENT', /^layout is 'blhd' with rank 2, expected rank 4/],
  ['weights: true', call('attention', x23, x23, x23, { weights: true }), 'INVALID_ARGUMENT', /^weights is true, expected 'heads'/],
  ['logSumExp: 1', call('attention', x23, x23, x23, { logSumExp: 1 }), 'INVALID_ARGUMENT', /^logSumExp is 1, expected true or false/],
  ['explain: no options', call('explain', x23), 'INVALID_ARGUMENT', /^explain: options is undefined/],
  ['explain: no wq', call('explain', x23, { wk: square, wv: square }), 'INVALID_ARGUMENT', /^wq is undefined/],
  ['explain: wk of another dim', call('explain', x23, { wq: square, wk: [[1], [2], [3]], wv: square }), 'SHAPE_MISMATCH', /^wk has shape \(3, 1\), expected \(3, 3\)/],
  ['explain: wv of another dim', call('explain', x23, { wq: square, wk: square, wv: [[1], [2]] }), 'SHAPE_MISMATCH', /^wv has shape \(2, 1\), expected \(3, any\)/],
  ['explain: an option of attention', call('explain', x23, { wq: square, wk: square, wv: square, weights: 'heads' }), 'INVALID_ARGUMENT', /^explain: options has no "weights"/],
  ['rnn: no parameters', call('rnn', x23), 'INVALID_ARGUMENT', /^rnn: parameters is undefined, expected an object of wx, wh, bx, bh/],
  ['rnn: a parameter it has not', call('rnn', x23, { wx: square, wh: square, bz: [1] }), 'INVALID_ARGUMENT', /^rnn: parameters has no "bz"/],
  ['rnn: wx of another dim', call('rnn', x23, { wx: [[1]], wh: [[1]] }), 'SHAPE_MISMATCH', /^wx has shape \(1, 1\), expected \(3, any\)/],
  ['rnn: wh not square', call('rnn', x23, { wx: square, wh: [[1, 2, 3]] }), 'SHAPE_MISMATCH', /^wh has shape \(1, 3\), expected \(3, 3\)/],
  ['rnn: bx of another length', call('rnn', x23, { wx: square, wh: square, bx: [1] }), 'SHAPE_MISMATCH', /^bx has shape \(1\), expected \(3\)/],
  ['rnn: bh of rank 2', call('rnn', x23, { wx: square, wh: square, bh: [[1]] }), 'SHAPE_MISMATCH', /^bh has rank 2/],
  ['rnn: h0 of another length', call('rnn', x23, { wx: square, wh: square }, { h0: [1, 2] }), 'SHAPE_MISMATCH', /^h0 has shape \(2\), expected \(3\)/],
  ['rnn: rank 4', call('rnn', [[[[1]]]], { wx: square, wh: square }), 'SHAPE_MISMATCH', /^x has rank 4/],
  ['rnnStep: no state', call('rnnStep', [1, 2, 3], undefined, { wx: square, wh: square }), 'INVALID_ARGUMENT', /^rnnStep: state is undefined, expected an object of h/],
  ['rnnStep: a state of another length', call('rnnStep', [1, 2, 3], { h: [1] }, { wx: square, wh: square }), 'SHAPE_MISMATCH', /^h has shape \(1\), expected \(3\)/],
  ['tensor: a word', () => tensor('abc' as never), 'INVALID_ARGUMENT', /^tensor: data is "abc", expected nested arrays of numbers or a typed array/],
  ['tensor: a shape of another size', () => tensor(new Float32Array(4), [3]), 'SHAPE_MISMATCH', /^shape \(3\) holds 3 elements, but the data has 4/],
  ['at: out of range', () => x23.at(0, 3), 'INVALID_ARGUMENT', /^at: index 3 came for axis 1, expected a whole number from 0 below 3/],
  ['at: too few', () => x23.at(0), 'INVALID_ARGUMENT', /^at: 1 indices came, expected 2/],
  ['sinusoidal: half a length', () => sinusoidal(1.5, 2), 'INVALID_ARGUMENT', /^length is 1.5/],
  ['sinusoidal: a negative dim', () => sinusoidal(1, -2), 'INVALID_ARGUMENT', /^dim is -2/],
  ['sinusoidal: base 0', () => sinusoidal(1, 2, { base: 0 }), 'INVALID_ARGUMENT', /^base is 0/],
  ['load: an unknown option', () => load({ turbo: true } as never), 'INVALID_ARGUMENT', /^load: options has no "turbo"/],
  ['load: an unknown variant', () => load({ variant: 'avx' as never }), 'INVALID_ARGUMENT', /^variant is "avx", expected 'simd'/],
  ['load: half a thread', () => load({ threads: 0.5 }), 'INVALID_ARGUMENT', /^threads is 0.5, expected a whole number from 1/],
  ['load: no memory', () => load({ maxMemory: 5 }), 'INVALID_ARGUMENT', /^maxMemory is 5, expected at least 2097152 bytes/],
  ['sinusoidal: a misspelt option', () => sinusoidal(1, 2, { bas: 3 } as never), 'INVALID_ARGUMENT', /^sinusoidal: options has no "bas"/],
  ['causal: a symbol', call('attention', x23, x23, x23, { causal: { offset: Symbol() } }), 'INVALID_ARGUMENT', /^causal is \{ offset: a symbol \}/],
  ['query: a function', call('attention', () => 1, x23, x23), 'INVALID_ARGUMENT', /^query is a function/],
  ['load: memory as text', () => load({ maxMemory: '30000000' as never }), 'INVALID_ARGUMENT', /^maxMemory is "30000000"/],
  ['load: memory as a bigint', () => load({ maxMemory: 30000000n as never }), 'INVALID_ARGUMENT', /^maxMemory is 30000000n/],
  ['load: no wasm', () => load({ wasm: null as never }), 'INVALID_ARGUMENT', /^wasm is null, expected a URL, bytes/],
  ['load: wasm at no URL', () => load({ wasm: 'file://[bad' }), 'INVALID_ARGUMENT', /^wasm is "file:\/\/\[bad", which is no valid URL/],
  ['load: wasm that is a number', () => load({ wasm: 7 as never }), 'INVALID_ARGUMENT', /^wasm is 7, expected a URL, bytes/],
];

describe(`what is refused, ${variant}`, () => {
  for (const [name, refused, code, message] of REFUSED) {
    test(name, async () => {
      const error = await errorOf(refused);
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      assert.deepEqual(engine.attention([[1]], [[1]], [[5]]).output.toArray(), [[5]], 'the next call was wrong');
    });
  }

  test('a transferred array is named', async () => {
    const data = new Float32Array(6);
    structuredClone(data, { transfer: [data.buffer] });
    const error = await errorOf(() => engine.attention({ data, shape: [2, 3] }, x23, x23));
    assert.match(error.message, /^query.shape \(2, 3\) holds 6 elements, but the data has 0 \(was its buffer transferred away\?\)\./);
  });

  test('a result that the host cannot hold is out of memory', async () => {
    assert.equal((await errorOf(() => sinusoidal(2 ** 31, 2 ** 20))).code, 'OUT_OF_MEMORY');
  });

  test('failing calls take no memory', async () => {
    const used = engine.info().memory.used;
    for (let repeat = 0; repeat < 20; repeat++) {
      for (const [, refused] of REFUSED.filter(([name]) => !name.startsWith('load'))) await errorOf(refused);
    }
    assert.equal(engine.info().memory.used, used);
  });
});
