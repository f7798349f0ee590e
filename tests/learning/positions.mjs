// What a model knows of order: a self-attention task and a cross-attention one, each with every kind of positions.
import { heldOutAccuracy, train, withModel } from './train.mjs';

const cap = 1000;
const LENGTH = 16;
const kinds = ['none', 'sinusoidal', 'learned'];
const placed = (positions, length) => ({ mixer: 'attention', positions, ...(positions === 'learned' && { maxLength: length }) });

const recalls = [...kinds, 'rotary'].map((positions) => ({
  name: `recall, n ${LENGTH}, ${positions}`,
  cap,
  run({ engine, tasks, seed }) {
    const task = tasks.recall({ length: LENGTH, seed });
    return withModel(engine, task, seed, placed(positions, LENGTH), (model) => {
      const { steps } = train(model, task, { cap, more: 200 });
      return { steps, 'held out': heldOutAccuracy(model, task) };
    });
  },
}));

const reorders = kinds.map((positions) => ({
  name: `reversed, 8 from 12, ${positions}`,
  cap,
  run({ engine, tasks, seed }) {
    const task = tasks.reorder({ length: 8, contextLength: 12, order: 'reversed', seed });
    return withModel(engine, task, seed, placed(positions, 12), (model) => {
      const { steps } = train(model, task, { cap, more: 200 });
      return { steps, 'held out': heldOutAccuracy(model, task), 'aligned rows': alignedRows(model, task.heldOut()) };
    });
  },
}));

export const positionsExperiment = {
  name: 'positions',
  about: 'Recall of the first symbol (self-attention), and a context read backwards (cross-attention, 8 of 12 positions), one layer; 200 steps more once it is learned. Aligned: the largest weight of a row is on the right position.',
  cases: [...recalls, ...reorders],
};

function alignedRows(model, { tokens, options, alignment }) {
  const { data, shape: [count, , length, keys] } = model.weights(tokens, options)[0];
  let right = 0;
  for (let row = 0; row < count * length; row++) {
    const weights = data.subarray(row * keys, (row + 1) * keys);
    right += Number(weights.indexOf(Math.max(...weights)) === alignment.data[row]);
  }
  return right / (count * length);
}
