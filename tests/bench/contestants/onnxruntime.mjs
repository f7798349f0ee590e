// ONNX Runtime on one thread: its WebAssembly build, and its native one for the distance to native.
import { graphs } from '../onnx/graphs.mjs';

const OPTIONS = { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential', graphOptimizationLevel: 'all', logSeverityLevel: 4 };

export const onnxWeb = {
  name: 'onnxruntime-web',
  patient: true,
  open: async (env) => contestant(await loadWeb(env), ['wasm'], { constant: false }),
};

/** A bound for decoding: no cache could be read with fewer copies than keys and values that never change. */
export const onnxWebConstant = {
  name: 'onnxruntime-web, keys constant',
  only: ({ cached }) => cached === true,
  open: async (env) => contestant(await loadWeb(env), ['wasm'], { constant: true }),
};

export const onnxNode = {
  name: 'onnxruntime-node',
  native: true,
  patient: true,
  open: async ({ load }) => contestant(await load('onnxruntime-node'), ['cpu'], { constant: false }),
};

async function loadWeb({ load }) {
  const ort = await load('onnxruntime-web');
  ort.env.wasm.numThreads = 1;
  return ort;
}

function contestant(ort, executionProviders, { constant }) {
  return {
    async prepare(workload, inputs) {
      const entrants = [];
      for (const graph of graphs(workload, inputs, { constant })) {
        try {
          entrants.push(await entrant(ort, executionProviders, graph));
        } catch (error) {
          entrants.push({ formulation: graph.formulation, error });
        }
      }
      return entrants;
    },
  };
}

async function entrant({ InferenceSession, Tensor }, executionProviders, { formulation, model, feeds, read = (results) => results }) {
  const session = await InferenceSession.create(model, { ...OPTIONS, executionProviders });
  const tensors = Object.fromEntries(Object.entries(feeds).map(([name, { data, shape }]) => [name, new Tensor('float32', data, shape)]));
  return {
    formulation,
    call: () => session.run(tensors),
    read: (outputs) => read(Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, data]))),
    release: () => session.release(),
  };
}
