// For everyone: axe in light and dark, all by keyboard, room for a finger, a narrow screen, less motion.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { KeyInput, Page } from 'puppeteer-core';
import { inEachBrowser, launch, withPage } from './support/browser.js';
import { chooseStage, click, project, readProofs, readSelected, serveSite, untilComputed, untilTimed, type Server } from './support/site.js';

const axeSource = readFileSync(`${project}node_modules/axe-core/axe.min.js`, 'utf8');

interface Axe {
  run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
}

async function violations(page: Page): Promise<string[]> {
  await page.addScriptTag({ content: axeSource });
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: Axe };
    const { violations: found } = await axe.run();
    return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary ?? ''}`));
  });
}

/** The name of what has the focus, as a test can compare it. */
const focused = (page: Page): Promise<string> => page.evaluate(() => {
  const element = document.activeElement!;
  return `${element.localName}.${element.className}[${element.getAttribute('name') ?? element.getAttribute('href') ?? element.textContent?.trim().slice(0, 30)}]`;
});

/** Clicks one of the buttons that run the two machines, and waits until the page shows what came of it. */
const clickTransport = (page: Page, name: string): Promise<void> => page.$$eval('.transport button', async (buttons, text) => {
  (buttons.find((button) => button.textContent!.trim() === text) as HTMLElement).click();
  await new Promise(requestAnimationFrame);
}, name);

inEachBrowser('accessibility', (kind) => {
  let server: Server;
  before(async () => { server = await serveSite(); });
  after(() => server?.close());

  for (const scheme of ['light', 'dark'] as const) {
    test(`axe finds nothing in ${scheme}`, async () => {
      const browser = await launch(kind, { scheme });
      try {
        await withPage(browser, kind, `${server.url}#n=16`, { scheme }, async ({ page }) => {
          await untilComputed(page);
          assert.equal(await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches), scheme === 'dark', 'the browser has to take the scheme');
          await untilTimed(page);
          await click(page, 'button[name="table"]');
          await page.waitForSelector('.table-twin');
          assert.deepEqual(await violations(page), []);
          await chooseStage(page, 'project');
          await page.waitForSelector('input[name="matrix"]');
          assert.deepEqual(await violations(page), []);
        });
      } finally {
        await browser.close();
      }
    });
  }

  test('the keyboard reaches and works everything', async () => {
    const browser = await launch(kind);
    try {
      await withPage(browser, kind, `${server.url}#n=16`, {}, async ({ page }) => {
        await untilTimed(page);
        const visited = new Set<string>();
        await page.focus('.skip');
        await page.keyboard.press('Enter');
        assert.equal(await page.evaluate(() => document.activeElement!.id), 'heading-00', 'the first link leads past the header');
        await page.focus('.skip');
        // Up to the page's last link, and not on into the browser's own buttons.
        for (let i = 0; i < 60 && !(await page.evaluate(() => document.activeElement!.matches('footer > p:last-child a'))); i++) {
          await page.keyboard.press('Tab');
          visited.add(await focused(page));
        }
        for (const stop of ['a.[#view=06]', 'input.[sentence]', 'summary.', 'button.primary[Play again]', 'button.[Reset]', 'select.[projection]',
          'input.[stage]', 'div.cells', 'select.[row]', 'select.[column]', 'button.[table]', 'select.[n]', 'button.primary[run]', 'a.[./notices.txt]']) {
          assert.ok([...visited].some((name) => name.startsWith(stop)), `Tab has to reach ${stop}; it reached ${[...visited].join(', ')}`);
        }
        await page.focus('.cells');
        const press = async (key: KeyInput): Promise<string[]> => { await page.keyboard.press(key); return readSelected(page); };
        assert.deepEqual((await press('Home')).slice(0, 2), ['9 it', '1 the']);
        assert.deepEqual((await press('ArrowRight')).slice(0, 2), ['9 it', '2 animal']);
        assert.deepEqual((await press('ArrowUp')).slice(0, 2), ['8 because', '2 animal']);
        assert.deepEqual((await press('PageDown')).slice(0, 2), ['12 tired', '2 animal']);
        assert.deepEqual((await press('End')).slice(0, 2), ['12 tired', '12 tired']);
        assert.deepEqual((await press('PageUp')).slice(0, 2), ['1 the', '12 tired']);
        const largest = await press('m');
        assert.equal(largest[3], '1 of 12', 'M leads to the largest number of the row');
        await page.waitForFunction(() => document.querySelector('live-region')!.textContent!.includes('the, the'));
        await page.focus('button[name="table"]');
        await page.keyboard.press('Enter');
        await page.waitForSelector('.table-twin tbody tr:nth-child(12)');
      });
    } finally {
      await browser.close();
    }
  });

  test('play, pause, step and reset count what really ran', async () => {
    const browser = await launch(kind);
    try {
      await withPage(browser, kind, server.url, {}, async ({ page }) => {
        await untilComputed(page);
        const steps = async (): Promise<(string | undefined)[]> => {
          const proofs = await readProofs(page);
          return [proofs['attention-steps'], proofs['rnn-steps']];
        };
        await clickTransport(page, 'Reset');
        assert.deepEqual(await steps(), ['0', '0']);
        for (let i = 0; i < 7; i++) await clickTransport(page, 'Step');
        assert.deepEqual(await steps(), ['5', '7'], 'attention is done after its five stages, the RNN is not');
        await clickTransport(page, 'Reset');
        const started = Date.now();
        await clickTransport(page, 'Play');
        await page.waitForFunction(() => document.querySelector('[data-proof="rnn-steps"]')!.getAttribute('data-value') === '12', { timeout: 10_000 });
        assert.ok(Date.now() - started < 8000, 'a whole play has to end within about five seconds');
        assert.deepEqual(await steps(), ['5', '12']);
      });
    } finally {
      await browser.close();
    }
  });

  test('a phone 360 pixels wide has no sideways scroll, and room for a finger', async () => {
    const browser = await launch(kind);
    try {
      await withPage(browser, kind, `${server.url}#n=16`, { width: 360 }, async ({ page }) => {
        await untilComputed(page);
        await untilTimed(page);
        await click(page, 'button[name="table"]');
        for (const stage of ['project', 'score', 'scale', 'softmax', 'mix']) {
          await chooseStage(page, stage);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= 360, `at stage ${stage} the page is ${wide} pixels wide: let the wide part pan in its own box`);
        }
        const small = await page.$$eval('button, select, summary, input[type="text"], input[type="number"], input[type="range"], label:has(input[type="radio"]), label:has(input[type="checkbox"]), nav a',
          (elements) => elements.filter((element) => element.getBoundingClientRect().height < 44).map((element) => element.outerHTML.slice(0, 80)));
        assert.deepEqual(small, [], 'give these at least 44 pixels');
      });
    } finally {
      await browser.close();
    }
  });

  test('with less motion there are steps only, and nothing moves', async () => {
    const browser = await launch(kind, { reducedMotion: true });
    try {
      await withPage(browser, kind, server.url, { reducedMotion: true }, async ({ page }) => {
        await untilComputed(page);
        assert.equal(await page.evaluate(() => matchMedia('(prefers-reduced-motion: reduce)').matches), true, 'the browser has to take the wish');
        const names = await page.$$eval('.transport button', (buttons) => buttons.map((button) => button.textContent!.trim()));
        assert.deepEqual(names, ['Step', 'Reset']);
        await clickTransport(page, 'Reset');
        await clickTransport(page, 'Step');
        assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
      });
    } finally {
      await browser.close();
    }
  });
});
