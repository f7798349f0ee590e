// What attention refuses of the options that change scores and weights.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import {
  wrongChoice, wrongChoiceOrNames, wrongFlag, wrongMask, wrongNames, wrongNumber, wrongNumberList, wrongOffset, wrongTensor, wrongWhole, wrongWholeList,
} from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
// Two batches of three heads, four queries, five keys.
const query = zeros(2, 3, 4, 2);
const key = zeros(2, 3, 5, 2);
const out = tensor(new Float32Array(48).fill(7), [2, 3, 4, 2]);
// As JavaScript would call it, without TypeScript to help.
const attend = (options: unknown, q: unknown = query, k: unknown = key) =>
  (engine.attention as (...args: unknown[]) => unknown).call(engine, q, k, k, options);
const option = (name: string) => (value: unknown) => attend({ [name]: value, out });
const refused = (name: string, options: object, message: RegExp, code: 'INVALID_ARGUMENT' | 'SHAPE_MISMATCH' = 'INVALID_ARGUMENT'): Refusal =>
  [name, () => attend({ ...options, out }), code, message];
const misfit = (name: string, options: object, message: RegExp): Refusal => refused(name, options, message, 'SHAPE_MISMATCH');

const FARTHEST = 2 ** 30;
const perBatch = { count: 2, meaning: 'one offset a batch' };
const SPANS = String.raw`, expected one that broadcasts, aligned right, to \(batch, heads, queryLength, keyLength\) = \(2, 3, 4, 5\)`;

/** Shapes that do not broadcast, for what spans the scores. */
const misfits = (name: string, made: (shape: number[]) => object): Refusal[] => [
  ...[[3, 5], [5, 1], [1, 4], [2], [0], [2, 4, 5], [3, 5, 4], [4, 3, 4, 5], [2, 2, 4, 5], [2, 3, 4, 0]].map((shape): Refusal =>
    misfit(`(${shape.join(', ')})`, { [name]: made(shape) }, new RegExp(`^${name} has shape \\(${shape.join(', ')}\\)${SPANS}`))),
  ['one a batch or one a head', () => attend({ [name]: made([2, 4, 4]) }, zeros(2, 2, 4, 2), zeros(2, 2, 4, 2)), 'SHAPE_MISMATCH',
    new RegExp(`^${name} has shape \\(2, 4, 4\\), which could be one a batch or one a head; expected \\(2, 1, 4, 4\\) or \\(1, 2, 4, 4\\)`)],
];

