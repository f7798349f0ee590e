// The timing view in the browser: real times, the winner rule, cancelling, and a page that stays free.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'puppeteer-core';
import { inEachBrowser, launch, withPage } from './support/browser.js';
import { readProofs, serveSite, untilTimed, type Server } from './support/site.js';

const view = '[data-view="12"]';

interface Row {
  name: string;
  lower: number;
  upper: number;
}

const readRows = (page: Page): Promise<Row[]> =>
  page.$$eval(`${view} [data-contestant]`, (rows) => rows.map((row) => {
    const { contestant, lower, upper } = (row as HTMLElement).dataset;
    return { name: contestant!, lower: Number(lower), upper: Number(upper) };
  }));

inEachBrowser('the timing view', (kind) => {
  let browser: Browser;
  let server: Server;
  before(async () => {
    browser = await launch(kind);
    server = await serveSite();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  test('times all three, checks their results, and names a winner only when quartiles allow', async () => {
    await withPage(browser, kind, `${server.url}#n=16&d=64`, {}, async ({ page, problems }) => {
      assert.equal(await page.$(`${view} [data-proof="time-rnn"]`), null, 'nothing may be timed before the reader comes near');
      await untilTimed(page);
      const proofs = await readProofs(page);
      for (const name of ['attention', 'rnn', 'js-loop']) {
        assert.ok(Number(proofs[`time-${name}`]) > 0, `${name} has to have a time`);
        assert.ok(Number(proofs[`difference-${name}`]) < 1e-5, `${name} is ${proofs[`difference-${name}`]} off: a wrong result must not be timed`);
      }
      const rows = await readRows(page);
      const [attention, rnn] = ['attention', 'rnn'].map((name) => rows.find((row) => row.name === name)!) as [Row, Row];
      const expected = attention.upper < rnn.lower ? 'attention' : rnn.upper < attention.lower ? 'rnn' : 'none';
      assert.equal(await page.$eval(`${view} .verdict`, (verdict) => (verdict as HTMLElement).dataset['winner']), expected);
      assert.match(await page.$eval(`${view} caption`, (caption) => caption.textContent!), /n = 16.*d = 64.*relaxed.*threads?/, 'say what was measured, and on which build');
      assert.deepEqual(problems, []);
    });
  });

  test('measures in another worker where the first stops for good while it loads', async () => {
    await withPage(browser, kind, 'about:blank', {}, async ({ page }) => {
      await page.evaluateOnNewDocument(() => {
        const Real = globalThis.Worker;
        const stuck = 'onmessage = () => { postMessage({ type: "loading" }); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); };';
        globalThis.Worker = class extends Real {
          constructor(url: string | URL, options?: WorkerOptions) {
            // The views above have one of the package's.
            const isFirst = !String(url).includes('worker-side') && !('stuckOnce' in globalThis);
            if (isFirst) Object.assign(globalThis, { stuckOnce: true });
            super(isFirst ? URL.createObjectURL(new Blob([stuck], { type: 'text/javascript' })) : url, options);
          }
        };
      });
      await page.goto(`${server.url}#n=16&d=64`);
      await untilTimed(page);
      assert.ok(await page.evaluate(() => 'stuckOnce' in globalThis), 'the first worker has to be the one that stops');
      assert.ok(Number((await readProofs(page))['time-rnn']) > 0, 'no time came');
    });
  });

  test('can time the sentence’s own vectors', async () => {
    await withPage(browser, kind, `${server.url}#n=16&d=64&input=sentence`, {}, async ({ page }) => {
      await untilTimed(page);
      assert.match(await page.$eval(`${view} caption`, (caption) => caption.textContent!), /your sentence/);
    });
  });

  test('leaves the page free while it measures, and can be cancelled', async () => {
    await withPage(browser, kind, `${server.url}#n=1024&d=256`, {}, async ({ page, problems }) => {
      await page.$eval(view, (section) => section.scrollIntoView({ behavior: 'instant' }));
      await page.waitForSelector(`${view} progress`);
      const longestGap = await page.evaluate(() => new Promise<number>((resolve) => {
        let [last, longest, ticks] = [performance.now(), 0, 0];
        const timer = setInterval(() => {
          const now = performance.now();
          longest = Math.max(longest, now - last);
          last = now;
          if (++ticks < 20) return;
          clearInterval(timer);
          resolve(longest);
        }, 50);
      }));
      assert.ok(longestGap < 1000, `the page stood still for ${longestGap} ms: measure in the worker only`);
      await page.$eval(`${view} button[name="cancel"]`, (button) => (button as HTMLElement).click());
      await page.waitForFunction((selector) => document.querySelector(`${selector} .progress`)!.textContent!.includes('Cancelled'), { timeout: 20_000 }, view);
      assert.equal(await page.$(`${view} [data-proof="time-rnn"]`), null, 'a cancelled run has no result');
      await page.waitForSelector(`${view} button[name="run"]:not([disabled])`);
      assert.deepEqual(problems, []);
    });
  });
});
