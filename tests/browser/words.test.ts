// The word file and the reading of sentences.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeVocabulary, defaultSentence, maxWords, readSentence } from '../../web/site/src/words.js';
import { project } from './support/site.js';

const file = new Uint8Array(readFileSync(`${project}web/site/data/words.safetensors`)).buffer;
const vocabulary = decodeVocabulary(file);

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array): number => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

test('all words have vectors of their own', () => {
  assert.ok(vocabulary.words.length >= 400);
  assert.equal(new Set(vocabulary.words).size, vocabulary.words.length, 'a word may stand there once only');
  for (const word of vocabulary.words) assert.equal(vocabulary.vector(word)!.length, vocabulary.dims);
  assert.equal(vocabulary.vector('zyzzyva'), undefined);
});

test('near words have near vectors', () => {
  const [cat, dog, government] = ['cat', 'dog', 'government'].map((word) => vocabulary.vector(word)!) as [Float32Array, Float32Array, Float32Array];
  assert.ok(cosine(cat, dog) > 0.3 && cosine(cat, dog) > 2 * cosine(cat, government), 'the vectors are decoded wrongly: look at scale and rows');
});

test('the default sentence is known in full', () => {
  const { tokens, words } = readSentence(defaultSentence, vocabulary);
  assert.deepEqual(tokens.map(({ text }) => text), defaultSentence.split(' '));
  assert.deepEqual(words, defaultSentence.split(' '));
});

test('unknown words are marked and left out of the vectors', () => {
  const { tokens, words, vectors, dims } = readSentence('The ZYZZYVA, and: the dog!', vocabulary);
  assert.deepEqual(tokens.filter(({ known }) => !known).map(({ text }) => text), ['zyzzyva']);
  assert.deepEqual(words, ['the', 'and', 'the', 'dog']);
  assert.deepEqual(vectors.subarray(3 * dims), vocabulary.vector('dog'));
});

test('long sentences are cut, and say so', () => {
  const { tokens, dropped } = readSentence('dog '.repeat(maxWords + 5), vocabulary);
  assert.equal(tokens.length, maxWords);
  assert.equal(dropped, 5);
});

test('an empty sentence has no words', () => {
  assert.deepEqual(readSentence(' ,. ', vocabulary), { tokens: [], words: [], vectors: new Float32Array(0), dims: vocabulary.dims, dropped: 0 });
});
