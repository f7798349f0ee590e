// The matrix of view 6 under the pointer, and the arithmetic of its cells.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'puppeteer-core';
import { inEachBrowser, launch, withPage } from './support/browser.js';
import { chooseStage, readProofs, readSelected, serveSite, untilComputed, type Server } from './support/site.js';

/** The middle of a cell on the screen. */
async function cellPoint(page: Page, row: number, column: number): Promise<{ x: number; y: number }> {
  return page.$eval('.cells canvas', (canvas, at) => {
    canvas.scrollIntoView({ behavior: 'instant', block: 'center' });
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return { x: left + ((at.column + 0.5) * width) / 12, y: top + ((at.row + 0.5) * height) / 12 };
  }, { row, column });
}

const choose = (page: Page, name: 'row' | 'column', index: number): Promise<void> =>
  page.$eval(`select[name="${name}"]`, (element, chosen) => {
    (element as HTMLSelectElement).selectedIndex = chosen;
    element.dispatchEvent(new Event('change', { bubbles: true }));
  }, index);

inEachBrowser('the matrix', (kind) => {
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

  test('hovering previews a cell, leaving goes back, a click pins', async () => {
    await withPage(browser, kind, server.url, {}, async ({ page }) => {
      await untilComputed(page);
      const before = await readSelected(page);
      const { x, y } = await cellPoint(page, 1, 4);
      await page.mouse.move(x, y);
      await page.waitForFunction(() => document.querySelector('.read-out dd')!.textContent === '2 animal');
      assert.equal((await readSelected(page))[1], '5 cross');
      await page.mouse.move(2, y);
      await page.waitForFunction((row) => document.querySelector('.read-out dd')!.textContent === row, {}, before[0]!);
      await page.mouse.click(x, y);
      await page.mouse.move(2, y);
      assert.deepEqual((await readSelected(page)).slice(0, 2), ['2 animal', '5 cross'], 'a pinned cell stays');
      await page.waitForFunction(() => location.hash.includes('row=1') && location.hash.includes('column=4'));
    });
  });

  test('each cell’s sum agrees with the engine, through random projections, positions and a causal mask', async () => {
    await withPage(browser, kind, `${server.url}#projection=random&positions=1&causal=1&seed=3`, {}, async ({ page, problems }) => {
      await untilComputed(page);
      for (const stage of ['project', 'score', 'scale', 'softmax', 'mix']) {
        await chooseStage(page, stage);
        for (const [row, column] of [[0, 0], [3, 1], [11, 11], [2, 7]] as const) {
          await choose(page, 'row', row);
          await choose(page, 'column', column);
          const difference = Number((await readProofs(page))['cell-difference']);
          const engine = await page.$eval('.read-out [data-value]', (value) => Number(value.getAttribute('data-value')));
          const largest = await page.$eval('.colour-bar .ticks span:last-child', (tick) => Number(tick.textContent));
          assert.ok(Math.abs(difference) <= 1e-6 * largest, `${stage}, row ${row}, column ${column}: ${engine} is ${difference} off`);
          if (stage === 'softmax' && column > row) assert.equal(engine, 0, 'no word sees a later one');
        }
      }
      assert.ok(Number((await readProofs(page))['largest-difference']) < 1e-6);
      assert.deepEqual(problems, []);
    });
  });
});
