// jax-js on its WebAssembly back end, one thread.

export const jax = {
  name: 'jax-js',
  dense: true,
  compiles: true,
  async open({ load }) {
    if (!globalThis.Iterator?.prototype?.map) throw new Error('skipped: it needs iterator helpers, as in Node 22');
    const library = await withoutWorkers(() => load('@jax-js/jax'));
    await withoutWorkers(() => library.init('wasm'));
    library.defaultDevice('wasm');
    return { prepare: (workload, inputs) => kinds[workload.kind](library, workload, inputs) };
  },
};

/** It compiles for shared memory and starts workers wherever there are any: none are to be seen while it is at work. */
async function withoutWorkers(action) {
  const { Worker } = globalThis;
  globalThis.Worker = undefined;
  try {
    return await action();
  } finally {
    globalThis.Worker = Worker;
  }
}

/**
 * Calls `compute` with the inputs as arrays and reads what it returns, { name: array }; `weights` become arrays once.
 * jax-js counts references, and a call takes its arguments over.
 */
function entrant({ numpy }, formulation, compute, inputs, weights = {}) {
  const held = arraysOf(numpy, weights);
  return {
    formulation,
    call: () => withoutWorkers(async () => {
      const given = arraysOf(numpy, inputs);
      const kept = Object.fromEntries(Object.entries(held).map(([name, array]) => [name, array.ref]));
      const results = compute({ ...given, ...kept });
      return Object.fromEntries(await Promise.all(Object.entries(results).map(async ([name, array]) => [name, await array.data()])));
    }),
    read: (results) => results,
    release: () => Object.values(held).forEach((array) => array.dispose()),
  };
}

const arraysOf = (numpy, inputs) =>
  Object.fromEntries(Object.entries(inputs).map(([name, { data, shape }]) => [name, numpy.array(data).reshape(shape)]));

const kinds = {
  attention(library, { dim, causal, window, weights: wanted, cached, heads, kvHeads }, { query, key, value }) {
    const { numpy, nn, jit } = library;
    const [given, held] = cached ? [{ query }, { key, value }] : [{ query, key, value }, {}];
    const lengthFirst = (array) => numpy.swapaxes(array, 0, 1);
    const options = { isCausal: causal === true, ...(window && { localWindowSize: [window - 1, 0] }) };
    const attend = jit((query, key, value) =>
      lengthFirst(nn.dotProductAttention(lengthFirst(query), lengthFirst(key), lengthFirst(value), options)));
    const products = jit((query, key, value) => {
      const scores = numpy.matmul(query, numpy.swapaxes(key, 1, 2)).mul(1 / Math.sqrt(dim));
      const weights = nn.softmax(scores, -1);
      return wanted ? [numpy.matmul(weights.ref, value), weights] : [numpy.matmul(weights, value)];
    });
    const entrants = [];
    if (!wanted) {
      entrants.push(entrant(library, 'nn.dotProductAttention', ({ query, key, value }) => ({ output: attend(query, key, value) }), given, held));
    }
    if (!causal && heads === kvHeads) {
      const compute = ({ query, key, value }) => {
        const [output, weights] = products(query, key, value);
        return { output, ...(wanted && { weights }) };
      };
      entrants.push(entrant(library, 'matmul, softmax, matmul', compute, given, held));
    }
    return entrants;
  },

  matmul(library, workload, { x, weight }) {
    const multiply = library.jit((x, weight) => library.numpy.matmul(x, weight));
    return [entrant(library, 'matmul', ({ x, weight }) => ({ output: multiply(x, weight) }), { x }, { weight })];
  },

  layer(library, { length, embedDim, heads }, { x, ...weights }) {
    const { numpy, nn, jit } = library;
    const forward = jit((x, wq, wk, wv, wo, bq, bk, bv, bo) => {
      const project = (weight, bias) => numpy.matmul(x.ref, weight).add(bias).reshape([length, heads, embedDim / heads]);
      const mixed = nn.dotProductAttention(project(wq, bq), project(wk, bk), project(wv, bv));
      x.dispose();
      return numpy.matmul(mixed.reshape([length, embedDim]), wo).add(bo);
    });
    const compute = ({ x, wq, wk, wv, wo, bq, bk, bv, bo }) => ({ output: forward(x, wq, wk, wv, wo, bq, bk, bv, bo) });
    return [entrant(library, 'matmul and nn.dotProductAttention', compute, { x }, weights)];
  },

  recurrent(library, { cell, length, hidden }, { x, ...weights }) {
    const { numpy, jit } = library;
    const project = jit((x, weight, bias) => numpy.matmul(x, weight).add(bias));
    const step = jit((x, h, c, wh, bh) => cells[cell](library, x, numpy.matmul(h.ref, wh).add(bh), { h, c }));
    const compute = ({ x, wx, wh, bx, bh }) => {
      const steps = numpy.split(project(x, wx, bx), length);
      let [h, c] = [numpy.zeros([1, hidden]), numpy.zeros([1, hidden])];
      const states = steps.map((row) => {
        [h, c] = step(row, h, c, wh.ref, bh.ref);
        return h.ref;
      });
      for (const array of [h, c, wh, bh]) array.dispose();
      return { output: numpy.concatenate(states) };
    };
    return [entrant(library, 'a jitted step', compute, { x }, weights)];
  },
};

/** One step from both projections: [h, c]; gates are i f g o and r z n. */
const cells = {
  rnn({ numpy }, x, r, { h, c }) {
    h.dispose();
    return [numpy.tanh(x.add(r)), c];
  },
  lstm({ numpy, nn }, x, r, state) {
    state.h.dispose();
    const [i, f, g, o] = numpy.split(x.add(r), 4, 1);
    const c = nn.sigmoid(f).mul(state.c).add(nn.sigmoid(i).mul(numpy.tanh(g)));
    return [nn.sigmoid(o).mul(numpy.tanh(c.ref)), c];
  },
  gru({ numpy, nn }, x, r, { h, c }) {
    const [[xr, xz, xn], [rr, rz, rn]] = [numpy.split(x, 3, 1), numpy.split(r, 3, 1)];
    const z = nn.sigmoid(xz.add(rz));
    const n = numpy.tanh(xn.add(nn.sigmoid(xr.add(rr)).mul(rn)));
    return [n.ref.add(z.mul(h.sub(n))), c];
  },
};
