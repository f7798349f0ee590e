// Makes dist/, the npm package: the four WebAssembly files, their glue, the bundled entries and the
// type declarations. The WebAssembly modules must be built already (build.mjs sees to that).
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rolldown } from 'rolldown';
import { minify } from 'rolldown/experimental';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const VARIANTS = ['simd', 'relaxed', 'simd-mt', 'relaxed-mt'];

const glueName = (variant) => (variant.endsWith('-mt') ? 'qkv-mt' : 'qkv');
const moduleFile = (variant, extension) =>
  join(root, 'build', `wasm-${variant}`, 'module', `${glueName(variant)}.${extension}`);

/** One glue serves both builds of a thread mode, as long as they really agree. */
function readGlue(simd, relaxed) {
  const glue = readFileSync(moduleFile(simd, 'js'), 'utf8');
  if (readFileSync(moduleFile(relaxed, 'js'), 'utf8') !== glue) {
    throw new Error(`The glue of ${simd} and ${relaxed} differs, so one file cannot serve both: compare the two in build/.`);
  }
  return glue;
}

// What the glue does otherwise than we need; each has to be found, or the glue has changed.
const GLUE_CHANGES = [
  // load() brings the module: bundlers would look for a file of this name.
  [/new URL\("qkv(-mt)?\.wasm",import\.meta\.url\)\.href/g, '""'],
  // A page that has its engine in a worker leaves it out: bundlers need to know that they may.
  [/var Module = \(/, 'var Module = /* @__PURE__ */ ('],
];
const THREADED_GLUE_CHANGES = [
  ...GLUE_CHANGES,
  // Bundlers follow import("module") and fail to find it for a page; Node needs no import for it.
  [/await import\((["'])(module|worker_threads)\1\)/g, 'process.getBuiltinModule("$2")'],
  // Whoever loads the package keeps the globals that Node has. Bundlers want the worker's options as a
  // literal. A worker of Node would inherit flags that only a program may have, such as --input-type.
  [/global\.Worker=worker_threads\.Worker;/g, ''],
  [/var workerOptions=\{.*?\};worker=new Worker\(new URL\("qkv-mt\.js",import\.meta\.url\),workerOptions\)/g,
    'worker=ENVIRONMENT_IS_NODE' +
    '?new worker_threads.Worker(new URL(import.meta.url),{workerData:"em-pthread",name:"em-pthread",execArgv:[]})' +
    ':new Worker(new URL("qkv-mt.js",import.meta.url),{type:"module",name:"em-pthread"})'],
  // Node 20 loses a wake-up now and then where a thread waits in both ways; nothing here needs this one.
  [/typeof Atomics\.waitAsync==="function"/g, 'false'],
  // A worker that fails would end the whole process, or the worker that started it; load() falls back to one
  // thread instead.
  [/worker\.onerror=e=>\{.*?throw e\}/g, 'worker.onerror=e=>{e.preventDefault?.();Module["onWorkerError"](e)}'],
];

function changed(glue, changes) {
  for (const [pattern, replacement] of changes) {
    if (glue.search(pattern) < 0) throw new Error(`The glue no longer holds ${pattern}: read it and mend package.mjs.`);
    glue = glue.replace(pattern, replacement);
  }
  return glue;
}

async function minified(name, code) {
  const result = await minify(name, code, { module: true, compress: true, mangle: true });
  if (result.errors.length > 0) throw new Error(`${name}: ${result.errors[0].message}`);
  return result.code;
}

/** A custom section at the end, by which load() knows what it was given. */
function stamped(wasm, variant) {
  const text = (string) => [string.length, ...Buffer.from(string)];
  const content = [...text('qkv'), ...Buffer.from(`${version} ${variant}`)];
  return Buffer.concat([wasm, Buffer.from([0, content.length, ...content])]);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(join(dist, 'glue'), { recursive: true });
for (const variant of VARIANTS) {
  writeFileSync(join(dist, `qkv-${variant}.wasm`), stamped(readFileSync(moduleFile(variant, 'wasm')), variant));
}
// The glue without threads is part of the entry; the threaded one is its workers' script as well, so
// it stays a file.
const glue = join(root, 'build', 'glue', 'qkv.js');
mkdirSync(dirname(glue), { recursive: true });
writeFileSync(glue, changed(readGlue('simd', 'relaxed'), GLUE_CHANGES));
writeFileSync(join(dist, 'glue', 'qkv-mt.js'), await minified('qkv-mt.js', changed(readGlue('simd-mt', 'relaxed-mt'), THREADED_GLUE_CHANGES)));

/** Bundles web/src/NAME.ts into dist/NAME.js; `elsewhere` gives the file of an import that is no part of it. */
async function writeScript(name, elsewhere) {
  const bundle = await rolldown({
    input: join(root, 'web', 'src', `${name}.ts`),
    platform: 'neutral',
    plugins: [{
      name: 'elsewhere',
      resolveId: (id) => {
        const file = elsewhere[id];
        return file?.startsWith('./') ? { id: file, external: 'relative' } : file;
      },
    }],
    transform: { define: { QKV_VERSION: JSON.stringify(version) } },
  });
  // The names of classes are in messages.
  const minify = { compress: true, mangle: { keepNames: { class: true, function: false } }, codegen: true };
  const { output: [{ code }] } = await bundle.generate({ format: 'es', minify });
  await bundle.close();
  // Not all bundlers read in backticks what they look for.
  const quoted = code.replace(/`([^`$]+)`(?=,import\.meta\.url\))/g, '"$1"').replaceAll('{type:`module`}', '{type:"module"}');
  writeFileSync(join(dist, `${name}.js`), quoted);
}

await writeScript('index', { './glue/qkv.js': glue, './glue/qkv-mt.js': './glue/qkv-mt.js' });
// The worker's two sides and the tasks take from the entry what is exported there, so that the package has one engine
// and one QkvError.
const entry = { './index.js': './index.js', './errors.js': './index.js' };
await writeScript('worker', entry);
await writeScript('worker-side', entry);
await writeScript('tasks', entry);
execFileSync(process.execPath, [join(root, 'node_modules', '.bin', 'tsc'), '-p', join(root, 'web', 'src')], { stdio: 'inherit' });
