// Loops as one writes them in JavaScript.

export const plain = {
  name: 'plain JavaScript',
  async open() {
    return {
      prepare: (workload, inputs) => [{ formulation: 'loops', call: () => kinds[workload.kind](workload, inputs), read: (result) => result }],
    };
  },
};

const kinds = {
  attention({ heads, kvHeads, queries, keys, dim, causal, window = Infinity, weights: wanted }, { query, key, value }) {
    const output = new Float32Array(heads * queries * dim);
    const weights = wanted && new Float32Array(heads * queries * keys);
    const row = new Float32Array(keys);
    for (let h = 0; h < heads; h++) {
      const start = Math.floor(h / (heads / kvHeads)) * keys * dim;
      for (let i = 0; i < queries; i++) {
        const at = (h * queries + i) * dim;
        const first = causal ? Math.max(0, i + 1 - window) : 0;
        const end = causal ? i + 1 : keys;
        softmaxOfScores(row, query.data, at, key.data, start, first, end, dim);
        for (let j = first; j < end; j++) {
          for (let c = 0; c < dim; c++) output[at + c] += row[j] * value.data[start + j * dim + c];
        }
        if (wanted) weights.set(row, (h * queries + i) * keys);
      }
    }
    return { output, ...(wanted && { weights }) };
  },

  matmul: ({ rows, inDim, outDim }, { x, weight }) => ({ output: product(x.data, weight.data, rows, inDim, outDim) }),

  layer(workload, inputs) {
    const { length, embedDim, heads } = workload;
    const dim = embedDim / heads;
    const project = (x, weight, bias) => product(x, inputs[weight].data, length, embedDim, embedDim, inputs[bias].data);
    const [query, key, value] = [['wq', 'bq'], ['wk', 'bk'], ['wv', 'bv']].map(([weight, bias]) => {
      const rows = project(inputs.x.data, weight, bias);
      return { data: Float32Array.from(rows, (_, i) => rows[headFirst(i, length, heads, dim)]) };
    });
    const { output: mixed } = kinds.attention({ heads, kvHeads: heads, queries: length, keys: length, dim }, { query, key, value });
    const rows = new Float32Array(mixed.length);
    mixed.forEach((number, i) => { rows[headFirst(i, length, heads, dim)] = number; });
    return { output: project(rows, 'wo', 'bo') };
  },

  recurrent({ cell, length, hidden }, { x, wx, wh, bx, bh }) {
    const columns = bx.data.length;
    const fromX = product(x.data, wx.data, length, hidden, columns, bx.data);
    const output = new Float32Array(length * hidden);
    const state = { h: new Float32Array(hidden), c: new Float32Array(hidden) };
    for (let t = 0; t < length; t++) {
      const fromH = product(state.h, wh.data, 1, hidden, columns, bh.data);
      cells[cell](fromX.subarray(t * columns, (t + 1) * columns), fromH, state);
      output.set(state.h, t * hidden);
    }
    return { output };
  },
};

const sigmoid = (number) => 1 / (1 + Math.exp(-number));

/** One step in place; gates are i f g o and r z n. */
const cells = {
  rnn(x, r, { h }) {
    for (let k = 0; k < h.length; k++) h[k] = Math.tanh(x[k] + r[k]);
  },
  lstm(x, r, { h, c }) {
    const n = h.length;
    for (let k = 0; k < n; k++) {
      const gate = (at) => x[at * n + k] + r[at * n + k];
      c[k] = sigmoid(gate(1)) * c[k] + sigmoid(gate(0)) * Math.tanh(gate(2));
      h[k] = sigmoid(gate(3)) * Math.tanh(c[k]);
    }
  },
  gru(x, r, { h }) {
    const n = h.length;
    for (let k = 0; k < n; k++) {
      const update = sigmoid(x[n + k] + r[n + k]);
      const next = Math.tanh(x[2 * n + k] + sigmoid(x[k] + r[k]) * r[2 * n + k]);
      h[k] = (1 - update) * next + update * h[k];
    }
  },
};

/** Where the element i of (heads, length, dim) is in (length, heads * dim). */
function headFirst(i, length, heads, dim) {
  const c = i % dim;
  const row = Math.floor(i / dim);
  return ((row % length) * heads + Math.floor(row / length)) * dim + c;
}

function softmaxOfScores(row, query, at, key, start, first, end, dim) {
  const scale = 1 / Math.sqrt(dim);
  let largest = -Infinity;
  for (let j = first; j < end; j++) {
    let score = 0;
    for (let c = 0; c < dim; c++) score += query[at + c] * key[start + j * dim + c];
    row[j] = score * scale;
    if (row[j] > largest) largest = row[j];
  }
  let sum = 0;
  for (let j = first; j < end; j++) sum += row[j] = Math.exp(row[j] - largest);
  for (let j = first; j < end; j++) row[j] /= sum;
}

function product(x, weight, rows, inDim, outDim, bias) {
  const out = new Float32Array(rows * outDim);
  for (let i = 0; i < rows; i++) {
    const row = out.subarray(i * outDim, (i + 1) * outDim);
    if (bias) row.set(bias);
    for (let k = 0; k < inDim; k++) {
      const factor = x[i * inDim + k];
      for (let n = 0; n < outDim; n++) row[n] += factor * weight[k * outDim + n];
    }
  }
  return out;
}
