// What a layer of multi-head attention refuses.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, type MultiHeadAttention, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongChoice, wrongFlag, wrongMask, wrongNames, wrongNumber, wrongPlace, wrongTensor, wrongWhole } from '../support/wrong.js';

let engine: Engine;
let layer: MultiHeadAttention;
before(async () => {
  engine = await loadVariant();
  layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, numKvHeads: 1, bias: false });
});
after(() => engine.dispose());

const LARGEST = 2 ** 31 - 1;
const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3, 4], [5, 6, 7, 8]]);
const batch = zeros(2, 3, 4);
const out = tensor(new Float32Array(8).fill(7), [2, 4]);
// As JavaScript would call them, without TypeScript to help.
const make = (options: unknown) => (engine.multiHeadAttention as (options: unknown) => unknown).call(engine, options);
const size = (name: string, more = {}) => (value: unknown) => make({ embedDim: 4, numHeads: 2, ...more, [name]: value });
const forward = (from: unknown, options?: unknown) => (layer.forward as (...args: unknown[]) => unknown).call(layer, from, options);
const option = (name: string) => (value: unknown) => forward(x, { [name]: value, out });
const refused = (name: string, options: unknown, message: RegExp, from: unknown = x): Refusal => [name, () => forward(from, options), 'INVALID_ARGUMENT', message];
const misfit = (name: string, options: unknown, message: RegExp, from: unknown = x): Refusal => [name, () => forward(from, options), 'SHAPE_MISMATCH', message];

