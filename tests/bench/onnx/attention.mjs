// The ways to say attention in ONNX: operators, and single steps.
import { causalMask } from '../inputs.mjs';

/** `constant`: keys and values are part of the graph. Each way is { formulation, nodes, fed, constants, outputs, read }. */
export function attentionGraphs(workload, inputs, constant) {
  return waysOf(workload).map((way) => way(workload, inputs)).map(({ fed, constants, ...way }) => {
    if (!constant) return { ...way, fed, constants };
    const { key, value, ...rest } = fed;
    return { ...way, fed: rest, constants: { ...constants, key, value } };
  });
}

function waysOf({ heads, kvHeads, causal, window, weights, cached }) {
  // The operators would need a mask of queries x keys, or, GroupQueryAttention, three quarters of a minute.
  if (window) return [windowInBlocks];
  if (weights) return [attentionOperator, singleSteps];
  return [
    attentionOperator,
    ...(heads === kvHeads ? [multiHead] : []),
    ...(cached ? [multiHeadOnCache] : []),
    ...(causal ? [groupedQuery] : []),
    singleSteps,
  ];
}

const inBatch = ({ data, shape }) => ({ data, shape: [1, ...shape] });
const batched = ({ query, key, value }) => ({ query: inBatch(query), key: inBatch(key), value: inBatch(value) });
const batchedOutputs = ({ outputs }) => Object.fromEntries(Object.entries(outputs).map(([name, shape]) => [name, [1, ...shape]]));

// Modes of qk_matmul_output_mode: 3 is after softmax.
const AFTER_SOFTMAX = 3;

function attentionOperator(workload, inputs) {
  const attributes = { ...(workload.causal && { is_causal: 1 }), ...(workload.weights && { qk_matmul_output_mode: AFTER_SOFTMAX }) };
  const outputs = workload.weights ? ['output', '', '', 'weights'] : ['output'];
  return {
    formulation: 'Attention 23',
    nodes: [{ op: 'Attention', inputs: ['query', 'key', 'value'], outputs, attributes }],
    fed: batched(inputs),
    outputs: batchedOutputs(workload),
  };
}

function multiHead(workload, inputs) {
  const { heads, queries, dim, causal } = workload;
  return {
    formulation: 'MultiHeadAttention',
    nodes: [{
      op: 'MultiHeadAttention', domain: 'com.microsoft', inputs: ['query', 'key', 'value'], outputs: ['output'],
      attributes: { num_heads: heads, ...(causal && { unidirectional: 1 }) },
    }],
    ...lengthFirstTensors(inputs, [1, queries, heads * dim]),
  };
}

/** Keys and values with the heads first, as a cache has them. */
function multiHeadOnCache(workload, inputs) {
  const way = multiHead(workload, inputs);
  return { ...way, formulation: 'MultiHeadAttention on keys with heads first', fed: { ...way.fed, key: inBatch(inputs.key), value: inBatch(inputs.value) } };
}

/** Always causal. */
function groupedQuery(workload, inputs) {
  const { heads, kvHeads, queries, keys, dim } = workload;
  const whole = (...numbers) => ({ data: Int32Array.from(numbers), shape: [1] });
  const { fed, outputs, read } = lengthFirstTensors(inputs, [1, queries, heads * dim]);
  const cache = [1, kvHeads, keys, dim];
  return {
    formulation: 'GroupQueryAttention',
    nodes: [{
      op: 'GroupQueryAttention', domain: 'com.microsoft', attributes: { num_heads: heads, kv_num_heads: kvHeads },
      inputs: ['query', 'key', 'value', '', '', 'lastKey', 'keyLength'], outputs: ['output', 'presentKey', 'presentValue'],
    }],
    fed,
    constants: { lastKey: whole(keys - 1), keyLength: whole(keys) },
    outputs: { ...outputs, presentKey: cache, presentValue: cache },
    read,
  };
}

/** Heads beside one another, (1, length, heads * dim). */
function lengthFirstTensors({ query, key, value }, shape) {
  const [heads, queries, dim] = query.shape;
  return {
    fed: { query: lengthFirst(query), key: lengthFirst(key), value: lengthFirst(value) },
    outputs: { output: shape },
    read: ({ output }) => ({ output: swapped(output, queries, heads, dim) }),
  };
}

const lengthFirst = ({ data, shape: [heads, length, dim] }) => ({ data: swapped(data, heads, length, dim), shape: [1, length, heads * dim] });

