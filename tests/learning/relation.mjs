// Why query and key are two projections: whom each animal in a ring chases.
import { accuracyOf, EMBED_DIM, mean, train, withModel } from './train.mjs';

const cap = 500;
const ties = { 'q, k, v': 'none', 'q = k': 'query-key', 'v = x': 'value-input', 'q = k = v = x': 'all' };

export const relationExperiment = {
  name: 'relation',
  about: 'Whom each of 4 animals in a ring chases (8 animals), one layer, one head. With q = k at least one of the 4 looks the wrong way. Asymmetry: |S - S\'| / |S| of the scores S; diagonal: the mean weight of a row on itself.',
  cases: Object.entries(ties).map(([name, tied]) => ({
    name,
    cap,
    run({ engine, qkv, tasks, seed }) {
      const task = tasks.directedRelation({ length: 4, seed });
      return withModel(engine, task, seed, { mixer: 'attention', ties: tied }, (model) => {
        const { steps } = train(model, task, { cap, more: cap });
        return { steps, 'held out': accuracyOf(model, task.heldOut()), ...scoresOf({ engine, qkv }, model, task.heldOut(64).tokens) };
      });
    },
  })),
};

/** Over some held-out rings. */
function scoresOf({ engine, qkv }, model, { data, shape: [count, length] }) {
  const { embedding, 'layers.0.wq': wq = identity(EMBED_DIM), 'layers.0.wk': wk = wq } = model.parameters;
  const positions = qkv.sinusoidal(length, EMBED_DIM);
  const rings = Array.from({ length: count }, (_, i) => {
    const x = engine.embedding(embedding, data.slice(i * length, (i + 1) * length));
    const sum = qkv.tensor(x.data.map((number, at) => number + positions.data[at]), x.shape);
    const { scores, weights } = engine.explain(sum, { wq, wk, wv: wk });
    return { asymmetry: asymmetryOf(scores, length), diagonal: mean(Array.from({ length }, (_, row) => weights.at(row, row))) };
  });
  return { asymmetry: mean(rings.map(({ asymmetry }) => asymmetry)), diagonal: mean(rings.map(({ diagonal }) => diagonal)) };
}

const identity = (size) => Array.from({ length: size }, (_, row) => Array.from({ length: size }, (_, column) => Number(row === column)));

function asymmetryOf(scores, length) {
  const entries = Array.from({ length: length ** 2 }, (_, i) => [scores.at(Math.floor(i / length), i % length), scores.at(i % length, Math.floor(i / length))]);
  return Math.hypot(...entries.map(([score, mirrored]) => score - mirrored)) / Math.hypot(...entries.map(([score]) => score));
}
