// TensorFlow.js on its WebAssembly back end, one thread.
import { causalMask } from '../inputs.mjs';
import { cells } from './tensorflow-cells.mjs';
import { training } from './tensorflow-training.mjs';

export const tensorflow = {
  name: 'TensorFlow.js',
  dense: true,
  gradients: true,
  async open({ load, address }) {
    const tf = await load('@tensorflow/tfjs');
    const backend = await load('@tensorflow/tfjs-backend-wasm');
    if (address) backend.setWasmPaths(address('@tensorflow/tfjs-backend-wasm/dist/'));
    tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
    return {
      async prepare(workload, inputs) {
        await tf.setBackend('wasm');
        return kinds[workload.kind](tf, workload, inputs);
      },
    };
  },
};

const tensorOf = (tf) => ({ data, shape }) => tf.tensor(data, shape);
const tensorsOf = (tf, inputs) => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, tensorOf(tf)(input)]));

/** Runs `compute` and reads what it returns, { name: tensor }, out. */
function entrant(tf, formulation, compute, held = {}) {
  return {
    formulation,
    call() {
      const tensors = tf.tidy(compute);
      const results = Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, tensor.dataSync()]));
      tf.dispose(tensors);
      return results;
    },
    read: (results) => results,
    release: () => tf.dispose(held),
  };
}

const kinds = {
  training,

  attentionBackward(tf, { dim }, inputs) {
    const attend = (query, key, value) => tf.matMul(tf.softmax(tf.mul(tf.matMul(query, key, false, true), 1 / Math.sqrt(dim))), value);
    const gradients = tf.grads(attend);
    return [entrant(tf, 'grads of matMul, softmax, matMul', () => {
      const { dOutput, query, key, value } = tensorsOf(tf, inputs);
      const [dQuery, dKey, dValue] = gradients([query, key, value], dOutput);
      return { dQuery, dKey, dValue };
    })];
  },

  attention(tf, workload, inputs) {
    const { heads, kvHeads, queries, keys, dim, causal, window = Infinity, weights: wanted, cached } = workload;
    const held = {
      ...(causal && { mask: tf.tensor(causalMask(queries, keys, window), [1, queries, keys]) }),
      ...(cached && tensorsOf(tf, { key: inputs.key, value: inputs.value })),
    };
    const scale = 1 / Math.sqrt(dim);
    const attend = (query, key, value) => {
      const scores = tf.mul(tf.matMul(query, key, false, true), scale);
      const weights = tf.softmax(causal ? tf.add(scores, held.mask) : scores);
      return { output: tf.matMul(weights, value), weights };
    };
    // The queries of the heads that share keys come under one another.
    const grouped = [kvHeads, (heads / kvHeads) * queries, dim];
    const batched = () => {
      const [key, value] = cached ? [held.key, held.value] : [tensorOf(tf)(inputs.key), tensorOf(tf)(inputs.value)];
      const { output, weights } = attend(tf.tensor(inputs.query.data, causal ? inputs.query.shape : grouped), key, value);
      return { output, ...(wanted && { weights }) };
    };
    const oneByOne = () => {
      const head = ({ data }, h, length) => tf.tensor(data.subarray(h * length * dim, (h + 1) * length * dim), [length, dim]);
      const results = Array.from({ length: heads }, (_, h) =>
        attend(head(inputs.query, h, queries), head(inputs.key, h, keys), head(inputs.value, h, keys)));
      return { output: tf.stack(results.map(({ output }) => output)), ...(wanted && { weights: tf.stack(results.map(({ weights }) => weights)) }) };
    };
    const entrants = [entrant(tf, 'matMul, softmax, matMul of all heads', batched, held)];
    if (heads > 1 && heads === kvHeads && !causal && !cached) entrants.push(entrant(tf, 'matMul, softmax, matMul head by head', oneByOne));
    return entrants;
  },

  matmul: (tf, workload, { x, weight }) => {
    const held = tensorsOf(tf, { weight });
    return [entrant(tf, 'matMul', () => ({ output: tf.matMul(tensorOf(tf)(x), held.weight) }), held)];
  },

  layer(tf, { length, embedDim, heads }, { x, ...weights }) {
    const held = tensorsOf(tf, weights);
    const dim = embedDim / heads;
    const compute = () => {
      const rows = tensorOf(tf)(x);
      const [query, key, value] = [['wq', 'bq'], ['wk', 'bk'], ['wv', 'bv']].map(([weight, bias]) =>
        tf.transpose(tf.reshape(tf.add(tf.matMul(rows, held[weight]), held[bias]), [length, heads, dim]), [1, 0, 2]));
      const mixed = tf.matMul(tf.softmax(tf.mul(tf.matMul(query, key, false, true), 1 / Math.sqrt(dim))), value);
      return { output: tf.add(tf.matMul(tf.reshape(tf.transpose(mixed, [1, 0, 2]), [length, embedDim]), held.wo), held.bo) };
    };
    return [entrant(tf, 'matMul and softmax', compute, held)];
  },

  recurrent(tf, { cell, length, hidden }, { x, ...weights }) {
    const held = tensorsOf(tf, weights);
    const compute = () => {
      const steps = tf.unstack(tf.expandDims(tf.add(tf.matMul(tensorOf(tf)(x), held.wx), held.bx), 1));
      let state = { h: tf.zeros([1, hidden]), c: tf.zeros([1, hidden]) };
      const states = steps.map((step) => (state = cells[cell](tf, step, tf.add(tf.matMul(state.h, held.wh), held.bh), state)).h);
      return { output: tf.reshape(tf.concat(states), [length, hidden]) };
    };
    return [entrant(tf, 'matMul step by step', compute, held)];
  },
};
