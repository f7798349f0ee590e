// Calls to a worker that must compile and calls that must not; tsc is the test, on the declarations of the package.
import { test } from 'node:test';

import type { EngineInfo, KvCache, Tensor } from 'qkv';
import { type CallOptions, type Remote, type RemoteEngine, spawn } from 'qkv/worker';

async function mustCompile(x: Tensor, call: CallOptions): Promise<void> {
  await using engine: RemoteEngine = await spawn({ variant: 'simd', threads: 2 });
  const { signal } = new AbortController();
  const { output, weights } = await engine.attention(x, x, x, { weights: 'heads', signal });
  await engine.attention(output, weights, x, { signal });
  await engine.attention(x, [[1]], x);
  const info: EngineInfo = await engine.info();
  await engine.info({ signal });
  // Own options take those of the call in; where there are none, they come last.
  await engine.gelu(x, { approximate: 'tanh', onProgress: (done) => done.toFixed(info.threads) });
  await engine.rotary(x, { pairing: 'halves', signal });
  await engine.rnn(x, { wx: x, wh: x }, { h0: x, transfer: true });
  await engine.softmax(x, call);
  await engine.linear(x, x, undefined, call);
  await engine.embedding(x, [0], call);
  await engine.rnnStep(x, { h: x }, { wx: x, wh: x }, call);
  const { h, c } = await engine.lstm(x, { wx: x, wh: x, peephole: x }, { gateOrder: 'iofg', signal });
  await engine.lstmStep(x, { h, c }, { wx: x, wh: x }, call);
  await engine.gru(x, { forward: { wx: x, wh: x }, reverse: { wx: x, wh: x } }, { direction: 'both', resetAfter: false, signal });
  const { dC0, dParameters: through } = await engine.lstmBackward({ dC: c }, x, { wx: x, wh: x }, { c0: c, signal });
  if ('wx' in through) through.wx.at(dC0.shape.length);
  const cache: Remote<KvCache> = await engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 3, signal });
  await cache.append(x, x, { transfer: true });
  (await cache.attend(x, { logSumExp: true })).logSumExp.at(await cache.length);
  await cache.reset();
  cache.dispose();
  (await engine.attentionBackward(x, x, x, x, { causal: true, signal })).dQuery.at(0);
  const { loss } = await engine.crossEntropy(x, [0], call);
  await engine.linearBackward(x, x, x, undefined, { signal });
  await engine.layerNormBackward(x, x, { eps: loss, signal });
  const optimizer = await engine.adam({ lr: 0.1, signal });
  (await optimizer.step([x], [x], call)).length.toFixed();
  await using second: AsyncDisposable = await engine.adam();
  void second;
  const layer = await engine.multiHeadAttention({ embedDim: 3, numHeads: 1 });
  await layer.load(await layer.parameters, { from: 'pytorch', signal });
  (await layer.forward(x, { weights: 'mean' })).weights.at(0);
  const { dX, dContext, dParameters } = await layer.backward(x, x, { causal: true, signal });
  await optimizer.step([x], [dContext ?? dX, dParameters.wq]);
  const model = await engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'lstm', readout: 'last', signal });
  await model.trainStep([0, 1], 2, { lr: 0.1, lengths: 1, signal });
  (await model.trainStep([[0, 1]], [2], call)).loss.toFixed(await model.steps);
  (await model.forward(x, { at: [0], signal })).logits!.at(0);
  (await model.gradients(x, [0])).gradients['embedding']!.at((await model.inputGradients(x, [0])).at(0), 0);
  await model.load(await model.save(), call);
  await model.load(await model.parameters, { signal });
  await model.load({ embedding: await engine.resident(x), 'readout.bias': [1] });
  // A resident tensor goes wherever a tensor goes.
  const [resident, mask] = [await engine.resident(x, { signal }), await engine.resident({ data: new Uint8Array(1), shape: [1] })];
  const masked = await engine.attention(resident, [[1]], x, { mask, bias: resident, weights: 'heads', signal });
  masked.weights.at(0);
  await engine.linear(resident, x, resident, call);
  await engine.rnn(resident, { wx: resident, wh: x, bx: undefined }, { h0: resident });
  await layer.load({ wq: resident, wk: x });
  await layer.backward(resident, resident, { context: resident, sinks: resident });
  await layer.forward(resident, { context: resident, rotary: { pairing: 'halves', cos: resident } });
  await cache.append(resident, x);
  (await resident.data).fill(await resident.at(0));
}

async function mustNotCompile(engine: RemoteEngine, x: Tensor, signal: AbortSignal): Promise<void> {
  // @ts-expect-error: an option that does not exist
  await engine.attention(x, x, x, { cuasal: true });
  // @ts-expect-error: weights that were not asked for may not be there
  (await engine.attention(x, x, x, { causal: true })).weights.at(0);
  // @ts-expect-error: a promise is no tensor
  await engine.softmax(engine.softmax(x));
  // @ts-expect-error: rotary has no default pairing
  await engine.rotary(x, { signal });
  // @ts-expect-error: an option that does not exist
  await engine.gelu(x, { aproximate: 'tanh' });
  // @ts-expect-error: a signal is not its controller
  await engine.softmax(x, { signal: new AbortController() });
  // @ts-expect-error: nothing is written to a resident tensor
  await engine.attention(x, x, x, { out: await engine.resident(x) });
  // @ts-expect-error: a cache is no tensor
  await engine.softmax(await engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 3 }));
  // @ts-expect-error: a model needs a readout
  await engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'lstm' });
  // @ts-expect-error: forward() learns nothing
  await (await engine.sequenceModel({ vocab: 3, embedDim: 2, mixer: 'rnn', readout: 'last' })).forward(x, { lr: 1 });
  // @ts-expect-error: the length is a promise
  (await engine.kvCache({ numKvHeads: 1, headDim: 1, capacity: 3 })).length.toFixed();
}

test('the declarations accept right calls to a worker and refuse wrong ones (checked when this file was compiled)', () => {
  void mustCompile;
  void mustNotCompile;
});
