// A call of every operation that takes tensors, for what has to hold for all of them. A new method of the engine
// gets a line here.
import { type Engine, type MaskLike, tensor, type TensorLike } from 'qkv';

import type { Choices } from './random-case.js';
import { randomFloats } from './reference.js';

type Shapes = Readonly<Record<string, readonly number[]>>;
type Tensors<Names extends PropertyKey> = { readonly [Name in Names]: Name extends 'mask' ? MaskLike : TensorLike };

export interface EveryCall {
  /** The method, and what is special about the call. */
  readonly name: string;
  /** By the argument's name in messages. */
  readonly inputs: Tensors<string>;
  call(engine: Engine, inputs: Tensors<string>): unknown;
}

const sizeOf = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

function one<const Given extends Shapes>(name: string, shapes: Given, call: (engine: Engine, inputs: Tensors<keyof Given>) => unknown): EveryCall {
  const make = (input: string, shape: readonly number[], seed: number) => {
    const numbers = randomFloats(sizeOf(shape), seed);
    return tensor(input === 'mask' ? Uint8Array.from(numbers, (x) => Number(x > -0.5)) : numbers, shape);
  };
  const inputs = Object.fromEntries(Object.entries(shapes).map(([input, shape], i) => [input, make(input, shape, i + 1)]));
  return { name, inputs: inputs as Tensors<string>, call: call as EveryCall['call'] };
}

