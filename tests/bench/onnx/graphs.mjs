// The graphs by which ONNX says a workload: { formulation, model, feeds, read }.
import { sizeOf } from '../inputs.mjs';
import { attentionGraphs } from './attention.mjs';
import { encodeModel } from './encode.mjs';

/** Every formulation of a workload. `constant`: keys and values that are there before the call are part of the graph. */
export const graphs = (workload, inputs, options) => kinds[workload.kind](workload, inputs, options);

/** Inputs that belong to the graph, as weights do; the others are fed with each call. */
function graph(formulation, { nodes, fed, constants = {}, outputs, read }) {
  const shapes = (tensors) => Object.fromEntries(Object.entries(tensors).map(([name, { shape }]) => [name, shape]));
  return { formulation, model: encodeModel({ nodes, inputs: shapes(fed), outputs, constants }), feeds: fed, read };
}

const kinds = {
  attention: (workload, inputs, { constant }) => attentionGraphs(workload, inputs, constant).map(({ formulation, ...parts }) => graph(formulation, parts)),

  matmul(workload, { x, weight }) {
    const nodes = [{ op: 'MatMul', inputs: ['x', 'weight'], outputs: ['output'] }];
    return [
      graph('MatMul with a constant', { nodes, fed: { x }, constants: { weight }, outputs: workload.outputs }),
      graph('MatMul', { nodes, fed: { x, weight }, outputs: workload.outputs }),
    ];
  },

  layer(workload, { x, ...weights }) {
    const fed = { x: { data: x.data, shape: [1, ...x.shape] } };
    const outputs = { output: fed.x.shape };
    const parts = (formulation, nodes, constants) => graph(formulation, { nodes, fed, constants, outputs });
    const back = projection('mixed', 'wo', 'bo', 'output');
    const apart = [...projection('x', 'wq', 'bq', 'query'), ...projection('x', 'wk', 'bk', 'key'), ...projection('x', 'wv', 'bv', 'value')];
    const heads = workload.heads;
    const attend = { inputs: ['query', 'key', 'value'], outputs: ['mixed'] };
    return [
      parts('MatMul and MultiHeadAttention', [...apart, { op: 'MultiHeadAttention', domain: 'com.microsoft', ...attend, attributes: { num_heads: heads } }, ...back], weights),
      parts('MatMul and Attention 23', [...apart, { op: 'Attention', ...attend, attributes: { q_num_heads: heads, kv_num_heads: heads } }, ...back], weights),
      parts('com.microsoft Attention', [
        { op: 'Attention', domain: 'com.microsoft', inputs: ['x', 'weights', 'biases'], outputs: ['mixed'], attributes: { num_heads: heads } },
        ...back,
      ], { ...packed(weights), wo: weights.wo, bo: weights.bo }),
    ];
  },

  recurrent({ cell, length, hidden }, { x, wx, wh, bx, bh }) {
    const { op, order, attributes } = cells[cell];
    const gates = order.length;
    const transposed = ({ data }) => ({ data: gateRows(data, order, hidden), shape: [1, gates * hidden, hidden] });
    const biases = [bx, bh].flatMap(({ data }) => order.map((gate) => data.subarray(gate * hidden, (gate + 1) * hidden)));
    return [graph(op, {
      nodes: [{ op, inputs: ['x', 'wx', 'wh', 'biases'], outputs: ['output'], attributes: { hidden_size: hidden, ...attributes } }],
      fed: { x: { data: x.data, shape: [length, 1, hidden] } },
      constants: { wx: transposed(wx), wh: transposed(wh), biases: { data: concatenated(biases), shape: [1, 2 * gates * hidden] } },
      outputs: { output: [length, 1, 1, hidden] },
    })];
  },
};

/** `order`: which of our gates (i f g o, r z n) comes at each place of ONNX's (i o f c, z r h). */
const cells = {
  rnn: { op: 'RNN', order: [0], attributes: {} },
  lstm: { op: 'LSTM', order: [0, 3, 1, 2], attributes: {} },
  gru: { op: 'GRU', order: [1, 0, 2], attributes: { linear_before_reset: 1 } },
};

const projection = (x, weight, bias, out) => [
  { op: 'MatMul', inputs: [x, weight], outputs: [`${out}-product`] },
  { op: 'Add', inputs: [`${out}-product`, bias], outputs: [out] },
];

/** Query, key and value weights side by side, (in, 3 * out), and their biases. */
function packed({ wq, wk, wv, bq, bk, bv }) {
  const [inDim, outDim] = wq.shape;
  const data = new Float32Array(3 * sizeOf(wq.shape));
  for (let k = 0; k < inDim; k++) {
    [wq, wk, wv].forEach((weight, i) => data.set(weight.data.subarray(k * outDim, (k + 1) * outDim), (3 * k + i) * outDim));
  }
  return {
    weights: { data, shape: [inDim, 3 * outDim] },
    biases: { data: concatenated([bq, bk, bv].map((bias) => bias.data)), shape: [3 * outDim] },
  };
}

/** (in, gates * hidden) as (gates * hidden, in), with the gates in the given order. */
function gateRows(data, order, hidden) {
  const columns = order.length * hidden;
  return Float32Array.from(data, (_, i) => {
    const [row, k] = [Math.floor(i / hidden), i % hidden];
    return data[k * columns + order[Math.floor(row / hidden)] * hidden + (row % hidden)];
  });
}

function concatenated(arrays) {
  const all = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  arrays.reduce((at, array) => (all.set(array, at), at + array.length), 0);
  return all;
}