refuses('multiHeadAttention refuses', {
  engine: () => engine,
  untouched: () => [x.data, out.data, batch.data, ...Object.values(layer.parameters).map(({ data }) => data as Float32Array)],
  next: () => {
    const { wq, wk, wv, wo } = layer.parameters;
    const merged = (weight: { data: Float32Array }) => tensor(weight.data.slice(), [4, weight.data.length / 4]);
    const [query, key, value] = [wq, wk, wv].map((weight) => engine.linear(x, merged(weight)));
    const mixed = engine.attention(query!, key!, value!, { numHeads: 2, numKvHeads: 1 }).output;
    assert.deepEqual(layer.forward(x).output, engine.linear(mixed, wo), 'the next call was wrong');
  },
  tables: {
    'the options of a layer': wrongNames('multiHeadAttention: options', make, 'embedDim, numHeads', true),
    embedDim: [
      ...wrongWhole('embedDim', size('embedDim'), 0, LARGEST, true),
      ['no multiple of numHeads', () => make({ embedDim: 5, numHeads: 2 }), 'INVALID_ARGUMENT', /^embedDim is 5 with 2 heads, expected a multiple of numHeads, or headDim given/],
      ['more than a host can hold', () => make({ embedDim: LARGEST, numHeads: 1 }), 'OUT_OF_MEMORY', /^multiHeadAttention takes \d{19,} bytes/],
      ['a bias beyond that, and no weights', () => make({ embedDim: LARGEST, numHeads: LARGEST, headDim: LARGEST }), 'OUT_OF_MEMORY', /^multiHeadAttention takes \S+ bytes/],
    ],
    numHeads: wrongWhole('numHeads', size('numHeads'), 1, LARGEST, true),
    numKvHeads: [
      ...wrongWhole('numKvHeads', size('numKvHeads'), 1, LARGEST),
      ['does not divide numHeads', () => make({ embedDim: 12, numHeads: 4, numKvHeads: 3 }), 'SHAPE_MISMATCH', /^numHeads is 4 and numKvHeads is 3, expected query heads that are a multiple of the key's/],
      ['more than numHeads', () => make({ embedDim: 4, numHeads: 2, numKvHeads: 4 }), 'SHAPE_MISMATCH', /^numHeads is 2 and numKvHeads is 4, expected/],
    ],
    headDim: wrongWhole('headDim', size('headDim'), 0, LARGEST),
    bias: wrongFlag('bias', size('bias')),
    seed: wrongWhole('seed', size('seed'), 0),
    x: [
      ...wrongTensor('x', (from) => forward(from, { out }), 'rank 2 or 3', [[], [4], [1, 1, 2, 4]]),
      misfit('another dim', {}, /^x has shape \(2, 3\), expected \(2, 4\): its last axis is the layer's embedDim/, zeros(2, 3)),
      misfit('another dim in a batch', {}, /^x has shape \(1, 2, 5\), expected \(1, 2, 4\)/, zeros(1, 2, 5)),
    ],
    'the options of forward': [
      ...wrongNames('forward: options', (options) => forward(x, options), 'scale, causal, window'),
      ...['layout', 'numHeads', 'numKvHeads'].map((name) => refused(`${name}, which the layer has`, { [name]: undefined }, new RegExp(`^forward: options has no "${name}"`))),
    ],
    context: [
      ...wrongTensor('context', option('context'), 'rank 2', [[], [4], [1, 2, 4]], false),
      misfit('another dim', { context: zeros(2, 3) }, /^context has shape \(2, 3\), expected \(any, 4\): x's batch, and the layer's embedDim/),
      misfit('another batch', { context: zeros(1, 3, 4) }, /^context has shape \(1, 3, 4\), expected \(2, any, 4\)/, batch),
      misfit('no batch', { context: zeros(3, 4) }, /^context has rank 2 with shape \(3, 4\), expected rank 3/, batch),
      refused('causal: true where lengths differ', { context: zeros(3, 4), causal: true }, /^causal is true with 2 queries and 3 keys, expected 'top-left'/),
    ],
    rotary: [
      ...wrongNames('rotary: options', option('rotary'), 'pairing, positions'),
      refused('no pairing', { rotary: {}, out }, /^pairing is undefined, expected 'halves' or 'neighbours'/),
      refused('more dims than a head has', { rotary: { pairing: 'halves', dims: 4 }, out }, /^dims is 4, expected a whole number from 0 to 2/),
      misfit('positions of other rows', { rotary: { pairing: 'halves', positions: [1] }, out }, /^positions has shape \(1\), expected 2 entries: a position for each row of x\.$/),
      misfit('positions that the keys of a context do not have', { rotary: { pairing: 'halves', positions: [0, 1] }, context: zeros(3, 4), out }, /^positions has shape \(2\), expected 3 entries: a position for each row of context\.$/),
      refused('an offset too far for the keys of a context', { rotary: { pairing: 'halves', offset: 2 ** 30 - 1 }, context: zeros(3, 4), out }, /^offset is 1073741823 for 3 rows of context, expected at most 1073741822/),
    ],
    out: [
      ...wrongPlace('out', (to) => forward(x, { out: to })),
      ['nested arrays', () => forward(x, { out: x.toArray() }), 'INVALID_ARGUMENT', /^out holds nested arrays, expected a tensor with a Float32Array/],
      misfit('another shape', { out: { data: out.data, shape: [4, 2] } }, /^out has shape \(4, 2\), expected \(2, 4\): the result's shape/),
    ],
    "attention's options": [
      ...wrongNumber('scale', option('scale')),
      ...wrongMask('mask', option('mask')),
      ...wrongChoice('scores', option('scores'), "'raw' or 'capped' or 'biased'"),
      misfit('mask of other heads', { mask: { data: new Uint8Array(12), shape: [3, 2, 2] }, out }, /^mask has shape \(3, 2, 2\), expected one that broadcasts, aligned right, to \(batch, heads, queryLength, keyLength\) = \(1, 2, 2, 2\)/),
      misfit('sinks of key heads', { sinks: [0], out }, /^sinks has shape \(1\), expected 2 entries: one logit a head/),
      refused('chosen heads', { weights: { heads: [2] }, out }, /^weights\.heads\[0\] is 2, expected a whole number from 0 to 1/),
    ],
    'parameters that were transferred away': [
      ['in forward', () => {
        const gone = engine.multiHeadAttention({ embedDim: 4, numHeads: 1 });
        structuredClone(gone.parameters.wk.data, { transfer: [gone.parameters.wk.data.buffer] });
        gone.forward(x);
      }, 'SHAPE_MISMATCH', /^parameters\.wk\.shape \(4, 4\) holds 16 elements, but the data has 0 \(was its buffer transferred away\?\)/],
      ['in load', () => {
        const gone = engine.multiHeadAttention({ embedDim: 4, numHeads: 1 });
        const { bo } = gone.parameters;
        structuredClone(bo!.data, { transfer: [bo!.data.buffer] });
        const before = gone.parameters.wq.data.slice();
        try {
          const w = zeros(4, 4);
          gone.load({ wq: w, wk: w, wv: w, wo: w });
        } finally {
          assert.deepEqual(gone.parameters.wq.data, before, 'load took over some of the weights');
        }
      }, 'SHAPE_MISMATCH', /^parameters\.bo\.shape \(4\) holds 4 elements, but the data has 0/],
    ],
  },
});
