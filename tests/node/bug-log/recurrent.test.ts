// Faults that other libraries had with recurrent layers; the ids are those of our bug log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type BothDirections, type Engine, gruParameters, type LstmParameters, lstmParameters, rnnParameters, type Tensor, tensor } from 'qkv';

import { loadVariant, variant } from '../support/engine.js';
import { expectGradient, weightedSum } from '../support/finite-differences.js';
import { callBackward, CELLS, parametersOf, random } from '../support/recurrent-case.js';
import { GATES, type PlainParameters, plainRun } from '../support/recurrent-reference.js';
import { toDouble } from '../support/reference.js';
import { expectClose } from '../support/single-row.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (rows: number, columns: number) => tensor(new Float32Array(rows * columns), [rows, columns]);

describe(`bug log, recurrent, ${variant}`, () => {
  test('B48 the order of the gates of an LSTM', () => {
    const [wx, wh, bx] = [zeros(1, 4), zeros(1, 4), [1, 2, 3, 4]];
    const step = (parameters: LstmParameters, gateOrder?: 'ifgo' | 'iofg') => {
      const { h, c } = engine.lstmStep([0], { h: [0], c: [0.5] }, parameters, { gateOrder });
      return [h.data[0]!, c.data[0]!];
    };
    expectClose(step({ wx, wh, bx }), [0.808766, 1.167842]);
    expectClose(step({ wx, wh, bx }, 'iofg'), [0.736112, 1.206855]);
    const column = zeros(4, 1);
    const stacked = tensor(new Float32Array(4), [1, 4, 1]);
    for (const [from, given, expected] of [
      ['pytorch', { weight_ih_l0: column, weight_hh_l0: column, bias_ih_l0: bx }, [0.808766, 1.167842]],
      ['keras', { kernel: wx, recurrent_kernel: wh, bias: bx }, [0.808766, 1.167842]],
      ['onnx', { W: stacked, R: stacked, B: [[...bx, 0, 0, 0, 0]] }, [0.736112, 1.206855]],
    ] as const) expectClose(step(lstmParameters(given, { from }) as LstmParameters), expected);
  });

  test('B49 the reset of a GRU before and after the product', () => {
    const logit = (p: number) => Math.log(p / (1 - p));
    // r = (0.25, 0.75), z = 0.5 whatever the state; n's weights are [[1, 2], [3, 4]] as (out, in).
    const wide = { wx: zeros(1, 6), wh: [[0, 0, 0, 0, 1, 3], [0, 0, 0, 0, 2, 4]], bx: [logit(0.25), logit(0.75), 0, 0, 0, 0] };
    expectClose([...engine.gruStep([0], { h: [1, -1] }, wide).h.data], [0.377541, -0.817574]);
    expectClose([...engine.gruStep([0], { h: [1, -1] }, wide, { resetAfter: false }).h.data], [0.075858, -0.989013]);
    const narrow = { wx: zeros(1, 3), wh: [[0, 0, 1]], bh: [0, 0, 1] };
    expectClose(engine.gruStep([0], { h: [1] }, narrow).h.data[0]!, 0.880797);
    expectClose(engine.gruStep([0], { h: [1] }, narrow, { resetAfter: false }).h.data[0]!, 0.952574);
  });

  test('B50 r and z of a GRU the other way round', () => {
    // The candidate's sum is r * 2: its weight of the state is 2, and the state is 1.
    const step = (parameters: object, options = {}) => engine.gruStep([0], { h: [1] }, parameters as { wx: Tensor; wh: Tensor }, options).h.data[0]!;
    const [wx, wh] = [zeros(1, 3), [[0, 0, 2]]];
    expectClose(step({ wx, wh, bx: [2, -1, 0] }), 0.958096);
    expectClose(step({ wx, wh, bx: [2, -1, 0] }, { gateOrder: 'zrn' }), 0.939371);
    expectClose(step({ wx, wh, bx: [-1, 2, 0] }, { gateOrder: 'zrn' }), 0.958096);
    expectClose(step(gruParameters({ kernel: wx, recurrent_kernel: wh, bias: [[-1, 2, 0], [0, 0, 0]] }, { from: 'keras' })), 0.958096);
  });

  const half = { wx: [[0.5]], wh: [[0.5]] };

  test('B52 every gradient of every cell, against central differences', () => {
    for (const cell of CELLS) {
      for (const options of cell === 'gru' ? [{ resetAfter: true }, { resetAfter: false }] : [{}]) {
        const given = { x: random(1, 3, 2), ...parametersOf(cell, 2, 2), h0: random(2, 2), ...(cell === 'lstm' && { c0: random(3, 2) }) };
        const { x, h0, c0, ...parameters } = given;
        const [dOutputs, dH, dC] = [random(4, 3, 2), random(5, 2), random(6, 2)];
        const { dX, dParameters, dH0, dC0 } = callBackward(engine, cell, { dOutputs, dH, ...(c0 && { dC }) }, x, parameters, { h0, ...(c0 && { c0 }), ...options });
        const loss = (name: string) => (moved: Float64Array) => {
          const at = { ...Object.fromEntries(Object.entries(given).map(([key, { data }]) => [key, Float64Array.from(data)])), [name]: moved } as Record<string, Float64Array>;
          const start = { h: at['h0']!, c: at['c0'] ?? new Float64Array(2) };
          const { outputs, h, c } = plainRun(cell, at['x']!, 2, at as unknown as PlainParameters, start, { round: toDouble, ...options });
          return weightedSum(outputs, dOutputs.data) + weightedSum(h, dH.data) + weightedSum(c, dC.data);
        };
        for (const [name, gradient] of Object.entries({ x: dX, ...dParameters, h0: dH0, ...(c0 && { c0: dC0 }) })) {
          expectGradient(gradient.data, given[name as 'x'].data, loss(name), `the gradient by ${name} of ${cell}`);
        }
      }
    }
  });

  test('B53 the reverse direction in time order, and its last state', () => {
    const { outputs, h } = engine.rnn([[1], [2], [3]], { forward: half, reverse: half }, { direction: 'both' });
    expectClose([...outputs.data], [0.462117, 0.738922, 0.842886, 0.896201, 0.958036, 0.905148]);
    expectClose([...h.data], [0.958036, 0.738922]);
    const alone = engine.rnn([[1], [2], [3]], half, { direction: 'reverse' });
    expectClose([...alone.outputs.data], [0.738922, 0.896201, 0.905148]);
    expectClose(alone.h.data[0]!, 0.738922);
  });

  test('B55 steps that do not count leave the state alone, in both directions', () => {
    // The step in the middle is left out by running what comes before it and after it.
    const first = engine.rnn([[1]], half);
    expectClose(first.h.data[0]!, 0.462117);
    const second = engine.rnn([[2]], half, { h0: first.h });
    expectClose(second.h.data[0]!, 0.842886);
    assert.deepEqual(engine.rnn([[1], [2]], half).h, second.h);
    const options = { direction: 'both', lengths: [2, 3] } as const;
    const both = { forward: half, reverse: half };
    const { outputs, h } = engine.rnn([[[1], [2], [50]], [[1], [2], [50]]], both, options);
    const alone = engine.rnn([[1], [2]], both, { direction: 'both' });
    assert.deepEqual(outputs.data.slice(0, 6), Float32Array.of(...alone.outputs.data, 0, 0));
    assert.deepEqual([h.at(0, 0, 0), h.at(1, 0, 0)], [...alone.h.data]);
    assert.notEqual(h.at(1, 1, 0), h.at(1, 0, 0));
  });

  test('B56 imported parameters are equal to the bit, and the directions share nothing', () => {
    const own = parametersOf('lstm', 3, 4);
    const transposed = ({ data, shape: [rows, columns] }: Tensor) =>
      tensor(data.map((_, i) => data[(i % rows!) * columns! + Math.floor(i / rows!)]!), [columns!, rows!]);
    const state = {
      weight_ih_l0: transposed(own.wx), weight_hh_l0: transposed(own.wh), bias_ih_l0: own.bx, bias_hh_l0: own.bh,
      weight_ih_l0_reverse: transposed(own.wx), weight_hh_l0_reverse: transposed(own.wh), bias_ih_l0_reverse: own.bx, bias_hh_l0_reverse: own.bh,
    };
    const { forward, reverse } = lstmParameters(state, { from: 'pytorch' }) as BothDirections<Record<string, Tensor>>;
    const { peephole, ...expected } = own;
    assert.ok(peephole);
    assert.deepEqual(forward, expected);
    const x = random(9, 5, 3);
    assert.deepEqual(engine.lstm(x, forward as unknown as LstmParameters), engine.lstm(x, expected));
    for (const { data } of Object.values(forward)) data.fill(7);
    assert.deepEqual(reverse, expected);
    assert.ok(!own.bx.data.includes(7) && !state.weight_ih_l0.data.includes(7), 'what was given changed');
  });

  test('B57 gates of large sums are 0 or 1, and nothing is NaN', () => {
    const lstm = (i: number, f: number, o: number) =>
      engine.lstmStep([0], { h: [0], c: [0.5] }, { wx: zeros(1, 4), wh: zeros(1, 4), bx: [i, f, 1000, o] });
    for (const i of [-1000, 1000]) {
      for (const f of [-1000, 1000]) {
        for (const o of [-1000, 1000]) {
          const { h, c } = lstm(i, f, o);
          assert.equal(c.data[0], (f > 0 ? 0.5 : 0) + (i > 0 ? 1 : 0));
          if (o < 0) assert.equal(h.data[0], 0);
          else expectClose(h.data[0]!, Math.tanh(c.data[0]!));
        }
      }
    }
    for (const z of [-1000, 1000]) {
      const { h } = engine.gruStep([0], { h: [0.25] }, { wx: zeros(1, 3), wh: zeros(1, 3), bx: [-1000, z, 1000] });
      assert.equal(h.data[0], z > 0 ? 0.25 : 1);
    }
    assert.deepEqual(engine.rnn([[1e30], [-1e30]], rnnParameters({ kernel: [[1e8]], recurrent_kernel: [[1]] }, { from: 'keras' })).outputs.toArray(), [[1], [-1]]);
  });

  test('B57 gradients of large sums and of a large loss are no NaN', () => {
    const size = (cell: 'rnn' | 'lstm' | 'gru', sum: number) => ({ wx: zeros(1, GATES[cell]), wh: zeros(1, GATES[cell]), bx: new Array<number>(GATES[cell]).fill(sum) });
    for (const cell of CELLS) {
      for (const sum of [-1000, 0, 1000]) {
        const { dX, dParameters, dH0 } = callBackward(engine, cell, { dH: tensor([1e20]) }, random(1, 4, 1), size(cell, sum), { h0: [0.5] });
        const all = [dX, dH0, ...Object.values(dParameters)].flatMap(({ data }) => [...data]);
        assert.ok(!all.some(Number.isNaN), `${cell} with sums of ${sum} has gradients ${all.join(', ')}`);
      }
    }
    // A gate that is shut or open passes nothing to its sum, and an open one all to the old state.
    const { dC0, dParameters } = engine.lstmBackward({ dC: [1e20] }, [[1], [1]], { ...size('lstm', 0), bx: [-1000, 1000, 1000, -1000] }, { c0: [0.5] });
    assert.deepEqual([...dC0.data, ...dParameters.bx.data], [Math.fround(1e20), 0, 0, 0, 0]);
  });
});
