// Where the built page is, how to serve it, and how to talk to it.
import { fileURLToPath } from 'node:url';
import type { Page } from 'puppeteer-core';

/** The checkout, seen from build/browser-tests/tests/browser/support. */
export const project = fileURLToPath(new URL('../../../../../', import.meta.url));

export interface Server {
  url: string;
  close(): Promise<void>;
}

interface ServeOptions {
  isolated?: boolean;
  base?: string;
  refuse?: (path: string) => boolean;
}

export async function serve(folder: string, options: ServeOptions = {}): Promise<Server> {
  const script = new URL('../../../../../build-scripts/serve.mjs', import.meta.url).href;
  const module = await import(script) as { serve(folder: string, options: ServeOptions): Promise<Server> };
  return module.serve(`${project}${folder}`, options);
}

export const serveSite = (options?: ServeOptions): Promise<Server> => serve('build/site', options);

/** Waits until the views show numbers of their own. */
export async function untilComputed(page: Page): Promise<void> {
  await page.waitForSelector('[data-view="00"] [data-proof="rnn-difference"]:not([data-value=""])');
  await page.waitForSelector('[data-view="06"] matrix-heatmap canvas');
}

/** Scrolls to the timing view, which starts its first run, and waits for the times. */
export async function untilTimed(page: Page): Promise<void> {
  await untilComputed(page);
  await page.$eval('[data-view="12"]', (section) => section.scrollIntoView({ behavior: 'instant' }));
  await page.waitForSelector('[data-proof="time-rnn"]', { timeout: 120_000 });
  await page.waitForSelector('button[name="run"]:not([disabled])');
}

/** The unrounded number of each proof on the page. */
export const readProofs = (page: Page): Promise<Record<string, string>> =>
  page.$$eval('[data-proof]', (elements) =>
    Object.fromEntries(elements.map((element) => [element.getAttribute('data-proof')!, element.getAttribute('data-value')!])));

/** The numbers of the table twin, row after row. */
export const readTable = (page: Page): Promise<number[]> =>
  page.$$eval('.table-twin td[data-value]', (cells) => cells.map((cell) => Number(cell.getAttribute('data-value'))));

/** Types a sentence into the box. */
export async function typeSentence(page: Page, text: string): Promise<void> {
  await page.$eval('input[name="sentence"]', (input, value) => {
    (input as HTMLInputElement).value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }, text);
}

/** What the line beside the matrix says: row, column, value, rank. */
export const readSelected = (page: Page): Promise<string[]> =>
  page.$$eval('.read-out dd', (items) => items.map((item) => item.textContent!));

/** Clicks without moving a pointer: a pointer over the matrix would preview a cell. */
export const click = (page: Page, selector: string): Promise<void> =>
  page.$eval(selector, (element) => (element as HTMLElement).click());

/** Chooses a stage of view 6 and waits until it is shown. */
export async function chooseStage(page: Page, stage: string): Promise<void> {
  await click(page, `input[name="stage"][value="${stage}"]`);
  await page.waitForSelector(`input[name="stage"][value="${stage}"]:checked`);
}
