// A training step in TensorFlow.js: its automatic differentiation and its Adam.
import { ADAM, COMPARED_STEPS, trainingBatch } from '../training-batch.mjs';
import { cells } from './tensorflow-cells.mjs';

/** The back ends that may train; which one is faster, or fails, is seen in the trial. */
const BACK_ENDS = ['wasm', 'cpu'];

export const training = (tf, workload, inputs) => BACK_ENDS.map((backEnd) => ({
  formulation: `${backEnd} back end`,
  ...trainer(tf, backEnd, workload, inputs),
}));

function trainer(tf, backEnd, workload, inputs) {
  const { mixer, batch, length, dim, vocab } = workload;
  let state;
  const start = () => {
    release();
    const variables = Object.fromEntries(Object.entries(inputs).map(([name, { data, shape }]) => [name, tf.variable(tf.tensor(data, shape))]));
    const { tokens, targets } = trainingBatch(workload);
    const held = {
      // A look-up's gradient is no operation of the wasm back end; the product with rows of 0 and 1 is the same.
      tokens: tf.oneHot(tf.tensor1d(tokens, 'int32'), vocab).cast('float32'),
      targets: tf.oneHot(tf.tensor1d(targets, 'int32'), vocab).cast('float32'),
      positions: tf.tensor(positionsOf(workload), [1, length, dim]),
    };
    state = { variables, held, optimizer: tf.train.adam(ADAM.lr, ...ADAM.betas, ADAM.eps) };
  };
  const step = () => {
    const { variables, held, optimizer } = state;
    const cost = optimizer.minimize(() => tf.tidy(() => {
      const rows = tf.reshape(tf.matMul(held.tokens, variables.embedding), [batch, length, dim]);
      const last = lastRow[mixer](tf, workload, variables, rows, held);
      const logits = tf.add(tf.matMul(last, variables['readout.weight']), variables['readout.bias']);
      return tf.neg(tf.mean(tf.sum(tf.mul(held.targets, tf.logSoftmax(logits)), -1)));
    }), true, Object.values(variables));
    const [loss] = cost.dataSync();
    cost.dispose();
    return loss;
  };
  const release = () => {
    if (!state) return;
    tf.dispose([state.variables, state.held]);
    state.optimizer.dispose();
    state = undefined;
  };
  return {
    async call() {
      await tf.setBackend(backEnd);
      if (!state) start();
      return step();
    },
    async read() {
      await tf.setBackend(backEnd);
      start();
      return { losses: Float32Array.from({ length: COMPARED_STEPS }, step) };
    },
    release,
  };
}

/** The row that is read out, (batch, dim). */
const lastRow = {
  /** Of queries only the row that is read has one. */
  attention(tf, { batch, length, dim, heads }, variables, embedded, { positions }) {
    const x = tf.add(embedded, positions);
    const last = tf.reshape(tf.slice(x, [0, length - 1, 0], [batch, 1, dim]), [batch, dim]);
    const project = (rows, name) =>
      tf.transpose(tf.reshape(tf.matMul(tf.reshape(rows, [-1, dim]), variables[`layers.0.${name}`]), [batch, -1, heads, dim / heads]), [0, 2, 1, 3]);
    const [query, key, value] = [project(last, 'wq'), project(x, 'wk'), project(x, 'wv')];
    const weights = tf.softmax(tf.mul(tf.matMul(query, key, false, true), 1 / Math.sqrt(dim / heads)));
    const mixed = tf.reshape(tf.matMul(weights, value), [batch, dim]);
    return tf.add(last, tf.matMul(mixed, variables['layers.0.wo']));
  },

  lstm(tf, { batch, length, dim }, variables, embedded) {
    const projected = tf.add(tf.matMul(tf.reshape(embedded, [batch * length, dim]), variables['layers.0.wx']), variables['layers.0.bx']);
    let state = { h: tf.zeros([batch, dim]), c: tf.zeros([batch, dim]) };
    for (const step of tf.unstack(tf.reshape(projected, [batch, length, 4 * dim]), 1)) {
      state = cells.lstm(tf, step, tf.add(tf.matMul(state.h, variables['layers.0.wh']), variables['layers.0.bh']), state);
    }
    return state.h;
  },
};

/** Sine in even columns, cosine in odd ones. */
function positionsOf({ length, dim }) {
  return Float32Array.from({ length: length * dim }, (_, k) => {
    const column = k % dim;
    const angle = Math.floor(k / dim) / 10000 ** ((column - (column % 2)) / dim);
    return column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
}
