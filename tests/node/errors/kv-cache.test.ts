// What a cache of keys and values refuses, and that it is then as it was.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, type KvCache, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongNames, wrongNumber, wrongOffset, wrongPlace, wrongTensor, wrongWhole, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
/** Holds 3 of 5 positions. */
let cache: KvCache;
/** Of a batch of 2. */
let batched: KvCache;
const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
before(async () => {
  engine = await loadVariant();
  cache = engine.kvCache({ numKvHeads: 2, headDim: 2, valueDim: 3, capacity: 5 });
  cache.append(zeros(2, 3, 2), tensor(Float32Array.from({ length: 18 }, (_, i) => i), [2, 3, 3]));
  batched = engine.kvCache({ batch: 2, numKvHeads: 1, headDim: 2, capacity: 5 });
});
after(() => engine.dispose());

const LARGEST = 2 ** 31 - 1;
const key = zeros(2, 1, 2);
const value = zeros(2, 1, 3);
const query = zeros(4, 2, 2);
const out = tensor(new Float32Array(24).fill(7), [4, 2, 3]);
// As JavaScript would call them, without TypeScript to help.
const make = (options: unknown) => (engine.kvCache as (options: unknown) => unknown).call(engine, options);
const size = (name: string) => (given: unknown) => make({ numKvHeads: 2, headDim: 2, capacity: 5, [name]: given });
const append = (k: unknown, v: unknown, to = () => cache) => (to().append as (...args: unknown[]) => unknown).call(to(), k, v);
const attend = (q: unknown, options?: unknown, to = () => cache) => (to().attend as (...args: unknown[]) => unknown).call(to(), q, options);
const option = (name: string) => (given: unknown) => attend(query, { [name]: given, out });
const truncate = (n: unknown) => (cache.truncate as (n: unknown) => unknown).call(cache, n);
const refused = (name: string, call: () => unknown, message: RegExp): Refusal => [name, call, 'INVALID_ARGUMENT', message];
const misfit = (name: string, call: () => unknown, message: RegExp): Refusal => [name, call, 'SHAPE_MISMATCH', message];

