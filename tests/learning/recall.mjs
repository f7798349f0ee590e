// How far the first symbol can be recalled, and after how many steps.
import { heldOutAccuracy, withModel, train } from './train.mjs';

const models = (length) => [
  ['attention', { mixer: 'attention' }],
  ['RNN', { mixer: 'rnn' }],
  ['LSTM, forget bias 1', { mixer: 'lstm', forgetBias: 1 }],
  ['LSTM, chrono', { mixer: 'lstm', forgetBias: { chrono: length } }],
];
const caps = { 8: 3000, 32: 3000, 128: 1000, 256: 800 };

export const recallExperiment = {
  name: 'recall',
  about: 'Recall of the first of n symbols (8 different ones) at the last. Training ends when it is learned.',
  cases: Object.entries(caps).flatMap(([length, cap]) => models(Number(length)).map(([name, options]) => ({
    name: `n ${length}, ${name}`,
    cap,
    run({ engine, tasks, seed }) {
      const task = tasks.recall({ length: Number(length), seed });
      return withModel(engine, task, seed, options, (model) => {
        const { steps } = train(model, task, { cap });
        return { steps, 'held out': heldOutAccuracy(model, task) };
      });
    },
  }))),
};
