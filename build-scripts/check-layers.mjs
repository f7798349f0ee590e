// Who may include or import whom, as tests: a broken rule is named with its file and line.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

// In files below `where`, a line that matches `line` has to match one of `allowed`.
const RULES = [
  { where: 'cpp/include', line: /^#include/, allowed: [/"qkv\//, /<[a-z_]+>/], why: 'public headers include no third-party header and nothing of src' },
  { where: 'cpp/src/kernels', line: /^#include/, allowed: [/"kernels\//, /"qkv\/(view|mask)\.hpp"/, /<[a-z_]+>/, /<xsimd\/xsimd\.hpp>/, /<wasm_simd128\.h>/], why: 'kernels include kernels and plain views only' },
  { where: 'cpp/src', line: /<(xsimd|wasm_simd128|emscripten)/, allowed: [], except: /kernels\/simd\.hpp$/, why: 'only kernels/simd.hpp knows the instruction set' },
  { where: 'cpp/src', line: /<Eigen/, allowed: [], why: 'Eigen is the tests\' oracle, and no part of the core' },
  { where: 'web/src', line: /\.buffer\b/, allowed: [], except: /(memory|wasm-source|safetensors|tensor|worker-arguments|worker-side)\.ts$/, why: 'only memory.ts touches the heap' },
  { where: 'web/src/tasks', line: /^import (?!type)|^export .* from/, allowed: [/'\.\/[\w-]+\.js'/, /'\.\.\/(arguments|random|tensor)\.js'/], why: 'tasks know nothing of the engine but checks and random numbers' },
  { where: 'web/site', line: /from '[^']*(web\/src|dist\/|\.\.\/\.\.\/src)/, allowed: [], why: 'the page imports the package by its name' },
  { where: 'tests/node', line: /from '(?!qkv(\/(worker|tasks))?'|node:|\.\.?\/)|from '[^']*\/(web|dist|build-scripts|cpp)\//, allowed: [], why: 'Node tests import the installed package' },
];

const filesBelow = (folder) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(hpp|cpp|ts)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));

for (const { where, line, allowed, except, why } of RULES) {
  test(`${where}: ${why}`, () => {
    const files = filesBelow(where).filter((file) => !except?.test(file));
    const broken = files.flatMap((file) =>
      readFileSync(file, 'utf8').split('\n').flatMap((text, i) =>
        line.test(text) && !allowed.some((pattern) => pattern.test(text)) ? [`${file.slice(root.length)}:${i + 1}: ${text.trim()}`] : []));
    assert.ok(files.length > 0, `${where} holds no sources: has it moved?`);
    assert.deepEqual(broken, [], why);
  });
}
