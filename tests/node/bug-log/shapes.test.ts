// Faults that other libraries had with heads, layouts, lengths and packing; the ids are those of our bug
// log.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { type AttentionOptions, type Engine, tensor } from 'qkv';

import { argumentsOf, expectRight, type Form, makeCase, run, swapAxes } from '../support/attention-case.js';
import { errorOf, loadVariant, variant } from '../support/engine.js';
import { column, expectClose, means } from '../support/single-row.js';

let engine: Engine;
before(async () => { engine = await loadVariant(); });
after(() => engine.dispose());

const zeros = (...shape: number[]) => tensor(new Float32Array(shape.reduce((a, b) => a * b)), shape);
const extras = { weights: 'heads', logSumExp: true } as const;

describe(`bug log, shapes, ${variant}`, () => {
  test('B29 key heads are repeated, not tiled', async () => {
    const value = tensor(Float32Array.of(10, 20), [2, 1, 1]);
    assert.deepEqual([...engine.attention(zeros(4, 1, 1), zeros(2, 1, 1), value).output.data], [10, 10, 20, 20]);
    assert.equal((await errorOf(() => engine.attention(zeros(3, 1, 1), zeros(2, 1, 1), value))).code, 'SHAPE_MISMATCH');
    assert.equal((await errorOf(() => engine.attention(zeros(1, 3), zeros(1, 2), zeros(1, 2), { numHeads: 3, numKvHeads: 2 }))).code, 'SHAPE_MISMATCH');
  });

  test('B29 grouped heads give the bits of key heads written out, in every form', () => {
    for (const [heads, kvHeads] of [[4, 2], [6, 2], [6, 3], [5, 1]] as const) {
      for (const form of ['rank 3', 'rank 4', 'blhd', 'joined', 'joined batch'] satisfies Form[]) {
        const batch = form === 'rank 3' || form === 'joined' ? 1 : 2;
        const one = makeCase({ batch, heads, kvHeads, queryLen: 17, keyLen: 66, dim: 5, valueDim: 7 }, 29, {}, { form });
        const repeated = (data: Float32Array, width: number) =>
          Float32Array.from({ length: (data.length / kvHeads) * heads }, (_, at) => {
            const [inside, head] = [at % (66 * width), Math.floor(at / (66 * width))];
            return data[Math.floor(head / (heads / kvHeads)) * 66 * width + inside]!;
          });
        const full = { ...one, sizes: { ...one.sizes, kvHeads: heads }, key: repeated(one.key, 5), value: repeated(one.value, 7) };
        assert.deepEqual(run(engine, full).output, expectRight(engine, one).output, `${heads} heads over ${kvHeads}, ${form}`);
      }
    }
  });

  test('B33 axes of length 0', () => {
    for (const [queryLen, dim, heads] of [[2, 3, 1], [65, 5, 3]] as const) {
      const out = tensor(new Float32Array(heads * queryLen * dim).fill(NaN), [heads, queryLen, dim]);
      const none = engine.attention(zeros(heads, queryLen, 4), zeros(heads, 0, 4), zeros(heads, 0, dim), { ...extras, out });
      assert.ok(out.data.every((x) => x === 0), 'out keeps what was in it where there are no keys');
      assert.ok(none.logSumExp!.data.every((x) => x === -Infinity));
      assert.deepEqual(none.weights!.shape, [heads, queryLen, 0]);
    }
    const noQueries = engine.attention(zeros(2, 0, 3), zeros(2, 5, 3), zeros(2, 5, 4), extras);
    assert.deepEqual([noQueries.output.shape, noQueries.weights!.shape, noQueries.logSumExp!.shape], [[2, 0, 4], [2, 0, 5], [2, 0]]);
    for (const options of [{}, { causal: 'bottom-right' }, { keyLengths: [] }, { queryOffset: [] }] satisfies AttentionOptions[]) {
      const noBatch = engine.attention(zeros(0, 2, 3, 4), zeros(0, 2, 5, 4), zeros(0, 2, 5, 6), { ...extras, ...options });
      assert.deepEqual([noBatch.output.shape, noBatch.weights!.shape], [[0, 2, 3, 6], [0, 2, 3, 5]]);
    }
    assert.deepEqual(engine.attention(zeros(2, 3), zeros(4, 3), zeros(4, 0)).output.shape, [2, 0]);
  });

  test('B33 an empty packed sequence adds nothing and moves no neighbour', () => {
    const cuts = [0, 2, 2, 3];
    assert.deepEqual(means(engine, 3, [1, 3, 7], { sequences: { query: cuts, key: cuts } }), [2, 2, 7]);
    // Queries without keys, keys without queries.
    assert.deepEqual(means(engine, 3, [1, 3], { sequences: { query: [0, 1, 3], key: [0, 2, 2] } }), [2, 0, 0]);
    assert.deepEqual(means(engine, 1, [1, 3, 7], { sequences: { query: [0, 1, 1], key: [0, 2, 3] } }), [2]);
    const lengths = [0, 65, 0, 0, 64, 1, 0];
    const offsets = lengths.reduce((all, length) => [...all, all.at(-1)! + length], [0]);
    const without = [0, 65, 129, 130];
    const sizes = { heads: 2, kvHeads: 1, queryLen: 130, keyLen: 130, dim: 6, valueDim: 5 };
    for (const causal of [false, true]) {
      const packed = expectRight(engine, makeCase(sizes, 33, { causal, sequences: { query: offsets, key: offsets } }));
      assert.deepEqual(run(engine, makeCase(sizes, 33, { causal, sequences: { query: without, key: without } })).output, packed.output);
    }
  });

  test('B34 a head dim that is no multiple of the SIMD width', () => {
    // The engine's own memory is full of NaN to begin with, and so is what stands after each array.
    const nan = tensor(new Float32Array(300 * 80).fill(NaN), [300, 80]);
    engine.attention(nan, nan, nan, extras);
    const padded = (numbers: number[], rows: number) => {
      const data = new Float32Array(numbers.length + 16).fill(NaN);
      data.set(numbers, 8);
      return tensor(data.subarray(8, 8 + numbers.length), [rows, numbers.length / rows]);
    };
    for (const dim of [1, 2, 3, 5, 7, 63, 65]) {
      const last = (x: number) => [...Array<number>(dim - 1).fill(0), x];
      const none = Array<number>(dim).fill(0);
      const { output, weights } = engine.attention(padded(last(1), 1), padded([...last(1), ...none], 2), padded([...last(10), ...none], 2), { scale: 1, weights: 'heads' });
      expectClose([...weights!.data], [0.731059, 0.268941]);
      expectClose(output.data[dim - 1]!, 7.310586, 1e-5);
      assert.ok(output.data.subarray(0, dim - 1).every((x) => x === 0), `a value beside the last of ${dim} is not 0: ${output.data}`);
      for (const length of [1, 3, 65]) expectRight(engine, makeCase({ heads: 2, kvHeads: 2, queryLen: length, keyLen: length + 1, dim, valueDim: dim }, dim));
    }
  });

  test('B35 both layouts, subarrays and slices of packed projections have the same bits', async () => {
    for (const [batch, heads, length, dim] of [[2, 2, 2, 1], [2, 3, 66, 5]] as const) {
      const one = makeCase({ batch, heads, kvHeads: heads, queryLen: length, keyLen: length, dim, valueDim: dim }, 35, { causal: true });
      const expected = run(engine, one, extras);
      const lengthFirst = [one.query, one.key, one.value].map((data) => swapAxes(data, batch, heads, length, dim));
      const count = lengthFirst[0]!.length;
      // Query, key and value one after another in one buffer, as subarrays of it.
      const packed = new Float32Array(new SharedArrayBuffer(4 * (3 * count + 2)), 4, 3 * count);
      lengthFirst.forEach((data, i) => packed.set(data, i * count));
      const part = (i: number, ...axes: number[]) => tensor(packed.subarray(i * count, (i + 1) * count), [batch, length, ...axes]);
      const [width, axes] = [heads * dim, [heads, dim]];
      const joined = engine.attention(part(0, width), part(1, width), part(2, width), { ...extras, causal: true, numHeads: heads });
      const split = engine.attention(part(0, ...axes), part(1, ...axes), part(2, ...axes), { ...extras, causal: true, layout: 'blhd' });
      for (const made of [joined, split]) {
        assert.deepEqual(swapAxes(made.output.data, batch, length, heads, dim), expected.output);
        assert.deepEqual(made.weights!.data, expected.weights);
        assert.deepEqual(made.logSumExp!.data, expected.logSumExp);
      }
      const outside = { data: packed.subarray(1, count), shape: [batch, length, heads, dim] };
      const error = await errorOf(() => engine.attention(part(0, ...axes), outside, outside, { layout: 'blhd' }));
      assert.equal(error.code, 'SHAPE_MISMATCH');
      assert.match(error.message, /^key\.shape /);
    }
  });

  test("B45 the default scale is 1 / sqrt(head dim), whatever the model's and the value's width", () => {
    const ones = (rows: number, dim: number) => tensor(new Float32Array(rows * dim).fill(1, 0, dim), [rows, dim]);
    const weightOf = (dim: number, options: AttentionOptions = {}) => engine.attention(ones(1, dim), ones(2, dim), column([1, 0]), options).output.data[0]!;
    expectClose(weightOf(4), 0.880797);
    assert.equal(weightOf(4, { scale: 0 }), 0.5);
    expectClose(weightOf(4, { scale: undefined }), 0.880797);
    for (const dim of [1, 2, 3, 5, 8, 63, 65, 80]) expectClose(weightOf(dim), 1 / (1 + Math.exp(-Math.sqrt(dim))));
    // Four heads of 4 in a model of 16, values of another width.
    const model = engine.attention(ones(1, 16), ones(2, 16), tensor(new Float32Array(24).fill(1, 0, 12), [2, 12]), { numHeads: 4 });
    expectClose([...model.output.data], Array<number>(12).fill(0.880797));
  });

  test('B46 heads are merged by transposing, and no layout is guessed', () => {
    // Each query sees its own key alone, so that the output is the value.
    const own: AttentionOptions = { window: [0, 0] };
    const joined = tensor(Float32Array.of(1, 3, 2, 4), [2, 2]);
    assert.deepEqual(engine.attention(joined, joined, joined, { ...own, numHeads: 2 }).output.toArray(), [[1, 3], [2, 4]]);
    const identity = [[1, 0], [0, 1]];
    const layer = engine.multiHeadAttention({ embedDim: 2, numHeads: 2, bias: false });
    layer.load({ wq: identity, wk: identity, wv: identity, wo: identity }, { from: 'qkv' });
    assert.deepEqual(layer.forward([[1, 3], [2, 4]], own).output.toArray(), [[1, 3], [2, 4]]);
    layer.dispose();
    const h0h1 = tensor(Float32Array.of(1, 2, 3, 4), [1, 2, 2, 1]);
    assert.deepEqual([...engine.attention(h0h1, h0h1, h0h1, own).output.data], [1, 2, 3, 4]);
    for (const [batch, heads, length, dim] of [[1, 2, 2, 1], [2, 3, 5, 4], [2, 2, 2, 2]] as const) {
      const forms = (['rank 4', 'blhd', 'joined batch'] satisfies Form[]).map((form) =>
        makeCase({ batch, heads, kvHeads: heads, queryLen: length, keyLen: length, dim, valueDim: dim }, 46, { causal: true }, { form }));
      const [headsFirst, lengthFirst, merged] = forms.map((one) => run(engine, one, extras));
      for (const made of [lengthFirst!, merged!]) {
        assert.deepEqual(made.output, headsFirst!.output);
        assert.deepEqual(made.weights, headsFirst!.weights);
      }
      // The same memory read in the other layout is another problem.
      const [q, k, v] = argumentsOf(forms[0]!);
      const shape = [batch, length, heads, dim];
      const misread = engine.attention(tensor(q.data, shape), tensor(k.data, shape), tensor(v.data, shape), { causal: true, layout: 'blhd' });
      assert.notDeepEqual(misread.output.data, headsFirst!.output);
    }
  });

  test('B47 packed sequences do not see each other', async () => {
    const cuts = [0, 1, 3, 5];
    const sequences = { query: cuts, key: cuts };
    const packed = (first: number, options: AttentionOptions) => means(engine, 5, [first, 1, 3, 5, 7], { sequences, ...options });
    assert.deepEqual(packed(10, {}), [10, 2, 2, 6, 6]);
    assert.deepEqual(packed(10, { causal: true }), [10, 1, 2, 5, 6]);
    // ALiBi counts within a sequence: the far key of two weighs 1 / (1 + e).
    const far = 1 / (1 + Math.E);
    expectClose(packed(10, { alibi: [1] }), [10, 1 + 2 * far, 3 - 2 * far, 5 + 2 * far, 7 - 2 * far]);
    for (const options of [{}, { causal: true }, { alibi: [1] }] satisfies AttentionOptions[]) {
      assert.deepEqual(packed(99, options).slice(1), packed(10, options).slice(1));
    }
    for (const wrong of [[0, 3, 1, 5], [1, 3, 5], [0, 3, 6], [0, 3], [-1, 5], [0, 2.5, 5], []]) {
      for (const side of ['query', 'key'] as const) {
        const error = await errorOf(() => means(engine, 5, [1, 2, 3, 4, 5], { sequences: { query: [0, 5], key: [0, 5], [side]: wrong } }));
        assert.match(error.message, new RegExp(`^sequences(\\.${side})?\\b`), `[${wrong}] is refused by: ${error.message}`);
      }
    }
  });

  test('B47 each packed sequence has the bits that it has alone', () => {
    const [queries, keys] = [[0, 63, 128, 129, 129, 200], [0, 1, 66, 130, 193, 200]];
    const sizes = { heads: 2, kvHeads: 1, queryLen: 200, keyLen: 200, dim: 6, valueDim: 5 };
    const rows = (data: Float32Array, count: number, width: number, first: number, end: number) =>
      Float32Array.from(Array.from({ length: count }, (_, h) => [...data.subarray((h * 200 + first) * width, (h * 200 + end) * width)]).flat());
    for (const rules of [{}, { causal: 'bottom-right' }, { causal: 'top-left', alibi: true, window: [40, Infinity] }, { softcap: 2, sinks: [1, 0] }] as const) {
      const whole = makeCase(sizes, 47, { ...rules, sequences: { query: queries, key: keys } });
      const { output } = expectRight(engine, whole);
      for (let s = 0; s + 1 < queries.length; s++) {
        const [q, k] = [[queries[s]!, queries[s + 1]!], [keys[s]!, keys[s + 1]!]] as const;
        const alone = run(engine, {
          ...whole,
          rules,
          sizes: { ...whole.sizes, queryLen: q[1] - q[0], keyLen: k[1] - k[0] },
          query: rows(whole.query, 2, 6, ...q),
          key: rows(whole.key, 1, 6, ...k),
          value: rows(whole.value, 1, 5, ...k),
        });
        assert.deepEqual(rows(output, 2, 5, ...q), alone.output, `sequence ${s} differs from itself alone with ${JSON.stringify(rules)}`);
      }
    }
  });
});
