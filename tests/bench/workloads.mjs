// What is timed.
import { COMPARED_STEPS } from './training-batch.mjs';

/** Pairs of a query and a key that it sees. */
function visiblePairs({ queries, keys, causal, window = Infinity }) {
  if (!causal) return queries * keys;
  let pairs = 0;
  for (let i = 0; i < queries; i++) pairs += Math.min(i + 1, window);
  return pairs;
}

/** `window`: how many keys a query sees, its own included. `cached`: keys and values are there before the call. */
export function attention(heads, keys, dim, { name, queries = keys, kvHeads = heads, ...options } = {}) {
  const sizes = { heads, kvHeads, queries, keys, dim, ...options };
  return {
    kind: 'attention',
    name: `attention ${heads} x ${keys} x ${dim}${name ? `, ${name}` : ''}`,
    ...sizes,
    flops: 4 * heads * dim * visiblePairs(sizes),
    // Of a contestant that computes hidden scores too.
    denseFlops: 4 * heads * dim * queries * keys,
    tensors: { query: [heads, queries, dim], key: [kvHeads, keys, dim], value: [kvHeads, keys, dim] },
    outputs: { output: [heads, queries, dim], ...(options.weights && { weights: [heads, queries, keys] }) },
  };
}

const decode = (heads, keys, dim, cached) => ({
  ...attention(heads, keys, dim, { queries: 1, cached }),
  name: `decode 1 on ${heads} x ${keys} x ${dim}, ${cached ? 'keys in a cache' : 'plain tensors'}`,
});

function layer(length, embedDim, heads) {
  const projection = { weight: true, shape: [embedDim, embedDim] };
  return {
    kind: 'layer',
    name: `layer ${length} x ${embedDim}, ${heads} heads`,
    length,
    embedDim,
    heads,
    flops: 8 * length * embedDim ** 2 + 4 * length ** 2 * embedDim,
    tensors: {
      x: [length, embedDim],
      wq: projection, wk: projection, wv: projection, wo: projection,
      bq: [embedDim], bk: [embedDim], bv: [embedDim], bo: [embedDim],
    },
    outputs: { output: [length, embedDim] },
  };
}

const matmul = (rows, inDim, outDim) => ({
  kind: 'matmul',
  name: `matmul ${rows} x ${inDim} x ${outDim}`,
  rows,
  inDim,
  outDim,
  flops: 2 * rows * inDim * outDim,
  tensors: { x: [rows, inDim], weight: { weight: true, shape: [inDim, outDim] } },
  outputs: { output: [rows, outDim] },
});

const GATES = { rnn: 1, lstm: 4, gru: 3 };
const recurrent = (cell) => [64, 256, 768].map((hidden) => {
  const columns = GATES[cell] * hidden;
  const weight = { weight: true, shape: [hidden, columns] };
  return {
    kind: 'recurrent',
    name: `${cell.toUpperCase()} 512 steps of ${hidden}`,
    cell,
    length: 512,
    hidden,
    flops: 4 * 512 * hidden * columns,
    tensors: { x: [512, hidden], wx: weight, wh: weight, bx: [columns], bh: [columns] },
    outputs: { output: [512, hidden] },
  };
});

function attentionBackward(heads, length, dim) {
  const shape = [heads, length, dim];
  return {
    kind: 'attentionBackward',
    name: `attention backward ${heads} x ${length} x ${dim}`,
    gradients: true,
    heads, queries: length, keys: length, dim,
    // The five products: scores again, and two for each of the two products of the forward pass.
    flops: 10 * heads * length ** 2 * dim,
    tensors: { dOutput: shape, query: shape, key: shape, value: shape },
    outputs: { dQuery: shape, dKey: shape, dValue: shape },
  };
}

/** An embedding, one layer of the mixer, logits of the last row, and Adam. */
function training(mixer, { length, dim, batch, heads = 1, vocab = 16 }) {
  const square = { weight: true, shape: [dim, dim] };
  const wide = { weight: true, shape: [dim, 4 * dim] };
  const layer = {
    attention: { wq: square, wk: square, wv: square, wo: square },
    lstm: { wx: wide, wh: wide, bx: [4 * dim], bh: [4 * dim] },
  }[mixer];
  const named = Object.entries(layer).map(([name, shape]) => [`layers.0.${name}`, shape]);
  const forward = batch * length * (mixer === 'attention' ? 4 * dim ** 2 + 4 * dim : 16 * dim ** 2);
  return {
    kind: 'training',
    name: `training step, ${mixer === 'lstm' ? 'LSTM' : mixer} ${batch} x ${length} x ${dim}`,
    gradients: true,
    mixer, length, dim, batch, heads, vocab,
    // A gradient by each factor of each product.
    flops: 3 * forward,
    tensors: {
      embedding: [vocab, dim], ...Object.fromEntries(named),
      'readout.weight': { weight: true, shape: [dim, vocab] }, 'readout.bias': [vocab],
    },
    outputs: { losses: [COMPARED_STEPS, 1] },
  };
}

const main = (workload) => ({ ...workload, main: true });

/** The first is the smallest. Those that are `main` are timed by a quick run too. */
export const workloads = [
  attention(8, 128, 64),
  main(attention(12, 512, 64)),
  attention(12, 512, 64, { name: 'weights wanted', weights: true }),
  attention(12, 1024, 64),
  main(attention(1, 2048, 64)),
  main(attention(1, 4096, 64)),
  attention(12, 2048, 64, { name: 'causal', causal: true }),
  attention(32, 1024, 64, { name: '8 key heads', kvHeads: 8 }),
  attention(1, 16384, 64, { name: 'causal window of 256', causal: true, window: 256 }),
  attention(1, 16384, 64),
  main(decode(12, 4096, 64, true)),
  decode(12, 4096, 64, false),
  main(matmul(512, 768, 768)),
  matmul(1024, 1024, 1024),
  main(layer(512, 768, 12)),
  ...Object.keys(GATES).flatMap(recurrent),
  main(attentionBackward(12, 512, 64)),
  main(training('attention', { length: 64, dim: 64, batch: 32, heads: 4 })),
  main(training('lstm', { length: 64, dim: 64, batch: 32 })),
];
