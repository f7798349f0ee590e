// What resident() refuses, and resident tensors that were disposed or are another engine's, for every argument that
// takes a tensor.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { type Engine, type ResidentTensor, type TensorLike } from 'qkv';

import { loadVariant } from '../support/engine.js';
import { everyCall } from '../support/every-call.js';
import { Choices } from '../support/random-case.js';
import { type Refusal, refuses } from '../support/refusals.js';
import { literal, wrongTensor } from '../support/wrong.js';

let engine: Engine;
let other: Engine;
before(async () => {
  engine = await loadVariant({ maxMemory: 29 * 2 ** 20 });
  other = await loadVariant({ maxMemory: 28 * 2 ** 20 });
});
after(() => {
  engine.dispose();
  other.dispose();
});

const foreign = new Map<TensorLike, ResidentTensor>();
const ofOther = (given: TensorLike): ResidentTensor => {
  const made = foreign.get(given) ?? other.resident(given);
  foreign.set(given, made);
  return made;
};
const disposed = (given: TensorLike): ResidentTensor => {
  const made = engine.resident(given);
  made.dispose();
  return made;
};

const calls = everyCall(new Choices(3));

/** Weights in other layouts are read and not kept, wherever they lie. */
const isCopied = (name: string) => name.includes('_proj');

const misused = calls.map(({ name, inputs, call }): [string, Refusal[]] => [
  name,
  Object.entries(inputs).flatMap(([input, given]): Refusal[] => [
    [`${input}, disposed`, () => call(engine, { ...inputs, [input]: disposed(given as TensorLike) }), 'DISPOSED',
      literal(`${input} is a resident tensor that was disposed; engine.resident() gives a new one.`)],
    ...(isCopied(input) ? [] : [[`${input}, of another engine`, () => call(engine, { ...inputs, [input]: ofOther(given as TensorLike) }), 'INVALID_ARGUMENT',
      literal(`${input} is a resident tensor of another engine, expected one of this engine`)] as Refusal]),
  ]),
]);

const out = () => engine.resident([[0, 0]]);
const x = [[1, 2]];

refuses('resident tensors', {
  engine: () => engine,
  untouched: () => calls.flatMap(({ inputs }) => Object.values(inputs).map((given) => (given as { data: Float32Array }).data)),
  next: () => assert.deepEqual(engine.softmax(engine.resident([[0, 0]])).toArray(), [[0.5, 0.5]], 'the next call was wrong'),
  tables: {
    tensor: wrongTensor('tensor', (given) => engine.resident(given as TensorLike), '', [])
      .filter(([name]) => !name.startsWith('a boolean') && !name.startsWith('booleans')),
    ...Object.fromEntries(misused),
    out: [['resident', () => engine.attention(x, x, x, { out: out() }), 'INVALID_ARGUMENT', /^out is an object of class ResidentTensor, expected a tensor with a Float32Array\.$/]],
    mask: [['resident numbers', () => engine.attention(x, x, x, { mask: engine.resident([[1]]) as never }), 'INVALID_ARGUMENT', /^mask holds numbers, expected booleans/]],
    bias: [['resident booleans', () => engine.attention(x, x, x, { bias: engine.resident([[true]]) }), 'INVALID_ARGUMENT', /^bias holds bytes, expected numbers/]],
    at: [
      ['too few', () => engine.resident(x).at(0), 'INVALID_ARGUMENT', /^at: 1 indices came, expected 2, one for each axis of \(1, 2\)\.$/],
      ['out of range', () => engine.resident(x).at(0, 2), 'INVALID_ARGUMENT', /^at: index 2 came for axis 1, expected a whole number from 0 below 2\.$/],
    ],
  },
});