/** (outer, inner, dim) as (inner, outer, dim). */
function swapped(data, outer, inner, dim) {
  const out = new Float32Array(data.length);
  for (let i = 0; i < outer; i++) {
    for (let j = 0; j < inner; j++) {
      const from = (i * inner + j) * dim;
      out.set(data.subarray(from, from + dim), (j * outer + i) * dim);
    }
  }
  return out;
}

function singleSteps(workload, inputs) {
  const { heads, kvHeads, queries, keys, dim, causal, weights } = workload;
  // The queries of the heads that share keys come under one another.
  const grouped = [1, kvHeads, (heads / kvHeads) * queries, dim];
  const { query, key, value } = batched(inputs);
  const mask = causal && { data: causalMask(queries, keys), shape: [1, 1, queries, keys] };
  return {
    formulation: 'MatMul, Softmax, MatMul',
    nodes: [
      { op: 'Transpose', inputs: ['key'], outputs: ['keys'], attributes: { perm: [0, 1, 3, 2] } },
      { op: 'MatMul', inputs: ['query', 'keys'], outputs: ['products'] },
      { op: 'Mul', inputs: ['products', 'scale'], outputs: [causal ? 'scores' : 'seen'] },
      ...(causal ? [{ op: 'Add', inputs: ['scores', 'mask'], outputs: ['seen'] }] : []),
      { op: 'Softmax', inputs: ['seen'], outputs: ['weights'], attributes: { axis: -1 } },
      { op: 'MatMul', inputs: ['weights', 'value'], outputs: ['output'] },
    ],
    fed: { query: { ...query, shape: grouped }, key, value },
    constants: { scale: { data: Float32Array.of(1 / Math.sqrt(dim)), shape: [] }, ...(causal && { mask }) },
    outputs: { output: grouped, ...(weights && { weights: [1, heads, queries, keys] }) },
  };
}

/** Each block of `window` queries with the keys of its own block and of the one before it. */
function windowInBlocks(workload, inputs) {
  const { heads, queries, dim, window } = workload;
  const blocks = queries / window;
  const whole = (...numbers) => ({ data: BigInt64Array.from(numbers, BigInt), shape: [numbers.length] });
  const withPrevious = (name) => [
    { op: 'Reshape', inputs: [name, 'blocked'], outputs: [`${name}Blocks`] },
    { op: 'Slice', inputs: [`${name}Blocks`, 'first', 'last', 'blockAxis'], outputs: [`${name}Earlier`] },
    { op: 'Concat', inputs: ['nothing', `${name}Earlier`], outputs: [`${name}Before`], attributes: { axis: 1 } },
    { op: 'Concat', inputs: [`${name}Before`, `${name}Blocks`], outputs: [`${name}Seen`], attributes: { axis: 2 } },
  ];
  return {
    formulation: 'MatMul, Softmax, MatMul in blocks',
    nodes: [
      { op: 'Reshape', inputs: ['query', 'blocked'], outputs: ['queryBlocks'] },
      ...withPrevious('key'),
      ...withPrevious('value'),
      { op: 'Transpose', inputs: ['keySeen'], outputs: ['keys'], attributes: { perm: [0, 1, 3, 2] } },
      { op: 'MatMul', inputs: ['queryBlocks', 'keys'], outputs: ['products'] },
      { op: 'Mul', inputs: ['products', 'scale'], outputs: ['scores'] },
      { op: 'Add', inputs: ['scores', 'mask'], outputs: ['seen'] },
      { op: 'Softmax', inputs: ['seen'], outputs: ['weights'], attributes: { axis: -1 } },
      { op: 'MatMul', inputs: ['weights', 'valueSeen'], outputs: ['mixed'] },
      { op: 'Reshape', inputs: ['mixed', 'unblocked'], outputs: ['output'] },
    ],
    fed: batched(inputs),
    constants: {
      blocked: whole(heads, blocks, window, dim),
      unblocked: whole(1, heads, queries, dim),
      first: whole(0),
      last: whole(blocks - 1),
      blockAxis: whole(1),
      nothing: { data: new Float32Array(heads * window * dim), shape: [heads, 1, window, dim] },
      scale: { data: Float32Array.of(1 / Math.sqrt(dim)), shape: [] },
      mask: { data: blockMask(blocks, window), shape: [1, blocks, window, 2 * window] },
    },
    outputs: batchedOutputs(workload),
  };
}

/** Query i of a block sees the block before it from i + 1 on, and its own up to i; the first block has none before it. */
function blockMask(blocks, window) {
  const mask = new Float32Array(blocks * window * 2 * window).fill(-1e9);
  for (let row = 0; row < blocks * window; row++) {
    const i = row % window;
    const start = row * 2 * window;
    mask.fill(0, start + (row < window ? window : i + 1), start + window + i + 1);
  }
  return mask;
}
