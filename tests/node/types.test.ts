// Calls that must compile and calls that must not; tsc is the test, on the declarations of the package.
import { test } from 'node:test';

import { type Engine, load, lstmParameters, type QkvError, type ResidentTensor, type SequenceModel, sinusoidal, tensor, type Tensor } from 'qkv';
import { parity, type PronounExamples, pronoun, recall, type Task } from 'qkv/tasks';

async function mustCompile(): Promise<void> {
  const engine: Engine = await load({ variant: 'simd', threads: 2, deterministic: true, maxMemory: 2 ** 24, wasm: new Uint8Array(4) });
  const x: Tensor = tensor([[1, 2], [3, 4]]);
  const mask = tensor([[true, false], [true, true]]);
  const { output, weights } = engine.attention(x, [[1, 2]], { data: new Float64Array(2), shape: [1, 2] }, { causal: { offset: 1 }, mask, weights: 'heads' });
  // A result goes back in, and on to anything that takes a plain array; what was asked for is there.
  engine.attention(output, weights, x);
  const all = engine.attention(x, x, x, { logSumExp: true, mask: undefined, weights: undefined });
  all.logSumExp.at(0);
  const kinds: [Tensor<Uint8Array>, Tensor, Tensor<Uint8Array>] = [tensor(new Uint8Array(2)), tensor([]), tensor([true, false], [2, 1])];
  void kinds;
  new Blob([output.data]);
  engine.explain(x, { wq: x, wk: x, wv: x, causal: 'top-left' });
  const { h } = engine.rnn(sinusoidal(3, 2), { wx: x, wh: x, bx: [0, 0] });
  engine.rnnStep([1, 2], { h }, { wx: x, wh: x }, { activation: 'relu' });
  const { c } = engine.lstm(x, lstmParameters({ W: x, R: x }, { from: 'onnx' }), { direction: 'both', lengths: [1] });
  engine.lstmStep([1, 2], { h, c }, { wx: x, wh: x, peephole: x });
  engine.gru(x, { wx: x, wh: x }, { resetAfter: false, gateOrder: 'zrn' });
  const through = engine.lstmBackward({ dOutputs: x, dC: c }, x, { wx: x, wh: x, bx: [1] }, { h0: h });
  through.dParameters.bx.at(through.dC0.shape.length);
  engine.gruBackward({ dH: h }, x, { forward: { wx: x, wh: x }, reverse: { wx: x, wh: x } }, { direction: 'both' }).dParameters.reverse.wh.at(0, 0);
  engine.rotary(engine.layerNorm(x, { gamma: [1, 1] }), { pairing: 'halves', positions: new Int32Array(2) });
  engine.embedding(x, new BigInt64Array(1));
  const [resident, flags]: [ResidentTensor, ResidentTensor<Uint8Array>] = [engine.resident(x), engine.resident(mask)];
  engine.attention(resident, resident, x, { mask: flags, bias: resident });
  engine.multiHeadAttention({ embedDim: 2, numHeads: 1 }).load({ wq: resident, wk: x });
  const { dQuery, dBias } = engine.attentionBackward(x, x, x, x, { bias: [[0]], weights: 'mean' });
  dQuery.at(dBias?.shape.length ?? 0);
  const layer = engine.multiHeadAttention({ embedDim: 2, numHeads: 1 });
  const { dContext, dParameters: { wq, bo } } = layer.backward(output, x, { context: x, rotary: { pairing: 'halves' }, weights: 'mean' });
  const gradients: Tensor[] = [wq, ...(bo && dContext ? [bo, dContext] : [])];
  gradients.pop();
  const { dX, dBeta } = engine.layerNormBackward(x, x, { gamma: [1, 1], beta: [0, 0] });
  const { loss, dLogits } = engine.crossEntropy(dX, [[0, 1]]);
  loss.toFixed(dBeta?.shape.length);
  using optimizer = engine.adam({ betas: [0.9, 0.99], clip: undefined });
  const [first]: readonly [Tensor, ...unknown[]] = optimizer.step([x, { data: new Float32Array(1), shape: [1] }], [dLogits, [1]]);
  first.at(0, 0);
  using model: SequenceModel<'every'> = engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'gru', readout: 'every', forgetBias: { chrono: 9 } });
  const { loss: before, accuracy } = model.trainStep(new Int32Array(3), [0, -1, 2], { lr: 0.1, lengths: [3] });
  model.forward([[0, 1]], { lengths: 1 }).logits.at(before, accuracy);
  model.load(model.save());
  model.load({ ...model.parameters, 'readout.bias': [1, 2, 3] });
  engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'attention', readout: 'pointer', optimizer: { clip: 1 } }).forward([1, 2], { context: [1], at: 0 }).weights.at(0);
  const tasks: Task[] = [recall({ length: 8 }), parity({ length: 8, shortest: undefined }), pronoun()];
  const { tokens, options: { lengths, at } }: PronounExamples = pronoun({ answer: 'noun', seed: 1 }).batch(8);
  engine.embedding(x, tokens).at(tasks.length, (lengths ?? at)?.[0] ?? 0, 0);
  const last: 'last' = recall({ length: 8 }).model.readout;
  void last;
  const code: QkvError['code'] = 'OUT_OF_MEMORY';
  void code;
  engine[Symbol.dispose]();
}

