// `npm run bench`: how near the kernels come to the peak of this machine, in Node; with `-- --browser`
// in Chromium and Firefox too. tests/native/bench says what is measured.
import { join } from 'node:path';
import { buildPreset } from './build.mjs';
import { nodeFlags } from './node-flags.mjs';
import { serve } from './serve.mjs';
import { ensureBrowsers, ensureNodeModules, ensureToolchain } from './setup.mjs';
import { Failure, main, project, run } from './steps.mjs';

const variants = ['simd', 'relaxed'];

main(async () => {
  const [option, ...rest] = process.argv.slice(2);
  if (rest.length > 0 || (option !== undefined && option !== '--browser')) {
    throw new Failure('npm run bench takes "-- --browser" and nothing else.');
  }
  await ensureToolchain();
  for (const variant of variants) await buildPreset(`wasm-${variant}`, 'qkv_bench');
  for (const variant of variants) {
    console.log(`\n${variant}, Node ${process.versions.node}\n`);
    await run(process.execPath, [...nodeFlags(variant), `build/wasm-${variant}/qkv_bench.js`], { show: true });
  }
  if (option === '--browser') await benchInBrowsers();
});

async function benchInBrowsers() {
  await ensureNodeModules();
  const { chromium, firefox } = await ensureBrowsers();
  const { default: puppeteer } = await import('puppeteer-core');
  const args = ['--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking'];
  for (const options of [{ executablePath: chromium, args }, { executablePath: firefox, browser: 'firefox' }]) {
    const browser = await puppeteer.launch(options);
    for (const variant of variants) {
      console.log(`\n${variant}, ${await browser.version()}\n`);
      console.log(await benchIn(await browser.newPage(), variant));
    }
    await browser.close();
  }
}

// The bench prints to the console and then returns from main.
async function benchIn(page, variant) {
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