refuses('attention refuses options', {
  engine: () => engine,
  untouched: () => [query.data, key.data, out.data],
  next: () => assert.deepEqual(engine.attention([[0, 0]], [[1, 2], [3, 4]], [[1, 2], [3, 6]]).output.toArray(), [[2, 4]], 'the next call was wrong'),
  tables: {
    scale: wrongNumber('scale', option('scale')),
    causal: [
      ...wrongChoiceOrNames('causal', (causal) => attend({ causal, out }, query, query), "true, false, 'top-left', 'bottom-right' or { offset }", 'offset', true),
      refused('true where lengths differ', { causal: true }, /^causal is true with 4 queries and 5 keys, expected 'top-left', 'bottom-right' or \{ offset \} where the lengths differ/),
    ],
    'causal.offset': [
      ...wrongOffset('causal.offset', (offset) => attend({ causal: { offset }, out }), -FARTHEST, FARTHEST, perBatch),
      refused('missing', { causal: {} }, /^causal\.offset is undefined, expected a whole number from -1073741824 to 1073741824/),
    ],
    window: [
      ...[null, 3, '3,3', true, Symbol('s'), { left: 1, right: 1 }, Int32Array.of(1, 1)].map((window): Refusal =>
        refused('no pair', { window }, /^window is .+, expected \[left, right\]/)),
      refused('one limit', { window: [1] }, /^window is a list of 1, expected \[left, right\]/),
      refused('three limits', { window: [1, 2, 3] }, /^window is a list of 3, expected \[left, right\]/),
      ...[0, 1].flatMap((side) => [-1, 0.5, NaN, -Infinity, 2 ** 40 + 0.5, null, undefined, '3', '99999999999', 99999999999n, true, Symbol('s'), [1], {}].map((limit): Refusal =>
        refused(String(limit), { window: side === 0 ? [limit, 1] : [1, limit] }, new RegExp(`^window\\[${side}\\] is .+, expected a whole number that is not negative, or Infinity`)))),
      refused('a hole', { window: Object.assign(Array(2), { 1: 1 }) }, /^window\[0\] is undefined, expected a whole number/),
    ],
    queryOffset: [
      ...wrongOffset('queryOffset', option('queryOffset'), -FARTHEST, FARTHEST, perBatch),
      ...(['top-left', 'bottom-right'] as const).map((causal) =>
        refused(`with ${causal}`, { queryOffset: 1, causal }, new RegExp(`^queryOffset is given together with causal '${causal}', expected one of them`))),
      refused('with an offset', { queryOffset: 0, causal: { offset: 0 } }, /^queryOffset is given together with causal \{ offset \}, expected one of them/),
      refused('wrong, with causal: false', { queryOffset: NaN, causal: false }, /^queryOffset is NaN, expected a whole number/),
    ],
    keyLengths: wrongWholeList('keyLengths', option('keyLengths'), 0, 5, { count: 2, meaning: 'one length a batch' }),
    mask: [
      ...wrongMask('mask', option('mask')),
      ...misfits('mask', (shape) => ({ data: new Uint8Array(shape.reduce((a, b) => a * b)), shape })),
      misfit('rank 5', { mask: { data: new Uint8Array(1), shape: [1, 1, 1, 1, 1] } }, new RegExp(`^mask has shape \\(1, 1, 1, 1, 1\\)${SPANS}`)),
    ],
    bias: [
      ...wrongTensor('bias', option('bias'), 'rank 0 or 1 or 2 or 3 or 4', [[1, 1, 1, 1, 1]], false),
      ...misfits('bias', (shape) => zeros(...shape)),
      ...[new Uint8Array(20), new Uint8ClampedArray(20)].map((data) =>
        refused(data.constructor.name, { bias: { data, shape: [4, 5] } }, /^bias holds bytes, expected numbers to add to the scores; give true and false as mask/)),
    ],
    alibi: [
      ...wrongNumberList('alibi', option('alibi'), { count: 3, meaning: 'one slope a head, or true for the standard ones' }, true),
      ...[NaN, Infinity, -Infinity, 1e300].map((slope) => refused(`${slope} inside`, { alibi: [1, slope, 1] }, /^alibi\[1\] is \S+, expected a finite number/)),
    ],
    softcap: [
      ...wrongNumber('softcap', option('softcap')),
      ...[0, -0, -1, 1e-60].map((softcap) => refused(String(softcap), { softcap }, /^softcap is \S+, expected a number above 0/)),
    ],
    sinks: [
      ...wrongNumberList('sinks', option('sinks'), { count: 3, meaning: 'one logit a head' }),
      ...[NaN, Infinity, 1e300, -1e300].map((sink) => refused(`${sink} inside`, { sinks: [1, sink, 1] }, /^sinks\[1\] is \S+, expected a finite number/)),
    ],
    dropout: [
      ...wrongNames('dropout', option('dropout'), 'p, seed'),
      ...[undefined, null, '0.5', 5n, NaN, Infinity, -0.1, 1, 2, 1 - 1e-12, Symbol('s'), true, [0.5], {}].map((p) =>
        refused(String(p), { dropout: { p, seed: 1 } }, /^dropout\.p is .+, expected a number from 0 to below 1/)),
    ],
    'dropout.seed': wrongWhole('dropout.seed', (seed) => attend({ dropout: { p: 0.5, seed }, out }), 0, Number.MAX_SAFE_INTEGER, true),
    weights: [
      ...wrongChoiceOrNames('weights', option('weights'), "'heads', 'mean' or { heads, queries }", 'heads, queries'),
      ...wrongWholeList('weights.heads', (heads) => attend({ weights: { heads }, out }), 0, 2, { meaning: 'heads to give the weights of' }),
      ...wrongWholeList('weights.queries', (queries) => attend({ weights: { queries }, out }), 0, 3, { meaning: 'queries to give the weights of' }),
      ['heads where there is no axis of them', () => attend({ weights: { heads: [0, 0] } }, [[1]], [[1]]), 'INVALID_ARGUMENT', /^weights\.heads is given with a query of rank 2, expected an axis of heads/],
    ],
    scores: wrongChoice('scores', option('scores'), "'raw' or 'capped' or 'biased'"),
    logSumExp: wrongFlag('logSumExp', option('logSumExp')),
  },
});
