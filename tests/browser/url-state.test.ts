// Deep links: what goes into an address comes out again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seeded } from '../../web/site/src/random.js';
import { defaults, lengths, readHash, stageNames, widths, writeHash, type Settings } from '../../web/site/src/url-state.js';

function randomSettings(next: () => number): Settings {
  const pick = <Value>(choices: readonly Value[]): Value => choices[Math.floor(next() * choices.length)]!;
  const upTo = (end: number): number => Math.floor(next() * end);
  return {
    view: pick(['', '00', '06', '12']),
    text: pick(['', 'a dog', 'Größe & 100% #1 + "two" = ?', '猫 と 犬', '🐕', 'x'.repeat(400)]),
    seed: upTo(2 ** 31),
    projection: pick(['identity', 'random']),
    positions: pick([true, false]),
    times: (1 + upTo(8)) / 2,
    causal: pick([true, false]),
    stage: pick(stageNames),
    matrix: pick(['query', 'key', 'value']),
    row: upTo(33) - 1,
    column: upTo(65) - 1,
    n: pick(lengths),
    d: pick(widths),
    input: pick(['random', 'sentence']),
  };
}

test('settings survive the way through an address', () => {
  const next = seeded(7);
  for (let i = 0; i < 500; i++) {
    const settings = randomSettings(next);
    const hash = writeHash('', settings);
    assert.deepEqual(readHash(hash), settings, hash);
    assert.match(hash, /^#[\w.=&-]+$/, 'a link must not hold what chat programs break it at');
  }
});

test('an empty address gives the defaults, and the defaults an almost empty one', () => {
  assert.deepEqual(readHash(''), defaults);
  assert.equal(writeHash('', defaults), '#v=1');
});

test('keys of others are kept', () => {
  assert.equal(new URLSearchParams(writeHash('#theme=x&seed=3', { ...defaults, seed: 9 }).slice(1)).toString(), 'theme=x&v=1&seed=9');
});

test('nonsense gives the default of its key alone', () => {
  const hash = '#seed=-1&stage=drop&times=0.3&causal=yes&row=99&column=&n=17&text=%%%&d=128';
  assert.deepEqual(readHash(hash), { ...defaults, d: 128 });
});
