// Every workload in double precision by plain loops, on some rows of its output only.
import { trainingBatch } from './training-batch.mjs';

const SAMPLED_ROWS = 48;

/** About as many rows as asked for, spread over all of them, the first and the last included. */
function sampled(rows) {
  const count = Math.min(rows, SAMPLED_ROWS);
  return Array.from({ length: count }, (_, i) => (count === 1 ? 0 : Math.round((i * (rows - 1)) / (count - 1))));
}

/** Gives { output: Map of row -> Float64Array, weights?: the same }, rows counted over all leading axes. */
export function reference(workload, inputs) {
  const doubles = Object.entries(inputs).map(([name, { data }]) => [name, new Float64Array(data)]);
  return kinds[workload.kind](workload, Object.fromEntries(doubles));
}

const kinds = {
  attention(workload, { query, key, value }) {
    const { heads, kvHeads, queries, keys, dim } = workload;
    const rows = { output: new Map(), weights: new Map() };
    for (const row of sampled(heads * queries)) {
      const first = Math.floor(Math.floor(row / queries) / (heads / kvHeads)) * keys * dim;
      const weights = weightsOf(workload, row % queries, query.subarray(row * dim, (row + 1) * dim), key.subarray(first));
      const output = new Float64Array(dim);
      weights.forEach((weight, j) => {
        for (let c = 0; c < dim; c++) output[c] += weight * value[first + j * dim + c];
      });
      rows.output.set(row, output);
      rows.weights.set(row, weights);
    }
    return workload.weights ? rows : { output: rows.output };
  },

  matmul({ rows, inDim, outDim }, { x, weight }) {
    const row = (i) => vectorTimes(x.subarray(i * inDim, (i + 1) * inDim), weight, outDim);
    return { output: new Map(sampled(rows).map((i) => [i, row(i)])) };
  },

  layer({ length, embedDim, heads }, inputs) {
    const dim = embedDim / heads;
    const project = (i, weight, bias) =>
      vectorTimes(inputs.x.subarray(i * embedDim, (i + 1) * embedDim), inputs[weight], embedDim, inputs[bias]);
    const all = (weight, bias) => Array.from({ length }, (_, i) => project(i, weight, bias));
    const [keys, values] = [all('wk', 'bk'), all('wv', 'bv')];
    const row = (i) => {
      const query = project(i, 'wq', 'bq');
      const mixed = new Float64Array(embedDim);
      for (let start = 0; start < embedDim; start += dim) {
        const scores = keys.map((key) => dot(query.subarray(start, start + dim), key.subarray(start, start + dim)) / Math.sqrt(dim));
        softmax(Float64Array.from(scores)).forEach((weight, j) => {
          for (let c = start; c < start + dim; c++) mixed[c] += weight * values[j][c];
        });
      }
      return vectorTimes(mixed, inputs.wo, embedDim, inputs.bo);
    };
    return { output: new Map(sampled(length).map((i) => [i, row(i)])) };
  },

  /** Rows of the first head and of the last. */
  attentionBackward(workload, inputs) {
    const { heads, queries, keys, dim } = workload;
    const rows = { dQuery: new Map(), dKey: new Map(), dValue: new Map() };
    for (const h of [0, heads - 1]) {
      const part = (name, length) => inputs[name].subarray(h * length * dim, (h + 1) * length * dim);
      const [dOutput, query, key, value] = [part('dOutput', queries), part('query', queries), part('key', keys), part('value', keys)];
      const at = (tensor, i) => tensor.subarray(i * dim, (i + 1) * dim);
      const weights = Array.from({ length: queries }, (_, i) => weightsOf(workload, i, at(query, i), key));
      const dScores = weights.map((row, i) => {
        const dWeights = row.map((_, j) => dot(at(dOutput, i), at(value, j)));
        const mean = dot(row, dWeights);
        return row.map((weight, j) => (weight * (dWeights[j] - mean)) / Math.sqrt(dim));
      });
      for (const i of sampled(queries)) rows.dQuery.set(h * queries + i, vectorTimes(dScores[i], key, dim));
      for (const j of sampled(keys)) {
        rows.dKey.set(h * keys + j, vectorTimes(dScores.map((row) => row[j]), query, dim));
        rows.dValue.set(h * keys + j, vectorTimes(weights.map((row) => row[j]), dOutput, dim));
      }
    }
    return rows;
  },

  /** The first step's loss; those after it are compared among the contestants. */
  training(workload, inputs) {
    const { batch, length, dim, vocab, mixer } = workload;
    const { tokens, targets } = trainingBatch(workload);
    let loss = 0;
    for (let b = 0; b < batch; b++) {
      const x = new Float64Array(length * dim);
      for (let t = 0; t < length; t++) x.set(inputs.embedding.subarray(tokens[b * length + t] * dim, (tokens[b * length + t] + 1) * dim), t * dim);
      const logits = vectorTimes(lastRow[mixer](workload, x, inputs), inputs['readout.weight'], vocab, inputs['readout.bias']);
      loss -= Math.log(softmax(logits)[targets[b]]) / batch;
    }
    return { losses: new Map([[0, [loss]]]) };
  },

  recurrent({ cell, length, hidden }, { x, wx, wh, bx, bh }) {
    const columns = bx.length;
    const states = [];
    let state = { h: new Float64Array(hidden), c: new Float64Array(hidden) };
    for (let t = 0; t < length; t++) {
      const fromX = vectorTimes(x.subarray(t * hidden, (t + 1) * hidden), wx, columns, bx);
      state = cells[cell](fromX, vectorTimes(state.h, wh, columns, bh), state);
      states.push(state.h);
    }
    return { output: new Map(sampled(length).map((t) => [t, states[t]])) };
  },
};

