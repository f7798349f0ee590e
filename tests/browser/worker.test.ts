// The engine of qkv/worker in a page: right in every build, with threads where the page is isolated, and out of the page's way.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'puppeteer-core';
import { inEachBrowser, launch, openPage } from './support/browser.js';
import { serve, type Server } from './support/site.js';
import { assertRight, testThreadedVariants, type VariantReport, type Wish } from './support/variant-report.js';

const folder = '/build/browser-tests/tests/browser/support';

/** Calls one of the functions that support/ has for pages. */
const inPage = <Result>(page: Page, file: string, name: string, argument: unknown = {}): Promise<Result> =>
  page.evaluate(async (address, called, given) => {
    const functions = await import(address) as Record<string, (given: unknown) => unknown>;
    return functions[called]!(given);
  }, `${folder}/${file}.js`, name, argument) as Promise<Result>;

const runSpawned = (page: Page, wish: Wish): Promise<VariantReport> => inPage(page, 'variant-worker', 'runSpawned', wish);

inEachBrowser('an engine in a worker', (kind) => {
  let browser: Browser;
  before(async () => { browser = await launch(kind); });
  after(() => browser?.close());

  for (const isolated of [true, false]) {
    describe(isolated ? 'of an isolated page' : 'of a page without isolation headers', () => {
      let server: Server;
      let page: Page;
      let problems: string[];
      before(async () => {
        server = await serve('.', { isolated });
        ({ page, problems } = await openPage(browser, kind, `${server.url}tests/browser/support/blank.html`));
      });
      after(async () => {
        await page?.close();
        await server?.close();
      });

      for (const variant of ['simd', 'relaxed'] as const) {
        test(`${variant} is right`, async () => assertRight(await runSpawned(page, { variant }), variant));
      }

      testThreadedVariants(isolated, '', (wish) => runSpawned(page, wish));

      test('the best build is taken, threads included, though a page’s own thread may not have them', async () => {
        const { info } = await runSpawned(page, { threads: 2 });
        assert.equal(info?.variant, isolated ? 'relaxed-mt' : 'relaxed');
        assert.equal(info.threads, isolated ? 2 : 1);
      });

      test('it leaves the page free, keeps the order of calls, cancels, and copies', async () => {
        const { longestGap, ...report } = await inPage<{ longestGap: number } & Record<string, unknown>>(page, 'worker-page', 'useWorker');
        assert.ok(longestGap < 1000, `the page stood still for ${longestGap} ms while the worker computed`);
        assert.deepEqual(report, {
          order: ['attention', 'softmax', 'append', 'length 1'],
          cancelled: 'AbortError',
          detached: [false, true],
          error: ['QkvError', 'SHAPE_MISMATCH', true],
          afterDispose: ['DISPOSED', 'DISPOSED'],
        });
      });

      test('the address of the WebAssembly is relative to the page, and bytes and modules are taken', async () => {
        const variants = await inPage(page, 'worker-page', 'spawnFrom', '../../../dist/qkv-simd.wasm');
        assert.deepEqual(variants, ['simd', 'simd', 'simd']);
      });

      test('a script that is not there is said in a sentence', async () => {
        const message = await inPage(page, 'worker-page', 'spawnWithoutScript');
        assert.equal(message, 'LOAD_FAILED spawn: the worker could not be started: its script could not be loaded.');
      });

      test('nothing of it makes the page complain', () => {
        // The missing script was asked for on purpose.
        assert.deepEqual(problems.filter((problem) => !/worker-side\.js\?gone|404/.test(problem)), []);
      });
    });
  }
});
