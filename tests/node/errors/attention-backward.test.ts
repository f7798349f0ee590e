// What attentionBackward refuses; its options are read as attention() reads them.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { wrongNames, wrongNumber, wrongTensor, wrongWholeList } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
const [dOutput, query, key, value] = [zeros(2, 4, 7), zeros(2, 4, 3), zeros(2, 5, 3), zeros(2, 5, 7)];
// As JavaScript would call it, without TypeScript to help.
const back = (...args: unknown[]) => (engine.attentionBackward as (...args: unknown[]) => unknown).call(engine, ...args);
const misfit = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'SHAPE_MISMATCH', message];

refuses('attentionBackward refuses', {
  engine: () => engine,
  untouched: () => [dOutput.data, query.data, key.data, value.data],
  next: () => assert.deepEqual(engine.attentionBackward([[2]], [[0]], [[1], [1]], [[3], [5]]).dValue.toArray(), [[1], [1]], 'the next call was wrong'),
  tables: {
    dOutput: [
      ...wrongTensor('dOutput', (from) => back(from, query, key, value), 'rank 3', [[], [4, 7], [1, 2, 4, 7]]),
      misfit("the query's shape", () => back(query, query, key, value), /^dOutput has shape \(2, 4, 3\), expected \(2, 4, 7\): the output's shape/),
      misfit('of projections', () => back(zeros(4, 6), zeros(4, 6), zeros(5, 3), zeros(5, 7), { numHeads: 2, numKvHeads: 1 }), /^dOutput has shape \(4, 6\), expected \(4, 14\): the output's shape/),
    ],
    query: wrongTensor('query', (from) => back(dOutput, from, key, value), 'rank 2 or 3 or 4', [[], [3]]),
    key: [
      ...wrongTensor('key', (from) => back(dOutput, query, from, value), 'rank 3', [[], [5, 3]]),
      misfit('another dim', () => back(dOutput, query, zeros(2, 5, 4), value), /^key has shape \(2, 5, 4\), expected \(2, any, 3\): its rank, batch and dim are the query's/),
    ],
    value: [
      ...wrongTensor('value', (from) => back(dOutput, query, key, from), 'rank 3', [[], [5, 7]]),
      misfit('another length', () => back(dOutput, query, key, zeros(2, 4, 7)), /^value has shape \(2, 4, 7\), expected \(2, 5, any\)/),
    ],
    options: [
      ...wrongNames('attentionBackward: options', (options) => back(dOutput, query, key, value, options), 'scale, causal, window, queryOffset, keyLengths, sequences, mask, bias, alibi, softcap, sinks, dropout, weights, scores, logSumExp, layout, numHeads, numKvHeads, out'),
      ...wrongNumber('scale', (scale) => back(dOutput, query, key, value, { scale })),
      misfit('a bias that does not broadcast', () => back(dOutput, query, key, value, { bias: zeros(3, 5) }), /^bias has shape \(3, 5\), expected one that broadcasts/),
    ],
    keyLengths: wrongWholeList('keyLengths', (keyLengths) => back(dOutput, query, key, value, { keyLengths }), 0, 5, { count: 1, meaning: 'one length a batch' }),
  },
});
