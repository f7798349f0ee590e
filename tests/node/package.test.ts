// What is in the tarball, how large it is, and that its two sides agree.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

const root = new URL('../', import.meta.resolve('qkv'));
const kB = 1000;

const files = (await readdir(root, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name));
const sizeOf = async (paths: string[]) =>
  (await Promise.all(paths.map(async (path) => gzipSync(await readFile(path), { level: 9 }).length))).reduce((a, b) => a + b, 0);

test('the tarball holds the four builds, their glue, declarations, README and licence, and nothing else', () => {
  const names = files.map((path) => basename(path));
  for (const name of ['qkv-simd.wasm', 'qkv-relaxed.wasm', 'qkv-simd-mt.wasm', 'qkv-relaxed-mt.wasm', 'index.js', 'worker.js', 'worker-side.js', 'tasks.js', 'qkv-mt.js', 'index.d.ts', 'worker.d.ts', 'tasks.d.ts', 'README.md', 'LICENSE', 'NOTICE.md']) {
    assert.ok(names.includes(name), `${name} is missing from the tarball: look at "files" in package.json and at package.mjs`);
  }
  const others = names.filter((name) => !/\.(wasm|js|d\.ts)$|^(README\.md|LICENSE|NOTICE\.md|CHANGELOG\.md|package\.json)$/.test(name));
  assert.deepEqual(others, [], 'the tarball holds files that nobody asked for');
});

test('the package stays small', async (t) => {
  for (const path of files.filter((name) => name.endsWith('.wasm'))) {
    const size = await sizeOf([path]);
    t.diagnostic(`${basename(path)}: ${size} bytes gzip`);
    assert.ok(size <= 90 * kB, `${basename(path)} has ${size} bytes gzip, at most ${90 * kB} are allowed`);
  }
  const scripts = files.filter((name) => name.endsWith('.js'));
  const [all, engine] = [await sizeOf(scripts), await sizeOf(scripts.filter((name) => !/^(worker|tasks)/.test(basename(name))))];
  t.diagnostic(`all JavaScript: ${all} bytes gzip, ${engine} of them without the worker's two sides and the tasks`);
  assert.ok(engine <= 40 * kB, `the engine's JavaScript has ${engine} bytes gzip, at most ${40 * kB} are allowed`);
  assert.ok(all <= 48 * kB, `the JavaScript has ${all} bytes gzip, at most ${48 * kB} are allowed`);
});

test('the README says what there is to download', async () => {
  const readme = await readFile(new URL('README.md', root), 'utf8');
  const said = readme.match(/(\d+) kB to download \(gzip, JavaScript included; (\d+) kB with threads\)/);
  assert.ok(said, 'the README no longer says "... kB to download (gzip, JavaScript included; ... kB with threads)"');
  const downloads = [['index.js', 'qkv-simd.wasm'], ['index.js', 'qkv-mt.js', 'qkv-simd-mt.wasm']];
  for (const [i, names] of downloads.entries()) {
    const size = await sizeOf(files.filter((path) => names.includes(basename(path))));
    assert.ok(Math.abs(Number(said[i + 1]) - size / kB) < 3, `${names.join(', ')} have ${size} bytes gzip; the README says ${said[i + 1]} kB`);
  }
});

test('the worker’s two sides take the engine from the entry, and bundlers find the script', async () => {
  for (const name of ['worker.js', 'worker-side.js']) {
    const path = files.find((file) => basename(file) === name)!;
    assert.match(await readFile(path, 'utf8'), /from"\.\/index\.js"/, `${name} has to import the entry`);
    const size = await sizeOf([path]);
    assert.ok(size <= 3 * kB, `${name} has ${size} bytes gzip: does it hold a copy of the engine?`);
  }
  const client = await readFile(files.find((file) => basename(file) === 'worker.js')!, 'utf8');
  assert.ok(client.includes('new Worker(new URL("./worker-side.js",import.meta.url),{type:"module"})'), 'bundlers look for these words');
});

test('the tasks take an error’s class from the entry, and nothing else', async () => {
  const path = files.find((file) => basename(file) === 'tasks.js')!;
  const imports = (await readFile(path, 'utf8')).match(/import[^;]*from\s*["'][^;]*;/g) ?? [];
  assert.deepEqual(imports.map((line) => line.replace(/ as \w+/, '')), ['import{QkvError}from"./index.js";']);
  const size = await sizeOf([path]);
  assert.ok(size <= 4 * kB, `tasks.js has ${size} bytes gzip: does it hold a part of the engine?`);
});

test('no script makes code from strings, names a Node module to import, or knows a path of the builder', async () => {
  for (const path of files.filter((name) => name.endsWith('.js'))) {
    const code = await readFile(path, 'utf8');
    for (const banned of [/\beval\(/, /\bnew Function\b/, /\bimport\((?!`\.\/glue\/qkv-mt\.js`|"\.\/glue\/qkv-mt\.js")/, /\/(root|home|work|tmp)\//]) {
      assert.doesNotMatch(code, banned, `${basename(path)} holds ${banned}`);
    }
  }
});
