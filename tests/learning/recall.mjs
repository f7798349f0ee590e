// How far the first symbol can be recalled, and after how many steps.
import { heldOutAccuracy, train, withModel } from './train.mjs';

/** Attention ends early, and may take as long as it wants; of the others the most steps grow fewer as they grow slower. */
const ATTENTION_CAP = 3000;
/** It stops long before. */
const ORTHOGONAL_LENGTH = 64;
const caps = { 8: 3000, 16: 3000, 32: 3000, 64: 1500, 128: 1000, 256: 800 };

const models = (length, cap) => [
  ['attention', { mixer: 'attention' }, ATTENTION_CAP],
  ['RNN', { mixer: 'rnn' }, cap],
  ...(length <= ORTHOGONAL_LENGTH ? [['RNN, orthogonal start', { mixer: 'rnn', recurrentStart: 'orthogonal' }, cap]] : []),
  ['LSTM, forget bias 1', { mixer: 'lstm', forgetBias: 1 }, cap],
  ['LSTM, chrono', { mixer: 'lstm', forgetBias: { chrono: length } }, cap],
];

export const recallExperiment = {
  name: 'recall',
  about: 'Recall of the first of n symbols (8 different ones) at the last. Training ends when it is learned.',
  cases: Object.entries(caps).flatMap(([length, most]) => models(Number(length), most).map(([name, options, cap]) => ({
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