/** Of sizes from 1 on, so that every tensor holds something. */
export function everyCall(choices: Choices): EveryCall[] {
  const size = () => 1 + choices.below(9);
  const [batch, heads, groups, length, keys, dim, valueDim, hidden] = choices.list(8, size) as [number, number, number, number, number, number, number, number];
  const rows = heads * groups;
  const embedDim = rows * dim;
  const pairs = Math.floor(dim / 2);
  const weights = (gates: number) => ({ wx: [dim, gates * hidden], wh: [hidden, gates * hidden], bx: [gates * hidden], bh: [gates * hidden] });
  return [
    one('attention', {
      query: [batch, rows, length, dim], key: [batch, heads, keys, dim], value: [batch, heads, keys, valueDim],
      mask: [batch, 1, length, keys], bias: [rows, 1, keys],
    }, (engine, { query, key, value, ...rules }) => engine.attention(query, key, value, { ...rules, weights: 'mean', scores: 'biased', logSumExp: true })),
    one('attentionBackward', {
      dOutput: [batch, rows, length, valueDim], query: [batch, rows, length, dim], key: [batch, heads, keys, dim], value: [batch, heads, keys, valueDim],
      mask: [batch, 1, length, keys], bias: [rows, 1, keys],
    }, (engine, { dOutput, query, key, value, ...rules }) => engine.attentionBackward(dOutput, query, key, value, rules)),
    one('attention of projections', { query: [length, embedDim], key: [keys, heads * dim], value: [keys, heads * valueDim] },
      (engine, { query, key, value }) => engine.attention(query, key, value, { numHeads: rows, numKvHeads: heads, causal: 'bottom-right' })),
    one('explain', { x: [length, dim], wq: [dim, 2 * hidden], wk: [dim, 2 * hidden], wv: [dim, 2 * valueDim], mask: [length, length] },
      (engine, { x, ...options }) => engine.explain(x, { ...options, numHeads: 2 })),
    one('multiHeadAttention', {
      x: [batch, length, embedDim], context: [batch, keys, embedDim],
      wq: [embedDim, embedDim], wk: [embedDim, heads * dim], wv: [embedDim, heads * dim], wo: [embedDim, embedDim],
      bq: [embedDim], bk: [heads * dim], bv: [heads * dim], bo: [embedDim],
    }, (engine, { x, context, ...parameters }) => {
      const layer = engine.multiHeadAttention({ embedDim, numHeads: rows, numKvHeads: heads });
      layer.load(parameters);
      return [layer.forward(x, { weights: 'heads' }), layer.forward(x, { context })];
    }),
    one('multiHeadAttention backward', {
      dOutput: [batch, length, embedDim], x: [batch, length, embedDim], context: [batch, keys, embedDim],
      wq: [embedDim, embedDim], wk: [embedDim, heads * dim], wv: [embedDim, heads * dim], wo: [embedDim, embedDim], bo: [embedDim],
      mask: [batch, 1, length, keys], bias: [rows, 1, keys],
    }, (engine, { dOutput, x, context, mask, bias, ...parameters }) => {
      const layer = engine.multiHeadAttention({ embedDim, numHeads: rows, numKvHeads: heads });
      layer.load(parameters);
      return [layer.backward(dOutput, x), layer.backward(dOutput, x, { context, mask, bias })];
    }),
    one('multiHeadAttention of PyTorch', { in_proj_weight: [3 * embedDim, embedDim], 'out_proj.weight': [embedDim, embedDim], in_proj_bias: [3 * embedDim], 'out_proj.bias': [embedDim], x: [length, embedDim] },
      (engine, { x, ...parameters }) => {
        const layer = engine.multiHeadAttention({ embedDim, numHeads: rows });
        layer.load(parameters, { from: 'pytorch' });
        return layer.forward(x);
      }),
    one('kvCache', { key: [heads, keys, dim], value: [heads, keys, valueDim], query: [rows, length, dim] }, (engine, { key, value, query }) => {
      const cache = engine.kvCache({ numKvHeads: heads, headDim: dim, valueDim, capacity: 2 * keys });
      cache.append(key, value);
      cache.append(key, value);
      const attended = cache.attend(query, { logSumExp: true });
      cache.dispose();
      return attended;
    }),
    one('linear', { x: [length, dim], weight: [dim, hidden], bias: [hidden] }, (engine, { x, weight, bias }) => engine.linear(x, weight, bias)),
    one('softmax', { x: [length, dim] }, (engine, { x }) => engine.softmax(x)),
    one('layerNorm', { x: [length, dim], gamma: [dim], beta: [dim] }, (engine, { x, ...options }) => engine.layerNorm(x, options)),
    one('rmsNorm', { x: [length, dim], gamma: [dim] }, (engine, { x, ...options }) => engine.rmsNorm(x, options)),
    one('gelu', { x: [dim] }, (engine, { x }) => engine.gelu(x)),
    one('silu', { x: [dim] }, (engine, { x }) => engine.silu(x)),
    one('embedding', { table: [keys, dim] }, (engine, { table }) => engine.embedding(table, [0, keys - 1, 0])),
    one('rotary', { x: [batch, length, dim], cos: [length, pairs], sin: [length, pairs] }, (engine, { x, cos, sin }) => engine.rotary(x, { pairing: 'halves', cos, sin })),
    ...everyGradient({ batch, length, keys, dim, hidden, pairs }),
    ...everyModel({ batch, length }),
    one('rnn', { x: [batch, length, dim], ...weights(1), h0: [batch, hidden] }, (engine, { x, h0, ...parameters }) => engine.rnn(x, parameters, { h0 })),
    one('rnnStep', { x: [dim], ...weights(1), h: [hidden] }, (engine, { x, h, ...parameters }) => engine.rnnStep(x, { h }, parameters)),
    one('lstm', { x: [batch, length, dim], ...weights(4), peephole: [3 * hidden], h0: [batch, hidden], c0: [batch, hidden] },
      (engine, { x, h0, c0, ...parameters }) => engine.lstm(x, parameters, { h0, c0 })),
    one('lstmStep', { x: [batch, dim], ...weights(4), h: [batch, hidden], c: [batch, hidden] }, (engine, { x, h, c, ...parameters }) => engine.lstmStep(x, { h, c }, parameters)),
    one('gru', { x: [length, dim], ...weights(3), h0: [hidden] }, (engine, { x, h0, ...parameters }) => engine.gru(x, parameters, { h0, direction: 'reverse' })),
    one('rnnBackward', { dOutputs: [batch, length, hidden], dH: [batch, hidden], x: [batch, length, dim], ...weights(1), h0: [batch, hidden] },
      (engine, { dOutputs, dH, x, h0, ...parameters }) => engine.rnnBackward({ dOutputs, dH }, x, parameters, { h0 })),
    one('lstmBackward', { dOutputs: [length, hidden], dH: [hidden], dC: [hidden], x: [length, dim], ...weights(4), peephole: [3 * hidden], h0: [hidden], c0: [hidden] },
      (engine, { dOutputs, dH, dC, x, h0, c0, ...parameters }) => engine.lstmBackward({ dOutputs, dH, dC }, x, parameters, { h0, c0, direction: 'reverse' })),
    one('gruBackward', { dOutputs: [batch, length, hidden], dH: [batch, hidden], x: [batch, length, dim], ...weights(3), h0: [batch, hidden] },
      (engine, { dOutputs, dH, x, h0, ...parameters }) => engine.gruBackward({ dOutputs, dH }, x, parameters, { h0, resetAfter: false })),
    one('gruStep', { x: [dim], ...weights(3), h: [hidden] }, (engine, { x, h, ...parameters }) => engine.gruStep(x, { h }, parameters, { resetAfter: false })),
  ];
}

