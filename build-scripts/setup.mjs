// Makes sure that everything a build or a test needs is there; quick when nothing is missing.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeBuildRoot } from './build-root.mjs';
import { installPackages } from './debian.mjs';
import { whenStale } from './fresh.mjs';
import { Failure, installerCauses, project, run, step } from './steps.mjs';
import { commandPath, debian, requireSpace } from './system.mjs';

export const toolchain = join(project, 'build-scripts/toolchain');

/** Where C++ is built: "host" or the path of the build root. */
export const toolchainPlace = () => execFileSync(toolchain, ['--where'], { encoding: 'utf8' }).trim();

export async function ensureToolchain() {
  const packages = readFileSync(`${toolchain}-packages.txt`, 'utf8').split('\n').filter((line) => /^[^#]/.test(line));
  const place = toolchainPlace();
  const release = debian()?.release ?? 0;
  const ownEmcc = place === 'host' && !commandPath('emcc').startsWith('/usr/bin/');
  if (release >= 13 && !ownEmcc) return installPackages(packages, 3.5);
  if (place === 'host') return requireBuildTools();
  if (release === 12) return existsSync(place) || makeBuildRoot(place, packages);
  throw new Failure('No emcc 3.1.69 or newer is on PATH: install emscripten, cmake, ninja and clang, or use Debian 12 or 13, where this is done for you.');
}

function requireBuildTools() {
  const tools = { CMake: ['cmake'], Ninja: ['ninja'], 'a C++ compiler': ['clang++-19', 'clang++', 'g++', 'c++'] };
  const missing = Object.keys(tools).filter((tool) => !tools[tool].some(commandPath));
  if (missing.length > 0) throw new Failure(`Beside emcc the build needs ${missing.join(' and ')} on PATH: install what is missing and try again.`);
}

const npmCauses = [
  ...installerCauses,
  [/npm error code EUSAGE/, 'package-lock.json does not belong to package.json: run "npm install" and commit both.'],
];

export async function ensureNodeModules() {
  const inputs = ['package.json', 'package-lock.json'];
  await whenStale('node-modules', { inputs, outputs: ['node_modules/.package-lock.json'] }, async () => {
    requireSpace(project, 0.5, 'Installing the npm packages');
    await step('Installing the npm packages', (progress) => {
      let answers = 0;
      const onLine = (line) => line.startsWith('npm http') && progress(`${answers += 1} downloads`);
      // With the shorter wait a network that is not there is noticed within seconds.
      const options = ['--no-audit', '--no-fund', '--loglevel=http', '--fetch-retry-mintimeout=1000'];
      return run('npm', ['ci', ...options], { onLine, causes: npmCauses });
    });
  });
}

/** The paths of the browsers that are there: CHROMIUM and FIREFOX from the environment, or the usual names on PATH. */
export function findBrowsers() {
  const first = (names) => names.map(commandPath).find(Boolean);
  return {
    chromium: process.env.CHROMIUM ?? first(['chromium', 'google-chrome', 'google-chrome-stable']),
    firefox: process.env.FIREFOX ?? first(['firefox-esr', 'firefox']),
  };
}

/** Installs the browsers where they are missing; returns their paths. */
export async function ensureBrowsers() {
  const { chromium, firefox } = findBrowsers();
  if (chromium && firefox) return { chromium, firefox };
  if (!debian()) throw new Failure('Chromium or Firefox is missing: install both, or name their programs in CHROMIUM and FIREFOX.');
  await installPackages(['chromium', 'firefox-esr'], 1);
  return findBrowsers();
}
