// save() and load() of models of sequences: safetensors files, whole and broken.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type Engine, QkvError, type SequenceModel, type SequenceModelOptions, tensor, type Tensor } from 'qkv';

import { loadVariant, variant } from './support/engine.js';
import { bfloat16ToNumber, float16ToNumber } from './support/half.js';
import { randomSource } from './support/reference.js';
import { bytesOf, contentOf, fileOf, filesOf, type Written } from './support/safetensors.js';
import { sequenceCases } from './support/sequence-case.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

/** The smallest model: 7 numbers. */
const SMALL = { vocab: 2, embedDim: 1, mixer: 'attention', readout: 'last', ties: 'all', classes: 2, positions: 'none' } as const satisfies SequenceModelOptions;
const SHAPES = { embedding: [2, 1], 'layers.0.wo': [1, 1], 'readout.weight': [1, 2], 'readout.bias': [2] } as const;
const bitsOf = (model: SequenceModel) => Object.entries(model.parameters).map(([name, { data }]) => [name, ...new Uint32Array(data.buffer)]);
const numbersOf = (model: SequenceModel) => Object.values(model.parameters).flatMap(({ data }) => [...data]);

/** A file of the smallest model, of 7 numbers in a row. */
const smallFile = (dtype: string, data: ArrayBufferView, metadata?: unknown, pad = '') => {
  const bytes = bytesOf(data);
  const size = bytes.length / 7;
  let at = 0;
  const tensors = Object.entries(SHAPES).map(([name, shape]): [string, Written] => {
    const end = at + shape.reduce((a: number, b) => a * b, 1) * size;
    const written = { dtype, shape, bytes: bytes.slice(at, end) };
    at = end;
    return [name, written];
  });
  return filesOf(Object.fromEntries(tensors), metadata, pad);
};