interface Sizes {
  readonly batch: number;
  readonly length: number;
  readonly keys: number;
  readonly dim: number;
  readonly hidden: number;
  readonly pairs: number;
}

/** A model that is loaded with these, and learns. Its tokens may be resident too. */
function everyModel(sizes: Pick<Sizes, 'batch' | 'length'>): EveryCall[] {
  const [vocab, embedDim] = [sizes.batch + 1, 2 * sizes.length];
  const square = [embedDim, embedDim];
  return [one('sequenceModel', {
    'load: embedding': [vocab, embedDim], 'load: layers.0.wq': square, 'load: layers.0.wk': square, 'load: layers.0.wv': square, 'load: layers.0.wo': square,
    'load: readout.weight': [embedDim, vocab], 'load: readout.bias': [vocab],
  }, (engine, inputs) => {
    using model = engine.sequenceModel({ vocab, embedDim, mixer: 'attention', readout: 'last', numHeads: 2 });
    model.load(Object.fromEntries(Object.entries(inputs).map(([name, given]) => [name.replace('load: ', ''), given as TensorLike])));
    return [model.trainStep(engine.resident([[vocab - 1, 0], [0, 0]]), engine.resident([0, vocab - 1])), model.parameters];
  })];
}

/** The gradients of the building blocks, and what learns by them. Where only a shape matters, any tensor will do. */
function everyGradient({ batch, length, keys, dim, hidden, pairs }: Sizes): EveryCall[] {
  const zeros = (...shape: number[]) => tensor(new Float32Array(sizeOf(shape)), shape);
  const rows = { dOut: [length, dim], x: [length, dim] };
  return [
    one('linearBackward', { dOut: [length, hidden], x: [length, dim], weight: [dim, hidden] },
      (engine, { dOut, x, weight }) => engine.linearBackward(dOut, x, weight, zeros(hidden))),
    one('softmaxBackward', rows, (engine, { dOut, x }) => engine.softmaxBackward(dOut, x)),
    one('layerNormBackward', { ...rows, gamma: [dim] }, (engine, { dOut, x, gamma }) => engine.layerNormBackward(dOut, x, { gamma, beta: zeros(dim) })),
    one('rmsNormBackward', { ...rows, gamma: [dim] }, (engine, { dOut, x, ...options }) => engine.rmsNormBackward(dOut, x, options)),
    one('geluBackward', rows, (engine, { dOut, x }) => engine.geluBackward(dOut, x)),
    one('siluBackward', rows, (engine, { dOut, x }) => engine.siluBackward(dOut, x)),
    one('embeddingBackward', { dOut: [3, dim] }, (engine, { dOut }) => engine.embeddingBackward(dOut, zeros(keys, dim), [0, keys - 1, 0])),
    one('rotaryBackward', { dOut: [batch, length, dim], cos: [length, pairs], sin: [length, pairs] },
      (engine, { dOut, cos, sin }) => engine.rotaryBackward(dOut, zeros(batch, length, dim), { pairing: 'halves', cos, sin })),
    one('crossEntropy', { logits: [length, dim] }, (engine, { logits }) => engine.crossEntropy(logits, new Int32Array(length))),
    one('adam', { 'gradients[0]': [length, dim] }, (engine, inputs) => {
      using optimizer = engine.adam();
      return optimizer.step([zeros(length, dim)], [inputs['gradients[0]']]);
    }),
  ];
}
