// Builds what is out of date: C++ presets, the package in dist/, the site in build/site/. By itself it builds the last two.
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { whenStale } from './fresh.mjs';
import { withLock } from './lock.mjs';
import { ensureNodeModules, ensureToolchain, toolchain, toolchainPlace } from './setup.mjs';
import { main, project, run, step } from './steps.mjs';

export const variants = ['simd', 'relaxed', 'simd-mt', 'relaxed-mt'];

const presetFiles = ['CMakePresets.json', 'build-scripts/toolchain-packages.txt'];

/** Builds one target of a CMake preset; ninja knows what is out of date. */
export async function buildPreset(preset, target) {
  await withLock(join(project, `build/${preset}.lock`), () => step(`Building ${target} (${preset})`, async (progress) => {
    const onLine = (line) => progress(line.match(/^\[\d+\/\d+\]/)?.[0] ?? '');
    await configure(preset);
    await run(toolchain, ['cmake', '--build', `build/${preset}`, '--target', target], { onLine });
  }));
}

// A preset or a toolchain that has changed starts its folder anew: CMake would keep the old compiler.
async function configure(preset) {
  const folder = join(project, 'build', preset);
  const stamp = join(folder, 'configured-for');
  const identity = place();
  const changed = presetFiles.map((file) => statSync(join(project, file)).mtimeMs);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === identity && Math.max(...changed) <= statSync(stamp).mtimeMs) return;
  rmSync(folder, { recursive: true, force: true });
  const emcmake = preset.startsWith('wasm-') ? ['emcmake'] : [];
  await run(toolchain, [...emcmake, 'cmake', '--preset', preset]);
  writeFileSync(stamp, identity);
}

// A build folder belongs to one toolchain and to one place of the checkout.
const place = () => `${toolchainPlace()} ${project}`;

export async function buildDist() {
  const identity = place();
  for (const variant of variants) {
    const inputs = [...presetFiles, 'CMakeLists.txt', 'cpp'];
    // The file and not its folder, which is there as soon as the preset is configured.
    const outputs = [`build/wasm-${variant}/module/${variant.endsWith('-mt') ? 'qkv-mt' : 'qkv'}.wasm`];
    await whenStale(`module-${variant}`, { inputs, outputs, identity }, () => buildPreset(`wasm-${variant}`, 'qkv_module'));
  }
  const modules = variants.map((variant) => `build/wasm-${variant}/module`);
  const inputs = ['package.json', 'package-lock.json', 'tsconfig.json', 'build-scripts/package.mjs', 'web/src', ...modules];
  await whenStale('dist', { inputs, outputs: ['dist/index.js'] }, () =>
    step('Building the package', () => run('node', ['build-scripts/package.mjs'])));
}

export async function buildSite() {
  await buildDist();
  const inputs = ['package-lock.json', 'tsconfig.json', 'NOTICE.md', 'web/site', 'dist'];
  await whenStale('site', { inputs, outputs: ['build/site/index.html'] }, () =>
    step('Building the page', () => run('node_modules/.bin/vite', ['build', 'web/site'])));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(async () => {
    await ensureToolchain();
    await ensureNodeModules();
    await buildSite();
  });
}
