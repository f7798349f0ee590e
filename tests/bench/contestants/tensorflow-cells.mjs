// Recurrent cells of tf operations.

/** One step from both projections; gates are i f g o and r z n. */
export const cells = {
  rnn: (tf, x, r, { c }) => ({ h: tf.tanh(tf.add(x, r)), c }),
  lstm(tf, x, r, state) {
    const [i, f, g, o] = tf.split(tf.add(x, r), 4, 1);
    const c = tf.add(tf.mul(tf.sigmoid(f), state.c), tf.mul(tf.sigmoid(i), tf.tanh(g)));
    return { h: tf.mul(tf.sigmoid(o), tf.tanh(c)), c };
  },
  gru(tf, x, r, { h, c }) {
    const [[xr, xz, xn], [rr, rz, rn]] = [tf.split(x, 3, 1), tf.split(r, 3, 1)];
    const z = tf.sigmoid(tf.add(xz, rz));
    const n = tf.tanh(tf.add(xn, tf.mul(tf.sigmoid(tf.add(xr, rr)), rn)));
    return { h: tf.add(n, tf.mul(z, tf.sub(h, n))), c };
  },
};
