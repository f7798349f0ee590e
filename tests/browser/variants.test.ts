// Every build of the package that the browser can run is run, in a worker and on the page's own thread.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'puppeteer-core';
import { inEachBrowser, launch, openPage } from './support/browser.js';
import { serve, type Server } from './support/site.js';
import { assertRight, testThreadedVariants, type VariantReport, type Wish } from './support/variant-report.js';

const script = '/build/browser-tests/tests/browser/support/variant-worker.js';

const runInWorker = (page: Page, wish: Wish): Promise<VariantReport> =>
  page.evaluate((address, message) => new Promise<VariantReport>((resolve, reject) => {
    const worker = new Worker(address, { type: 'module' });
    worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); };
    worker.onerror = (event) => reject(new Error(event.message || `${address} could not be started`));
    worker.postMessage(message);
  }), script, wish);

const runOnPage = (page: Page, wish: Wish): Promise<VariantReport> =>
  page.evaluate(async (address, message) => (await import(address) as { runVariant(wish: Wish): Promise<VariantReport> }).runVariant(message), script, wish);

inEachBrowser('the package', (kind) => {
  let browser: Browser;
  before(async () => { browser = await launch(kind); });
  after(() => browser?.close());

  for (const isolated of [true, false]) {
    describe(isolated ? 'on an isolated page' : 'on a page without isolation headers', () => {
      let server: Server;
      let page: Page;
      before(async () => {
        server = await serve('.', { isolated });
        ({ page } = await openPage(browser, kind, `${server.url}tests/browser/support/blank.html`));
      });
      after(async () => {
        await page?.close();
        await server?.close();
      });

      for (const variant of ['simd', 'relaxed'] as const) {
        test(`${variant} is right in a worker`, async () => assertRight(await runInWorker(page, { variant }), variant));
        test(`${variant} is right on the page's own thread`, async () => assertRight(await runOnPage(page, { variant }), variant));
      }

      testThreadedVariants(isolated, ' in a worker', (wish) => runInWorker(page, wish));

      test('the best build is taken, and the reason says why not a better one', async () => {
        const { info: worker } = await runInWorker(page, { threads: 2 });
        assert.equal(worker?.variant, isolated ? 'relaxed-mt' : 'relaxed');
        if (!isolated) assert.match(worker.reason ?? '', /isolated/);
        const { info: own } = await runOnPage(page, { threads: 2 });
        assert.equal(own?.variant, 'relaxed');
        assert.match(own.reason ?? '', isolated ? /main thread/ : /isolated/);
      });
    });
  }
});
