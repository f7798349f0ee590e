// Where the RNN wins: parity of sequences up to ten times as long as those it was trained on.
import { heldOutAccuracy, train, withModel } from './train.mjs';

const TRAINED = 12;
const TESTED = [12, 24, 48, 120];
const cap = 3000;

export const parityExperiment = {
  name: 'parity',
  about: `Parity of 1 to ${TRAINED} bits, read at the end; 300 steps more once it is learned, then tests on longer ones.`,
  cases: [['RNN', { mixer: 'rnn' }], ['LSTM', { mixer: 'lstm' }], ['attention, 1 layer', { mixer: 'attention' }]].map(([name, options]) => ({
    name,
    cap,
    run({ engine, tasks, seed }) {
      const task = tasks.parity({ length: TRAINED, seed });
      return withModel(engine, task, seed, options, (model) => {
        const { steps } = train(model, task, { cap, more: 300 });
        const tests = TESTED.map((length) => [`${length} bits`, heldOutAccuracy(model, tasks.parity({ length, shortest: length, seed }))]);
        return { steps, ...Object.fromEntries(tests) };
      });
    },
  })),
};
