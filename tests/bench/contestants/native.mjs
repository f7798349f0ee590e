// Our own core and Eigen's product, built for this machine (tests/bench/native): a program that waits for its turn.
import { sizeOf } from '../inputs.mjs';

const nativeContestant = (name, jobOf, only) => ({
  name,
  native: true,
  patient: true,
  only,
  async open({ startNative }) {
    if (!startNative) throw new Error('the native program is not built');
    const program = await startNative();
    return {
      prepare: async (workload, inputs) => [await entrant(program, workload, inputs, jobOf(workload))],
      close: () => program.close(),
    };
  },
});

export const nativeOurs = nativeContestant('qkv native', jobOf, ({ kind }) => kind !== 'layer');
export const eigenNative = nativeContestant('Eigen native', ({ rows, inDim, outDim }) => ['eigen', rows, inDim, outDim], ({ kind }) => kind === 'matmul');

/** What native/main.cpp is to compute. */
function jobOf(workload) {
  const { heads, kvHeads, queries, keys, dim, causal = false, window = 0, rows, inDim, outDim, cell, length, hidden } = workload;
  switch (workload.kind) {
    case 'attention': return ['attention', heads, kvHeads, queries, keys, dim, Number(causal), window, Number(workload.weights === true)];
    case 'matmul': return ['linear', rows, inDim, outDim];
    case 'recurrent': return [cell, length, hidden];
  }
}

async function entrant(program, { outputs }, inputs, job) {
  const tensors = Object.values(inputs);
  const counts = Object.entries(outputs).map(([name, shape]) => [name, sizeOf(shape)]);
  const id = await program.prepare(job, tensors.map(({ data }) => data), counts.map(([, count]) => count));
  return {
    formulation: job[0],
    time: (calls) => program.time(id, calls),
    call: async () => {
      const results = await program.results(id);
      return Object.fromEntries(counts.map(([name], i) => [name, results[i]]));
    },
    read: (results) => results,
    release: () => program.release(id),
  };
}
