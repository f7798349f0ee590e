// What a layer's backward() refuses; x, context and options are read as forward() reads them.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, type MultiHeadAttention, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongMask, wrongNames, wrongNumber, wrongTensor, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
let layer: MultiHeadAttention;
before(async () => {
  engine = await loadVariant();
  layer = engine.multiHeadAttention({ embedDim: 4, numHeads: 2, numKvHeads: 1 });
});
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const x = tensor([[1, 2, 3, 4], [5, 6, 7, 8]]);
const dOutput = tensor([[1, 0, 0, 1], [0, 1, 1, 0]]);
const batch = zeros(2, 3, 4);
const out = tensor(new Float32Array(8).fill(7), [2, 4]);
// As JavaScript would call it, without TypeScript to help.
const back = (...args: unknown[]) => (layer.backward as (...args: unknown[]) => unknown).call(layer, ...args);
const option = (name: string) => (value: unknown) => back(dOutput, x, { [name]: value, out });
const misfit = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'SHAPE_MISMATCH', message];
const refused = (name: string, options: unknown, message: RegExp): Refusal => [name, () => back(dOutput, x, options), 'INVALID_ARGUMENT', message];

refuses('backward of a layer refuses', {
  engine: () => engine,
  untouched: () => [dOutput.data, x.data, out.data, batch.data, ...Object.values(layer.parameters).map(({ data }) => data as Float32Array)],
  next: () => assert.deepEqual(layer.backward(dOutput, x).dParameters.bo!.toArray(), [1, 1, 1, 1], 'the next call was wrong'),
  tables: {
    dOutput: [
      ...wrongTensor('dOutput', (from) => back(from, x, { out }), 'rank 2', [[], [4], [1, 2, 4]]),
      misfit('of another length', () => back(zeros(3, 4), x), /^dOutput has shape \(3, 4\), expected \(2, 4\): the output's shape, which is x's/),
      misfit('of the heads', () => back(zeros(2, 8), x), /^dOutput has shape \(2, 8\), expected \(2, 4\)/),
      misfit('of no batch', () => back(dOutput, batch), /^dOutput has rank 2 with shape \(2, 4\), expected rank 3/),
      misfit('of the context', () => back(zeros(3, 4), x, { context: zeros(3, 4) }), /^dOutput has shape \(3, 4\), expected \(2, 4\)/),
    ],
    x: [
      ...wrongTensor('x', (from) => back(dOutput, from, { out }), 'rank 2 or 3', [[], [4], [1, 1, 2, 4]]),
      misfit('another dim', () => back(dOutput, zeros(2, 3)), /^x has shape \(2, 3\), expected \(2, 4\): its last axis is the layer's embedDim/),
    ],
    'the options of backward': [
      ...wrongNames('backward: options', (options) => back(dOutput, x, options), 'scale, causal, window, queryOffset, keyLengths, sequences, mask, bias, alibi, softcap, sinks, dropout, weights, scores, logSumExp, context, rotary, out'),
      ...['layout', 'numHeads', 'numKvHeads'].map((name) => refused(`${name}, which the layer has`, { [name]: undefined }, new RegExp(`^backward: options has no "${name}"`))),
    ],
    context: [
      ...wrongTensor('context', option('context'), 'rank 2', [[], [4], [1, 2, 4]], false),
      misfit('another dim', () => back(dOutput, x, { context: zeros(2, 3) }), /^context has shape \(2, 3\), expected \(any, 4\): x's batch, and the layer's embedDim/),
      misfit('another batch', () => back(batch, batch, { context: zeros(1, 3, 4) }), /^context has shape \(1, 3, 4\), expected \(2, any, 4\)/),
      refused('causal: true where lengths differ', { context: zeros(3, 4), causal: true }, /^causal is true with 2 queries and 3 keys, expected 'top-left'/),
    ],
    rotary: [
      ...wrongNames('rotary: options', option('rotary'), 'pairing, positions'),
      refused('no pairing', { rotary: {} }, /^pairing is undefined, expected 'halves' or 'neighbours'/),
      misfit('positions of other rows', () => back(dOutput, x, { rotary: { pairing: 'halves', positions: [1] } }), /^positions has shape \(1\), expected 2 entries/),
    ],
    "attention's options": [
      ...wrongNumber('scale', option('scale')),
      ...wrongMask('mask', option('mask')),
      ...wrongTensor('bias', option('bias'), 'rank 0 or 1 or 2 or 3 or 4', [[1, 1, 1, 2, 2]], false),
      ...wrongWholeList('keyLengths', option('keyLengths'), 0, 2, { count: 1, meaning: 'one length a batch' }),
      misfit('a bias that does not broadcast', () => back(dOutput, x, { bias: zeros(3, 2) }), /^bias has shape \(3, 2\), expected one that broadcasts/),
      misfit('sinks of key heads', () => back(dOutput, x, { sinks: [0] }), /^sinks has shape \(1\), expected 2 entries: one logit a head/),
    ],
    parameters: [
      ['that were transferred away', () => {
        const gone = engine.multiHeadAttention({ embedDim: 4, numHeads: 1 });
        structuredClone(gone.parameters.wo.data, { transfer: [gone.parameters.wo.data.buffer] });
        gone.backward(dOutput, x);
      }, 'SHAPE_MISMATCH', /^parameters\.wo\.shape \(4, 4\) holds 16 elements, but the data has 0 \(was its buffer transferred away\?\)/],
      ['of resident memory that was disposed', () => {
        const gone = engine.multiHeadAttention({ embedDim: 4, numHeads: 1, bias: false });
        const [wq, w] = [engine.resident(zeros(4, 4)), zeros(4, 4)];
        gone.load({ wq, wk: w, wv: w, wo: w });
        wq.dispose();
        gone.backward(dOutput, x);
      }, 'DISPOSED', /^parameters\.wq is a resident tensor that was disposed/],
    ],
    'more memory than there is': [
      ['sentence', () => {
        const large = engine.multiHeadAttention({ embedDim: 1, numHeads: 1, headDim: 2 ** 16, bias: false });
        large.backward(zeros(2 ** 13, 1), zeros(2 ** 13, 1));
      }, 'OUT_OF_MEMORY', /^backward needs \d{10,} bytes/],
    ],
  },
});
