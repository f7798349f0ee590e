// The numbers that a workload is fed with: the same in every process and host.

/** Mulberry32 (Tommy Ettinger, 2017): uniform in [0, 1). */
export function seeded(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const sizeOf = (shape) => shape.reduce((product, length) => product * length, 1);

/** Of variance 1, so that scores of attention have it too; weights of variance 1 / inDim, so that products keep it. */
export function makeInputs({ tensors }) {
  return Object.fromEntries(Object.entries(tensors).map(([name, given], i) => {
    const shape = given.weight ? given.shape : given;
    const next = seeded(i + 1);
    const reach = Math.sqrt(given.weight ? 3 / shape[0] : 3);
    const data = new Float32Array(sizeOf(shape));
    for (let k = 0; k < data.length; k++) data[k] = reach * (2 * next() - 1);
    return [name, { shape, data }];
  }));
}

/** (queries, keys): 0 where a query sees a key, and what softmax turns into 0 elsewhere. `window`: keys that it sees at most. */
export function causalMask(queries, keys, window = Infinity) {
  const mask = new Float32Array(queries * keys).fill(-1e9);
  for (let i = 0; i < queries; i++) mask.fill(0, i * keys + Math.max(0, i + 1 - window), i * keys + i + 1);
  return mask;
}