refuses('kvCache refuses', {
  engine: () => engine,
  untouched: () => [key.data, value.data, query.data, out.data],
  next: () => {
    assert.deepEqual([cache.length, batched.length, cache.capacity], [3, 0, 5], 'the failing call changed the cache');
    // Queries of 0 give the mean of what they see: two positions, then three.
    const [one, , two] = cache.attend(query).output.toArray();
    assert.deepEqual([one, two], [[[1.5, 2.5, 3.5], [3, 4, 5]], [[10.5, 11.5, 12.5], [12, 13, 14]]], 'the next call was wrong');
  },
  tables: {
    'the options of a cache': wrongNames('kvCache: options', make, 'batch, numKvHeads, headDim, valueDim, capacity', true),
    batch: wrongWhole('batch', size('batch'), 0, LARGEST),
    numKvHeads: wrongWhole('numKvHeads', size('numKvHeads'), 0, LARGEST, true),
    headDim: wrongWhole('headDim', size('headDim'), 0, LARGEST, true),
    valueDim: wrongWhole('valueDim', size('valueDim'), 0, LARGEST),
    capacity: [
      ...wrongWhole('capacity', size('capacity'), 0, LARGEST, true),
      ['more than there is', () => size('capacity')(LARGEST), 'OUT_OF_MEMORY', /^kvCache needs 68719476\d+ bytes, but the engine may use at most \d+ bytes/],
    ],
    'key to append': [
      ...wrongTensor('key', (k) => append(k, value), 'rank 3 or 4', [[], [4], [2, 2], [1, 1, 2, 1, 2]]),
      misfit('other heads', () => append(zeros(1, 1, 2), value), /^key has shape \(1, 1, 2\), expected \(2, any, 2\): the cache's heads and dim/),
      misfit('another dim', () => append(zeros(2, 1, 3), value), /^key has shape \(2, 1, 3\), expected \(2, any, 2\)/),
      misfit('another batch', () => append(zeros(2, 2, 1, 2), value), /^key has shape \(2, 2, 1, 2\), expected \(1, 2, any, 2\)/),
      misfit('no batch', () => append(zeros(1, 1, 2), zeros(1, 1, 2), () => batched), /^key has rank 3 with shape \(1, 1, 2\), expected rank 4/),
      refused('more positions than fit', () => append(zeros(2, 3, 2), zeros(2, 3, 3)), /^key has 3 positions, but the cache holds 3 of at most 5, expected no more than 2/),
    ],
    'value to append': [
      ...wrongTensor('value', (v) => append(key, v), 'rank 3 or 4', [[], [4], [2, 2], [1, 1, 2, 1, 3]]),
      misfit('another length', () => append(key, zeros(2, 2, 3)), /^value has shape \(2, 2, 3\), expected \(2, 1, 3\): the cache's heads and dim, and the key's length/),
      misfit('the dim of keys', () => append(key, zeros(2, 1, 2)), /^value has shape \(2, 1, 2\), expected \(2, 1, 3\)/),
      misfit('another batch', () => append(zeros(2, 1, 1, 2), zeros(1, 1, 1, 2), () => batched), /^value has shape \(1, 1, 1, 2\), expected \(2, 1, 1, 2\)/),
    ],
    query: [
      ...wrongTensor('query', (q) => attend(q, { out }), 'rank 3 or 4', [[], [4], [2, 2], [1, 1, 2, 1, 2]]),
      misfit('another dim', () => attend(zeros(2, 1, 3)), /^query has shape \(2, 1, 3\), expected \(any, any, 2\): the cache's batch and dim/),
      misfit('another batch', () => attend(zeros(3, 1, 1, 2), {}, () => batched), /^query has shape \(3, 1, 1, 2\), expected \(2, any, any, 2\)/),
      misfit('heads that are no multiple', () => attend(zeros(3, 1, 2)), /^query has 3 heads and the cache has 2, expected query heads that are a multiple/),
    ],
    'the options of attend': [
      ...wrongNames('attend: options', (options) => attend(query, options), 'scale, causal, window'),
      ...['sequences', 'layout', 'numHeads', 'numKvHeads'].map((name) =>
        refused(`${name}, which attention has`, () => attend(query, { [name]: undefined }), new RegExp(`^attend: options has no "${name}"`))),
      ...wrongNumber('scale', option('scale')),
      ...wrongWholeList('keyLengths', option('keyLengths'), 0, 3, { count: 1, meaning: 'one length a batch' }),
      refused('causal: true where lengths differ', () => attend(query, { causal: true, out }), /^causal is true with 2 queries and 3 keys, expected 'top-left'/),
      misfit('a mask of the capacity', () => attend(query, { mask: { data: new Uint8Array(10), shape: [2, 5] }, out }), /^mask has shape \(2, 5\), expected one that broadcasts, aligned right, to \(batch, heads, queryLength, keyLength\) = \(1, 4, 2, 3\)/),
    ],
    'queryOffset, alone and with causal': [
      ...wrongOffset('queryOffset', option('queryOffset'), -(2 ** 30), 2 ** 30, { count: 1, meaning: 'one offset a batch' }),
      ...wrongOffset('queryOffset', (queryOffset) => attend(query, { queryOffset, causal: false, out }), -(2 ** 30), 2 ** 30, { count: 1, meaning: 'one offset a batch' }),
      refused('with a named causal', () => attend(query, { queryOffset: 1, causal: 'top-left' }), /^queryOffset is given together with causal 'top-left', expected one of them/),
    ],
    out: [
      ...wrongPlace('out', (to) => attend(query, { out: to })),
      misfit('another shape', () => attend(query, { out: { data: out.data, shape: [4, 3, 2] } }), /^out has shape \(4, 3, 2\), expected \(4, 2, 3\): the result's shape/),
      misfit('another rank', () => attend(query, { out: { data: out.data, shape: [1, 4, 2, 3] } }), /^out has shape \(1, 4, 2, 3\), expected \(4, 2, 3\)/),
    ],
    n: wrongWhole('n', truncate, 0, 3, true),
  },
});