/** Of one sequence of a training workload, what its last row becomes in the layer. */
const lastRow = {
  attention({ length, dim, heads }, x, inputs) {
    const headDim = dim / heads;
    for (let k = 0; k < x.length; k++) {
      const column = k % dim;
      const angle = Math.floor(k / dim) / 10000 ** ((column - (column % 2)) / dim);
      x[k] += column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
    }
    const project = (i, name) => vectorTimes(x.subarray(i * dim, (i + 1) * dim), inputs[`layers.0.${name}`], dim);
    const [keys, values] = ['wk', 'wv'].map((name) => Array.from({ length }, (_, i) => project(i, name)));
    const query = project(length - 1, 'wq');
    const mixed = new Float64Array(dim);
    for (let start = 0; start < dim; start += headDim) {
      const scores = keys.map((key) => dot(query.subarray(start, start + headDim), key.subarray(start, start + headDim)) / Math.sqrt(headDim));
      softmax(Float64Array.from(scores)).forEach((weight, j) => {
        for (let c = start; c < start + headDim; c++) mixed[c] += weight * values[j][c];
      });
    }
    return vectorTimes(mixed, inputs['layers.0.wo'], dim, x.subarray((length - 1) * dim));
  },

  lstm({ length, dim }, x, inputs) {
    const [wx, wh, bx, bh] = ['wx', 'wh', 'bx', 'bh'].map((name) => inputs[`layers.0.${name}`]);
    let state = { h: new Float64Array(dim), c: new Float64Array(dim) };
    for (let t = 0; t < length; t++) {
      state = cells.lstm(vectorTimes(x.subarray(t * dim, (t + 1) * dim), wx, 4 * dim, bx), vectorTimes(state.h, wh, 4 * dim, bh), state);
    }
    return state.h;
  },
};

const sigmoid = (number) => 1 / (1 + Math.exp(-number));

/** One step from both projections; gates are i f g o and r z n. */
const cells = {
  rnn: (fromX, fromH, { c }) => ({ h: fromX.map((number, k) => Math.tanh(number + fromH[k])), c }),
  lstm(fromX, fromH, { c }) {
    const n = c.length;
    const gate = (at, k) => fromX[at * n + k] + fromH[at * n + k];
    const next = c.map((old, k) => sigmoid(gate(1, k)) * old + sigmoid(gate(0, k)) * Math.tanh(gate(2, k)));
    return { h: next.map((number, k) => sigmoid(gate(3, k)) * Math.tanh(number)), c: next };
  },
  gru(fromX, fromH, { h, c }) {
    const n = h.length;
    const next = h.map((old, k) => {
      const reset = sigmoid(fromX[k] + fromH[k]);
      const update = sigmoid(fromX[n + k] + fromH[n + k]);
      return (1 - update) * Math.tanh(fromX[2 * n + k] + reset * fromH[2 * n + k]) + update * old;
    });
    return { h: next, c };
  },
};

function weightsOf({ keys, dim, causal, window = Infinity }, i, query, key) {
  const scores = new Float64Array(keys).fill(-Infinity);
  const [first, end] = causal ? [Math.max(0, i + 1 - window), i + 1] : [0, keys];
  for (let j = first; j < end; j++) scores[j] = dot(query, key.subarray(j * dim, (j + 1) * dim)) / Math.sqrt(dim);
  return softmax(scores);
}

function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b));
  const exponentials = scores.map((score) => Math.exp(score - largest));
  const sum = exponentials.reduce((a, b) => a + b);
  return exponentials.map((exponential) => exponential / sum);
}

function dot(a, b) {
  let sum = 0;
  for (let c = 0; c < a.length; c++) sum += a[c] * b[c];
  return sum;
}

function vectorTimes(x, weight, columns, bias) {
  const out = bias ? Float64Array.from(bias) : new Float64Array(columns);
  for (let k = 0; k < x.length; k++) {
    for (let n = 0; n < columns; n++) out[n] += x[k] * weight[k * columns + n];
  }
  return out;
}
