// What the benchmark needs beside the project itself: the peers, our package as its users get it, and the native program.
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { whenStale } from '../../build-scripts/fresh.mjs';
import { toolchain, toolchainPlace } from '../../build-scripts/setup.mjs';
import { installerCauses, project, run, step } from '../../build-scripts/steps.mjs';

const here = join(project, 'tests/bench');
const built = join(project, 'build/bench');
const offline = ['--offline', '--no-audit', '--no-fund', '--no-package-lock'];

export async function installPeers() {
  const inputs = ['package.json', 'package-lock.json', '.npmrc'].map((file) => `tests/bench/${file}`);
  const causes = [...installerCauses, [/npm error code EUSAGE/, 'tests/bench/package-lock.json does not belong to its package.json: run "npm install" there.']];
  await whenStale('bench-peers', { inputs, outputs: ['tests/bench/node_modules/.package-lock.json'] }, () =>
    step('Installing the peers', () => run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: here, causes })));
}

/** Packed and installed into build/bench/consumer; resolves to the address of its entry. */
export async function installOurs() {
  const consumer = join(built, 'consumer');
  await rm(consumer, { recursive: true, force: true });
  await mkdir(consumer, { recursive: true });
  await writeFile(join(consumer, 'package.json'), '{ "private": true, "type": "module" }\n');
  const packed = JSON.parse(await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', consumer]));
  await run('npm', ['install', ...offline, `./${packed[0].filename}`], { cwd: consumer });
  return pathToFileURL(join(consumer, 'node_modules/qkv/dist/index.js')).href;
}

/** Builds native/ with what this processor has; resolves to the command that starts it. */
export async function buildNativeProgram() {
  const features = existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8').match(/^flags\s*:(.*)$/m)?.[1].split(' ') ?? [] : [];
  const flags = ['avx2', 'fma'].every((feature) => features.includes(feature)) ? '-mavx2 -mfma' : '';
  const folder = await buildNative('the native program', 'native', flags, []);
  return [toolchain, join(folder, 'native_bench')];
}

/** Eigen's product as WebAssembly, in build/bench/eigen. */
export const buildEigen = () => buildNative('Eigen as WebAssembly', 'eigen', '-msimd128 -mrelaxed-simd', ['emcmake']);

async function buildNative(title, name, flags, before) {
  const folder = join(built, name);
  // CMake would keep the compiler of a toolchain that is no more.
  await whenStale(`bench-${name}`, { inputs: [], outputs: [`build/bench/${name}/build.ninja`], identity: `${toolchainPlace()} ${flags}` }, async () => {
    await rm(folder, { recursive: true, force: true });
    await run(toolchain, [...before, 'cmake', '-S', join(here, 'native'), '-B', folder, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release', `-DQKV_CXX_FLAGS=${flags}`]);
  });
  await step(`Building ${title}`, () => run(toolchain, ['cmake', '--build', folder]));
  return folder;
}
