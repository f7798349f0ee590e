// Eigen's own product as WebAssembly, built by our flags (tests/bench/native/eigen_product.cpp).

export const eigenWasm = {
  name: 'Eigen as WebAssembly',
  only: ({ kind }) => kind === 'matmul',
  async open({ loadEigen }) {
    const { instance } = await WebAssembly.instantiate(await loadEigen(), { env: { emscripten_notify_memory_growth() {} } });
    instance.exports._initialize();
    return { prepare: (workload, inputs) => [entrant(instance.exports, workload, inputs)] };
  },
};

/** The weight lies in its memory already, as in a layer; x goes in and the product out with every call. */
function entrant({ memory, reserve, release, product }, { rows, inDim, outDim }, { x, weight }) {
  const [xAt, weightAt, outAt] = [x.data.length, weight.data.length, rows * outDim].map((count) => reserve(count));
  const floats = (at, length) => new Float32Array(memory.buffer, at, length);
  floats(weightAt, weight.data.length).set(weight.data);
  return {
    formulation: 'noalias product',
    call() {
      floats(xAt, x.data.length).set(x.data);
      product(xAt, weightAt, outAt, rows, inDim, outDim);
      return floats(outAt, rows * outDim).slice();
    },
    read: (output) => ({ output }),
    release: () => [xAt, weightAt, outAt].forEach((at) => release(at)),
  };
}
