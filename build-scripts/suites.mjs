// The test suites of each layer: what each needs built, and how it is run.
import { readFileSync, existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildDist, buildPreset, buildSite, variants } from './build.mjs';
import { whyNotCounted } from './count-instructions.mjs';
import { nodeFlags } from './node-flags.mjs';
import { ensureBrowsers, ensureNodeModules, ensureToolchain, findBrowsers, toolchain } from './setup.mjs';
import { Failure, project, run, runAny, step } from './steps.mjs';

/** Each layer's set-up steps and suites; a suite's `run` builds it and resolves to what runAny gives, `skip` says why not to, as { skip } of its result does. */
export const layers = {
  native: {
    setUp: [ensureToolchain],
    suites: [
      { name: 'layers', run: () => runAny(process.execPath, [...nodeTest, 'build-scripts/check-layers.mjs'], { show: true, timeoutSeconds: 60 }) },
      native('native'),
      { name: 'instructions', run: checkInstructions },
      { ...native('native-avx2'), skip: cpuHas('avx2', 'fma') ? undefined : 'this CPU has no AVX2 and FMA' },
      native('asan'),
      native('tsan'),
    ],
  },
  node: {
    setUp: [ensureToolchain, ensureNodeModules],
    suites: [
      { name: 'docs', run: () => runAny(process.execPath, [...nodeTest, 'build-scripts/check-docs.mjs'], { show: true, timeoutSeconds: 120 }) },
      ...variants.map(wasm),
      ...variants.map(installed),
    ],
  },
  browser: {
    setUp: [ensureToolchain, ensureNodeModules, ensureBrowsers],
    suites: [{ name: 'browser', run: runBrowserTests }],
  },
};

const nodeTest = ['--test', '--test-reporter=spec'];

function native(preset) {
  return {
    name: preset,
    run: async () => {
      await buildPreset(preset, 'qkv_tests');
      return runAny(toolchain, [`build/${preset}/qkv_tests`], { show: true, timeoutSeconds: 300 });
    },
  };
}

async function checkInstructions() {
  const skip = await whyNotCounted();
  return skip ? { skip } : runAny(process.execPath, [...nodeTest, 'build-scripts/check-instructions.mjs'], { show: true, timeoutSeconds: 120 });
}

function wasm(variant) {
  return {
    name: `wasm-${variant}`,
    run: async () => {
      await buildPreset(`wasm-${variant}`, 'qkv_tests');
      return runNode(variant, [`build/wasm-${variant}/qkv_tests.js`, '--no-colors']);
    },
  };
}

function installed(variant) {
  return {
    name: `package-${variant}`,
    run: async () => runNode(variant, [...nodeTest, ...await installedTests()]),
  };
}

function runNode(variant, args) {
  return runAny(process.execPath, [...nodeFlags(variant), ...args], { show: true, timeoutSeconds: 300, env: { QKV_VARIANT: variant } });
}

// The package as its users get it: packed, and installed into an empty folder. Once for all variants.
let installation;
const installedTests = () => installation ??= install();

async function install() {
  await buildDist();
  const consumer = join(project, 'build/consumer');
  return step('Installing the package into an empty folder', async () => {
    await rm(consumer, { recursive: true, force: true });
    await mkdir(consumer, { recursive: true });
    await writeFile(join(consumer, 'package.json'), '{ "private": true, "type": "module" }\n');
    const packed = JSON.parse(await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', consumer]));
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${packed[0].filename}`], { cwd: consumer });
    return compileTests('tests/node', 'build/consumer/tests');
  });
}

async function runBrowserTests() {
  await buildSite();
  const files = await step('Compiling the browser tests', () => compileTests('tests/browser', 'build/browser-tests'));
  const { chromium, firefox } = findBrowsers();
  const env = { CHROMIUM: chromium, FIREFOX: firefox };
  return runAny(process.execPath, [...nodeTest, '--test-concurrency=1', ...files], { show: true, timeoutSeconds: 600, env });
}

// Resolves to the compiled test files.
async function compileTests(source, output) {
  await rm(join(project, output), { recursive: true, force: true });
  await run('node_modules/.bin/tsc', ['-p', `${source}/tsconfig.json`]);
  const files = (await readdir(join(project, output), { recursive: true })).filter((name) => /\.(test|spec)\.js$/.test(name));
  // Without a name, node would look for tests in all of the project.
  if (files.length === 0) throw new Failure(`${source} has no test: its tsconfig.json has to compile *.test.ts into ${output}.`);
  return files.sort().map((name) => join(output, name));
}

function cpuHas(...features) {
  const info = existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8') : '';
  const flags = info.match(/^flags\s*:(.*)$/m)?.[1].split(' ') ?? [];
  return features.every((feature) => flags.includes(feature));
}
