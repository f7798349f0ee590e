// qkv itself: each of its builds, on one thread and on two.
import { ADAM, COMPARED_STEPS, trainingBatch } from '../training-batch.mjs';

const builds = [
  { variant: 'relaxed', threads: 1, counted: true },
  { variant: 'simd', threads: 1 },
  { variant: 'relaxed-mt', threads: 2, counted: true },
  { variant: 'simd-mt', threads: 2 },
  { variant: 'relaxed-mt', threads: 1, minor: true },
  { variant: 'simd-mt', threads: 1, minor: true },
];

/** Only of less than a second: by and large they are their builds without threads. */
const isShort = ({ flops }) => flops < 1e10;

export const ours = builds.map(({ variant, threads, counted, minor }) => ({
  name: `qkv ${variant}${variant.endsWith('-mt') ? ` ${threads}` : ''}`,
  patient: true,
  gradients: true,
  minor,
  ...(minor && { only: isShort }),
  async open({ load }) {
    const { load: loadEngine } = await load('qkv');
    const engine = await loadEngine({ variant, threads });
    return {
      prepare: (workload, inputs) => prepare(engine, workload, inputs),
      /** Bytes that an engine takes for the workload beyond inputs and outputs: its scratch, and 2 MiB to begin with. */
      ...(counted && { extraBytes: (workload, inputs) => extraBytes(loadEngine, { variant, threads }, workload, inputs) }),
      close: () => engine.dispose(),
    };
  },
}));

function prepare(engine, workload, inputs) {
  const kind = kinds[workload.kind];
  const method = kind.method(workload);
  if (typeof engine[method] !== 'function') throw new Error(`qkv has no ${method} yet`);
  return kind.prepare(engine, workload, inputs);
}

async function extraBytes(loadEngine, options, workload, inputs) {
  // With a limit of its own it is an engine of its own, whose memory has served nothing else.
  const engine = await loadEngine({ ...options, maxMemory: 2 ** 31 - 2 ** 20 });
  const [{ call, read }] = prepare(engine, workload, inputs);
  const results = read(await call());
  const plain = [...Object.values(inputs).map(({ data }) => data), ...Object.values(results)];
  const { used } = engine.info().memory;
  engine.dispose();
  return used - plain.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

const kinds = {
  attention: {
    method: ({ cached }) => (cached ? 'kvCache' : 'attention'),
    prepare(engine, { causal, window, weights, cached, kvHeads, keys, dim }, { query, key, value }) {
      const read = ({ output, weights }) => ({ output: output.data, ...(weights && { weights: weights.data }) });
      if (cached) {
        const cache = engine.kvCache({ numKvHeads: kvHeads, headDim: dim, capacity: keys });
        cache.append(key, value);
        return [{ formulation: 'kvCache', call: () => cache.attend(query), read, release: () => cache.dispose() }];
      }
      const options = {
        ...(causal && { causal: true }),
        ...(window && { window: [window - 1, 0] }),
        ...(weights && { weights: 'heads' }),
      };
      return [{ formulation: 'attention', call: () => engine.attention(query, key, value, options), read }];
    },
  },

  layer: {
    method: () => 'multiHeadAttention',
    prepare(engine, { embedDim, heads }, { x, ...parameters }) {
      const layer = engine.multiHeadAttention({ embedDim, numHeads: heads });
      layer.load(parameters);
      return [{
        formulation: 'multiHeadAttention',
        call: () => layer.forward(x),
        read: ({ output }) => ({ output: output.data }),
        release: () => layer.dispose(),
      }];
    },
  },

  matmul: {
    method: () => 'linear',
    prepare: (engine, workload, { x, weight }) => withWeights(engine, { weight }, (held) => () => engine.linear(x, held.weight))
      .map((entrant) => ({ ...entrant, read: ({ data }) => ({ output: data }) })),
  },

  attentionBackward: {
    method: () => 'attentionBackward',
    prepare: (engine, workload, { dOutput, query, key, value }) => [{
      formulation: 'attentionBackward',
      call: () => engine.attentionBackward(dOutput, query, key, value),
      read: (gradients) => Object.fromEntries(Object.entries(gradients).map(([name, { data }]) => [name, data])),
    }],
  },

  training: {
    method: () => 'sequenceModel',
    prepare(engine, workload, inputs) {
      const { mixer, batch, length, dim, heads, vocab } = workload;
      const model = engine.sequenceModel({
        vocab, embedDim: dim, mixer, readout: 'last', optimizer: ADAM, ...(mixer === 'attention' && { numHeads: heads, positions: 'sinusoidal' }),
      });
      model.load(inputs);
      const { tokens, targets } = trainingBatch(workload);
      const rows = { data: tokens, shape: [batch, length] };
      const step = () => model.trainStep(rows, targets);
      return [{
        formulation: 'sequenceModel',
        call: step,
        read() {
          model.load(inputs);
          return { losses: Float32Array.from({ length: COMPARED_STEPS }, () => step().loss) };
        },
        release: () => model.dispose(),
      }];
    },
  },

  recurrent: {
    method: ({ cell }) => cell,
    prepare: (engine, { cell }, { x, ...weights }) => withWeights(engine, weights, (held) => () => engine[cell](x, held))
      .map((entrant) => ({ ...entrant, read: ({ outputs }) => ({ output: outputs.data }) })),
  },
};

/** With weights as plain tensors, and with weights that the engine holds. */
function withWeights(engine, weights, makeCall) {
  const plain = { formulation: 'plain weights', call: makeCall(weights) };
  if (!engine.resident) return [plain];
  const held = Object.fromEntries(Object.entries(weights).map(([name, tensor]) => [name, engine.resident(tensor)]));
  const release = () => Object.values(held).forEach((tensor) => tensor.dispose());
  return [plain, { formulation: 'resident weights', call: makeCall(held), release }];
}
