// What the importers of recurrent parameters refuse.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, gruParameters, lstmParameters, rnnParameters, tensor } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { literal, wrongChoice, wrongNames, wrongTensor, wrongWhole } from '../support/wrong.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
// inputDim 3, hidden 2
const pytorch = { weight_ih_l0: zeros(8, 3), weight_hh_l0: zeros(8, 2) };
const cell = { weight_ih: zeros(8, 3), weight_hh: zeros(8, 2) };
const keras = { kernel: zeros(3, 6), recurrent_kernel: zeros(2, 6) };
const onnx = { W: zeros(2, 8, 3), R: zeros(2, 8, 2) };
const call = (importer: unknown) => (parameters: unknown, options: unknown) => (importer as (...args: unknown[]) => unknown)(parameters, options);
const [lstm, gru, rnn] = [call(lstmParameters), call(gruParameters), call(rnnParameters)];
const misfit = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'SHAPE_MISMATCH', message];
const missing = (name: string, made: () => unknown, message: RegExp): Refusal => [name, made, 'INVALID_ARGUMENT', message];

refuses('rnnParameters, lstmParameters and gruParameters refuse', {
  engine: () => engine,
  untouched: () => [...Object.values(pytorch), ...Object.values(keras), ...Object.values(onnx)].map(({ data }) => data),
  next: () => assert.deepEqual((lstmParameters(pytorch, { from: 'pytorch' }) as { wx: { shape: unknown } }).wx.shape, [3, 8]),
  tables: {
    options: [
      ...wrongNames('options', (options) => lstm(pytorch, options), 'from, layer', true),
      ...wrongChoice('from', (from) => lstm(pytorch, { from }), "'pytorch' or 'keras' or 'onnx'", true),
      ...wrongWhole('layer', (layer) => lstm(pytorch, { from: 'pytorch', layer }), 0, Number.MAX_SAFE_INTEGER),
      missing('a layer that is not there', () => lstm(pytorch, { from: 'pytorch', layer: 1 }), /^parameters has no weight_hh_l1, expected it among weight_ih_l0, weight_hh_l0\./),
      ...[['keras', keras], ['onnx', onnx]].flatMap(([from, parameters]) => [
        ...wrongWhole('layer', (layer) => lstm(parameters, { from, layer }), 0),
        missing(`a layer with ${from as string}`, () => lstm(parameters, { from, layer: 3 }), literal(`layer is 3, expected 0 or none with from: '${from as string}': only PyTorch's`)),
      ]),
      ...wrongWhole('layer', (layer) => lstm(cell, { from: 'pytorch', layer }), 0),
      missing('a layer of a cell', () => lstm(cell, { from: 'pytorch', layer: 1 }), /^layer is 1, expected 0 or none with parameters of a cell:/),
    ],
    parameters: [
      ...wrongNames('parameters', (given) => rnn(given, { from: 'onnx' }), 'W, R, B', true),
      ...wrongNames('parameters', (given) => lstm(given, { from: 'onnx' }), 'W, R, B, P', true),
      ...wrongNames('parameters', (given) => gru(given, { from: 'keras' }), 'kernel, recurrent_kernel, bias, forward/kernel', true),
      ...wrongNames('parameters', (given) => gru(given, { from: 'pytorch' }), 'weight_ih, weight_hh, bias_ih, bias_hh', true),
      missing('nothing', () => lstm({}, { from: 'pytorch' }), /^parameters has no weight_hh_l0, expected it among them\./),
      missing('nothing of Keras', () => lstm({}, { from: 'keras' }), /^parameters has no recurrent_kernel, expected it among them\./),
    ],
    'PyTorch': [
      ...['weight_ih_l0_reverse', 'bias_ih_l0_reverse', 'bias_hh_l0_reverse'].map((name) => missing(
        `${name} alone`, () => lstm({ ...pytorch, [name]: zeros(8, 3) }, { from: 'pytorch' }), /^parameters has no weight_hh_l0_reverse, expected it among/)),
      missing('half the other direction', () => lstm({ ...pytorch, weight_hh_l0_reverse: zeros(8, 2) }, { from: 'pytorch' }), /^parameters has no weight_ih_l0_reverse/),
      missing('the other direction alone', () => lstm({ weight_ih_l0_reverse: zeros(8, 3), weight_hh_l0_reverse: zeros(8, 2) }, { from: 'pytorch' }), /^parameters has no weight_hh_l0,/),
      missing('a bias alone', () => lstm({ bias_hh_l0: zeros(8) }, { from: 'pytorch' }), /^parameters has no weight_hh_l0,/),
      missing('a cell’s bias alone', () => lstm({ bias_hh: zeros(8) }, { from: 'pytorch' }), /^parameters has no weight_hh,/),
      ...Object.entries({ ...pytorch, bias_ih_l1: zeros(8), weight_hh_l0_reverse: zeros(8, 2) }).map(([name, values]) => missing(
        `a cell and ${name}`, () => lstm({ ...cell, [name]: values }, { from: 'pytorch', layer: 0 }), literal(`parameters has ${name} and weight_ih, expected names of layers or of a cell.`))),
      missing('a cell’s bias and a layer', () => lstm({ ...pytorch, bias_hh: zeros(8) }, { from: 'pytorch' }), /^parameters has weight_ih_l0 and bias_hh,/),
      missing('a layer’s other name', () => lstm({ ...pytorch, weight_hh_l00: zeros(8, 2) }, { from: 'pytorch' }), /^parameters has no "weight_hh_l00"; it may have/),
      ...wrongTensor('weight_ih_l0', (weight_ih_l0) => lstm({ ...pytorch, weight_ih_l0 }, { from: 'pytorch' }), 'rank 2', [[], [3]], false),
      ...wrongTensor('bias_hh_l0', (bias_hh_l0) => lstm({ ...pytorch, bias_hh_l0 }, { from: 'pytorch' }), 'rank 1', [[], [1, 8]], false),
      misfit('weights of another cell', () => gru(pytorch, { from: 'pytorch' }), /^weight_hh_l0 has shape \(8, 2\), expected \(6, 2\): \(gates \* hidden, hidden\)/),
      misfit('other rows', () => lstm({ ...pytorch, weight_ih_l0: zeros(4, 3) }, { from: 'pytorch' }), /^weight_ih_l0 has shape \(4, 3\), expected \(8, any\)/),
      misfit('a bias of another length', () => lstm({ ...pytorch, bias_ih_l0: [1] }, { from: 'pytorch' }), /^bias_ih_l0 has shape \(1\), expected \(8\)/),
    ],
    'Keras': [
      ...['forward/kernel', 'backward/kernel', 'backward/bias'].map((name) => missing(
        `one direction and ${name}`, () => gru({ ...keras, [name]: zeros(3, 6) }, { from: 'keras' }), literal(`parameters has kernel and ${name}, expected names of one direction or of both.`))),
      ...wrongTensor('bias', (bias) => gru({ ...keras, bias }, { from: 'keras' }), 'rank 1 or 2', [[], [1, 2, 6]], false),
      missing('one direction of two', () => gru({ 'forward/kernel': keras.kernel, 'forward/recurrent_kernel': keras.recurrent_kernel }, { from: 'keras' }), /^parameters has no backward\/recurrent_kernel/),
      misfit('a bias of another shape', () => gru({ ...keras, bias: zeros(3, 6) }, { from: 'keras' }), /^bias has shape \(3, 6\), expected \(2, 6\)/),
      misfit('other columns', () => gru({ ...keras, kernel: zeros(3, 8) }, { from: 'keras' }), /^kernel has shape \(3, 8\), expected \(any, 6\)/),
      misfit('weights of another cell', () => lstm(keras, { from: 'keras' }), /^recurrent_kernel has shape \(2, 6\), expected \(2, 8\)/),
    ],
    'ONNX': [
      ...wrongTensor('B', (B) => lstm({ ...onnx, B }, { from: 'onnx' }), 'rank 2', [[], [16]], false),
      misfit('three directions', () => lstm({ W: zeros(3, 8, 3), R: zeros(3, 8, 2) }, { from: 'onnx' }), /^R has shape \(3, 8, 2\), expected \(1, any, any\): .*1 or 2/),
      misfit('another direction', () => lstm({ ...onnx, W: zeros(1, 8, 3) }, { from: 'onnx' }), /^W has shape \(1, 8, 3\), expected \(2, 8, any\)/),
      misfit('peepholes of another length', () => lstm({ ...onnx, P: zeros(2, 8) }, { from: 'onnx' }), /^P has shape \(2, 8\), expected \(2, 6\)/),
      misfit('weights of another cell', () => gru(onnx, { from: 'onnx' }), /^R has shape \(2, 8, 2\), expected \(2, 6, 2\)/),
    ],
  },
});