function mustNotCompile(engine: Engine, x: Tensor): void {
  // @ts-expect-error: numbers are no mask
  engine.attention(x, x, x, { mask: engine.resident([[1]]) });
  // @ts-expect-error: an option that does not exist
  engine.attention(x, x, x, { cuasal: true });
  // @ts-expect-error: an alignment that does not exist
  engine.attention(x, x, x, { causal: 'left' });
  // @ts-expect-error: a mask of numbers
  engine.attention(x, x, x, { mask: [[1, 0]] });
  // @ts-expect-error: weights that were not asked for may not be there
  engine.attention(x, x, x).weights.at(0);
  // @ts-expect-error: no projections
  engine.explain(x, {});
  // @ts-expect-error: rotary has no default pairing
  engine.rotary(x, {});
  // @ts-expect-error: rmsNorm has no beta
  engine.rmsNorm(x, { beta: x });
  // @ts-expect-error: of no bias there is no gradient to rely on
  engine.linearBackward(x, x, x).dBias.at(0);
  // @ts-expect-error: of no sinks there is no gradient to rely on
  engine.attentionBackward(x, x, x, x).dSinks.at(0);
  // @ts-expect-error: a layer without biases has no gradient of one
  engine.multiHeadAttention({ embedDim: 2, numHeads: 1 }).backward(x, x).dParameters.bq.at(0);
  // @ts-expect-error: of no bias there is no gradient
  engine.rnnBackward({ dH: x }, x, { wx: x, wh: x }).dParameters.bx.at(0);
  // @ts-expect-error: a gru has no c
  engine.gruBackward({ dC: x }, x, { wx: x, wh: x });
  // @ts-expect-error: nested arrays are not stepped in place
  engine.adam().step([[1, 2]], [x]);
  // @ts-expect-error: a readout of classes has no weights
  engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'attention', readout: 'last' }).forward([1]).weights.at(0);
  // @ts-expect-error: a mixer that does not exist
  engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'transformer', readout: 'last' });
  // @ts-expect-error: evaluate() takes no step
  engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'rnn', readout: 'last' }).evaluate([1], 0, { lr: 1 });
  // @ts-expect-error: a task without its length
  recall({ symbols: 4 });
  // @ts-expect-error: only reordering has an alignment
  recall({ length: 8 }).batch(1).alignment;
  // @ts-expect-error: a variant that does not exist
  void load({ variant: 'scalar' });
  // @ts-expect-error: shapes are read-only
  x.shape[0] = 5;
}

test('the declarations accept right calls and refuse wrong ones (checked when this file was compiled)', () => {
  void mustCompile;
  void mustNotCompile;
});