describe(`files of models of sequences, ${variant}`, () => {
  test('give back every bit, and answers to the bit, whatever the model', () => {
    for (const { name, options, tokens, targets, given } of sequenceCases) {
      using model = engine.sequenceModel(options);
      model.trainStep(tokens, targets, given);
      using other = engine.sequenceModel({ ...options, seed: 99, optimizer: { lr: 7 }, check: true });
      assert.notDeepEqual(bitsOf(other), bitsOf(model), name);
      other.load(model.save());
      assert.deepEqual(bitsOf(other), bitsOf(model), name);
      assert.deepEqual(other.forward(tokens, given), model.forward(tokens, given), name);
    }
  });

  test('are what other tools read: the format, float32 side by side, options as JSON', () => {
    const options = { ...SMALL, numHeads: 1, seed: 3, optimizer: { lr: 0.5 } } as const;
    using model = engine.sequenceModel(options);
    const file = model.save();
    const { metadata, tensors, start } = contentOf(file);
    assert.deepEqual({ format: metadata['format'], version: metadata['version'] }, { format: 'qkv-sequence-model', version: '1' });
    const told = JSON.parse(metadata['options']!) as SequenceModelOptions;
    assert.deepEqual({ ...told, ...options }, told, 'the options are not in the file');
    using again = engine.sequenceModel(told as typeof options);
    assert.deepEqual(bitsOf(again), bitsOf(model), 'the options in the file make another model');
    assert.equal(start % 8, 0, 'the data is not aligned');
    let end = 0;
    for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(tensors)) {
      const { data, shape: expected } = model.parameters[name]!;
      assert.deepEqual([dtype, shape, offsets], ['F32', [...expected], [end, (end += data.byteLength)]], name);
      assert.deepEqual(new Float32Array(file.slice(start + offsets[0], start + offsets[1]).buffer), data, name);
    }
    assert.equal(start + end, file.length);
  });

  test('keep NaN, Infinity and the sign of 0', () => {
    using model = engine.sequenceModel(SMALL);
    model.load(smallFile('F32', Float32Array.of(NaN, Infinity, -Infinity, -0, 1e-45, 3.4e38, 0)));
    using other = engine.sequenceModel(SMALL);
    other.load(model.save());
    assert.deepEqual(numbersOf(other), [NaN, Infinity, -Infinity, -0, Math.fround(1e-45), Math.fround(3.4e38), 0]);
  });

  test('of other tools: F16, BF16 and F64 are rounded once to float32, or not at all', () => {
    using model = engine.sequenceModel(SMALL);
    const doubles = Float64Array.of(0.1, -1 / 3, 1e300, 1e-46, 2 ** -149 * 0.75, 1 + 2 ** -24 + 2 ** -50, NaN);
    model.load(smallFile('F64', doubles));
    assert.deepEqual(numbersOf(model), [...doubles].map(Math.fround));
    // Every number of 16 bits there is.
    for (const [dtype, toNumber] of [['F16', float16ToNumber], ['BF16', bfloat16ToNumber]] as const) {
      using wide = engine.sequenceModel({ ...SMALL, vocab: 2 ** 16 });
      const all = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
      const file = (name: keyof typeof SHAPES, shape: readonly number[]) => ({ dtype: 'F32', shape, bytes: bytesOf(wide.parameters[name]!.data) });
      const rest = Object.fromEntries(Object.entries(SHAPES).slice(1).map(([name, shape]) => [name, file(name as keyof typeof SHAPES, shape)]));
      wide.load(filesOf({ embedding: { dtype, shape: [2 ** 16, 1], bytes: bytesOf(all) }, ...rest }));
      const read = wide.parameters['embedding']!.data;
      const wrong = [...all].filter((bits) => !Object.is(read[bits], toNumber(bits)));
      assert.deepEqual(wrong, [], `${dtype} of these bits is read wrongly`);
    }
  });

  test('may begin anywhere in a buffer, shared or not, be padded, and be in any order', () => {
    using model = engine.sequenceModel(SMALL);
    const numbers = Float32Array.of(1, 2, 3, 4, 5, 6, 7);
    const expect = (file: Uint8Array, what: string) => {
      model.load(smallFile('F32', new Float32Array(7)));
      model.load(file);
      assert.deepEqual(numbersOf(model), [...numbers], what);
    };
    for (const pad of ['', ' ', '  ', '   ', ' \n\t']) {
      const file = smallFile('F32', numbers, { made: 'elsewhere', format: 'pt' }, pad);
      expect(file, `padded by ${pad.length}`);
      for (const shift of [1, 2, 3]) {
        const buffer = Buffer.alloc(file.length + 9, 7);
        buffer.set(file, shift);
        expect(buffer.subarray(shift, shift + file.length), `a part of a Node buffer, from ${shift}`);
      }
      const shared = new Uint8Array(new SharedArrayBuffer(file.length));
      shared.set(file);
      expect(shared, 'shared memory');
    }
    // The header's order is not that of the data.
    const { tensors, start } = contentOf(smallFile('F32', numbers));
    const turned = JSON.stringify(Object.fromEntries(Object.entries(tensors).reverse()));
    expect(fileOf(turned, smallFile('F32', numbers).slice(start)), 'another order');
  });

  test('load() takes a record of tensors, resident ones too, and the model keeps none of it', () => {
    using model = engine.sequenceModel(SMALL);
    const given: Record<string, Tensor> = { ...model.parameters, 'readout.bias': tensor([5, 6]) };
    model.load({ ...given, 'readout.bias': engine.resident([5, 6]), embedding: [[1], [2]], 'layers.0.wo': { data: Float64Array.of(3), shape: [1, 1] } });
    given['readout.bias']!.data.fill(9);
    assert.deepEqual(model.parameters['readout.bias']!.toArray(), [5, 6]);
    assert.deepEqual(model.parameters['embedding']!.toArray(), [[1], [2]]);
    model.parameters['embedding']!.data.fill(8);
    assert.deepEqual(model.parameters['embedding']!.toArray(), [[1], [2]], 'parameters are no copies');
    using other = engine.sequenceModel({ ...SMALL, readout: 'every' });
    other.load(model.parameters);
    assert.deepEqual(bitsOf(other), bitsOf(model), 'a record may be another model’s');
  });

  test('load() starts the optimizer anew', () => {
    const options = { ...SMALL, optimizer: { lr: 0.1 } } as const;
    const run = (model: SequenceModel) => [0, 1, 0].map((target) => model.trainStep([[0, 1]], [target]));
    using model = engine.sequenceModel(options);
    const start = model.save();
    const first = run(model);
    const end = bitsOf(model);
    assert.equal(model.steps, 3);
    model.load(start);
    assert.equal(model.steps, 0);
    assert.deepEqual([run(model), bitsOf(model)], [first, end]);
  });

  test('a file with any one byte changed, or cut anywhere, is loaded or refused by a QkvError, and refused it changes nothing', () => {
    using model = engine.sequenceModel(SMALL);
    const start = smallFile('F32', Float32Array.of(1, 2, 3, 4, 5, 6, 7));
    const files = [model.save(), smallFile('F16', Uint16Array.of(1, 2, 3, 4, 5, 6, 7), { a: '{"b":1}' })];
    const random = randomSource(7);
    const tryLoad = (file: Uint8Array, what: string): boolean => {
      try {
        model.load(file);
        return true;
      } catch (error) {
        assert.ok(error instanceof QkvError && /^load: [^\n]+\.$/.test(error.message) && error.message.length < 600, `${what}: ${String(error)}`);
        return false;
      }
    };
    let [loaded, refused] = [0, 0];
    for (const [f, file] of files.entries()) {
      for (let i = 0; i < file.length; i++) {
        assert.equal(tryLoad(file.subarray(0, i), `file ${f} cut to ${i}`), false, `file ${f} cut to ${i} bytes was loaded`);
        const flips = [1, 2, 4, 8, 16, 32, 64, 128, 255, 1 + Math.floor((random() + 1) * 127)].map((flip) => file[i]! ^ flip);
        for (const byte of [...flips, 0x22, 0x30, 0x5c, 0x7b, 0x7d]) {
          const changed = file.slice();
          changed[i] = byte;
          model.load(start);
          if (tryLoad(changed, `file ${f} with byte ${i} as ${byte}`)) loaded++;
          else {
            refused++;
            assert.deepEqual(numbersOf(model), [1, 2, 3, 4, 5, 6, 7], `file ${f} with byte ${i} as ${byte} was refused and changed something`);
          }
        }
      }
      assert.equal(tryLoad(Buffer.concat([file, Uint8Array.of(0)]), 'a byte too many'), false);
    }
    assert.ok(loaded > 500 && refused > 2000, `${loaded} were loaded and ${refused} refused`);
  });
});
