// `npm run bench`: qkv beside its peers in Node (tests/bench); the table comes to build/bench.md. After "--":
//   --browser     in Chromium and Firefox instead; the table keeps what the other hosts said last
//   --quick       two processes, the main workloads
//   --only=REGEX  those workloads, contestants and hosts whose names match, all of a kind where none does; "costs" are
//                 those besides arithmetic; the table comes to build/bench-only.md
//   --cliffs      attention at every small length and dim instead, to find sizes that cost more than their neighbours
//   --kernels     how near the kernels come to the peak (tests/native/bench) instead; in browsers with --browser too
//   --readme      puts what was measured last into README.md, in short, and measures nothing
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildDist, buildPreset } from './build.mjs';
import { nodeFlags } from './node-flags.mjs';
import { serve } from './serve.mjs';
import { ensureBrowsers, ensureNodeModules, ensureToolchain } from './setup.mjs';
import { Failure, main, project, run, step } from './steps.mjs';
import { sweepCliffs } from '../tests/bench/cliffs.mjs';
import { browserHosts, nodeHosts } from '../tests/bench/hosts.mjs';
import { updateReadme, writeTables } from '../tests/bench/report.mjs';
import { efforts, runHosts } from '../tests/bench/run.mjs';
import { buildEigen, buildNativeProgram, installOurs, installPeers } from '../tests/bench/set-up.mjs';
import { workloads } from '../tests/bench/workloads.mjs';

main(async () => {
  const options = readOptions();
  if (options.readme) return updateReadme();
  await ensureToolchain();
  await ensureNodeModules();
  if (options.kernels) return benchKernels(options);
  if (options.cliffs) return benchCliffs();
  return benchPeers(options);
});

function readOptions() {
  const flags = Object.fromEntries(['browser', 'quick', 'cliffs', 'kernels', 'readme'].map((name) => [name, { type: 'boolean' }]));
  try {
    const { only, ...options } = parseArgs({ options: { ...flags, only: { type: 'string' } } }).values;
    return { ...options, ...(only !== undefined && { only: new RegExp(only) }) };
  } catch (error) {
    throw new Failure(`npm run bench takes "--" and --browser, --quick, --only=REGEX, --cliffs, --kernels or --readme: ${error.message}`);
  }
}

async function benchPeers({ browser, quick, only }) {
  await buildDist();
  await installPeers();
  await installOurs();
  await buildEigen();
  const hosts = browser ? await browserHosts(await ensureBrowsers()) : await nodeHosts(await buildNativeProgram());
  const choose = chooser(only, hosts);
  const effort = quick ? 'quick' : 'full';
  const measured = await step(`Timing, about ${efforts[effort].minutes} minutes at most`, (progress) =>
    runHosts(choose(hosts), efforts[effort], {
      workloads: namesOfWorkloads(quick, only, choose),
      costs: only === undefined || only.test(costsName),
      contestantsOf: (host) => [...new Set([...yardsticks, ...names(choose(named(host.contestants)))])],
    }, (host, process, what) => progress(`${host.name}, process ${process}: ${what}`)));
  console.log(await writeTables(measured.map((host) => ({ ...host, effort })), { keep: only === undefined }));
}

async function benchCliffs() {
  await buildDist();
  console.log(`\n${await sweepCliffs(await installOurs())}`);
}

/** What --only may name beside workloads, contestants and hosts. */
const costsName = 'costs';

function namesOfWorkloads(quick, only, choose) {
  if (only === undefined) return names(workloads.filter(({ main: isMain }) => isMain || !quick));
  return only.test(costsName) && !workloads.some(({ name }) => only.test(name)) ? [] : names(choose(workloads));
}

/** All else is put beside them. */
const yardsticks = ['peak relaxed', 'qkv relaxed'];

const names = (all) => all.map(({ name }) => name);
const named = (all) => all.map((name) => ({ name }));

/** Of a list those whose names match, or all of it where none does. */
function chooser(only, hosts) {
  const matching = (all) => all.filter(({ name }) => only.test(name));
  if (only === undefined) return (all) => all;
  const known = [...workloads, ...hosts, ...named([...hosts[0].contestants, costsName])];
  if (matching(known).length === 0) throw new Failure(`--only=${only.source} matches none of: ${names(known).join('; ')}.`);
  return (all) => (matching(all).length > 0 ? matching(all) : all);
}

const kernelVariants = ['simd', 'relaxed'];

async function benchKernels({ browser }) {
  for (const variant of kernelVariants) await buildPreset(`wasm-${variant}`, 'qkv_bench');
  for (const variant of kernelVariants) {
    console.log(`\n${variant}, Node ${process.versions.node}\n`);
    await run(process.execPath, [...nodeFlags(variant), `build/wasm-${variant}/qkv_bench.js`], { show: true });
  }
  if (browser) await benchKernelsInBrowsers();
}

async function benchKernelsInBrowsers() {
  const { chromium, firefox } = await ensureBrowsers();
  const { default: puppeteer } = await import('puppeteer-core');
  const args = ['--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking'];
  for (const options of [{ executablePath: chromium, args }, { executablePath: firefox, browser: 'firefox' }]) {
    const browser = await puppeteer.launch(options);
    for (const variant of kernelVariants) {
      console.log(`\n${variant}, ${await browser.version()}\n`);
      console.log(await benchKernelsIn(await browser.newPage(), variant));
    }
    await browser.close();
  }
}

// The bench prints to the console and then returns from main.
async function benchKernelsIn(page, variant) {
  const server = await serve(join(project, 'build', `wasm-${variant}`));
  await page.goto(`${server.url}package.json`);
  const lines = await page.evaluate((script) => new Promise((done) => {
    const lines = [];
    globalThis.Module = { print: (line) => lines.push(line), onExit: () => done(lines) };
    const element = document.createElement('script');
    element.src = script;
    document.head.append(element);
  }), `${server.url}qkv_bench.js`);
  await page.close();
  await server.close();
  return lines.join('\n');
}
