// Starts the browsers, opens pages in them, and notes everything that a sound page does not do.
import { describe } from 'node:test';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';

export type Kind = 'chromium' | 'firefox';

/** What the user of a page prefers. */
export interface Preferences {
  scheme?: 'light' | 'dark';
  reducedMotion?: boolean;
  width?: number;
}

const programs: Record<Kind, { title: string; variable: string }> = {
  chromium: { title: 'Chromium', variable: 'CHROMIUM' },
  firefox: { title: 'Firefox', variable: 'FIREFOX' },
};
const kinds = Object.keys(programs) as Kind[];

const chromiumArguments = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

/** The same tests once for each browser; skipped with a sentence where one is not there. */
export function inEachBrowser(subject: string, tests: (kind: Kind) => void): void {
  for (const kind of kinds) {
    const { title, variable } = programs[kind];
    const skip = process.env[variable] ? false : `${title} is not run: put the path of its program into ${variable}.`;
    describe(`${subject} in ${title}`, { skip }, () => tests(kind));
  }
}

export function launch(kind: Kind, { scheme = 'light', reducedMotion = false }: Preferences = {}): Promise<Browser> {
  const executablePath = process.env[programs[kind].variable]!;
  if (kind === 'chromium') return puppeteer.launch({ executablePath, args: chromiumArguments });
  return puppeteer.launch({
    browser: 'firefox',
    executablePath,
    extraPrefsFirefox: {
      'layout.css.prefers-color-scheme.content-override': scheme === 'dark' ? 0 : 1,
      'ui.prefersReducedMotion': reducedMotion ? 1 : 0,
    },
  });
}

export interface WatchedPage {
  page: Page;
  /** Console errors and warnings, exceptions, failed and foreign requests: empty for a sound page. */
  problems: string[];
  /** The addresses that were asked for, in order. */
  requests: string[];
}

export async function openPage(browser: Browser, kind: Kind, url: string, preferences: Preferences = {}): Promise<WatchedPage> {
  const page = await browser.newPage();
  const { scheme = 'light', reducedMotion = false, width = 1280 } = preferences;
  await page.setViewport({ width, height: 900 });
  if (kind === 'chromium') {
    await page.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value: scheme },
      { name: 'prefers-reduced-motion', value: reducedMotion ? 'reduce' : 'no-preference' },
    ]);
  }
  const watched = watch(page, new URL(url).origin);
  await page.goto(url);
  return watched;
}

function watch(page: Page, origin: string): WatchedPage {
  const problems: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warn'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`exception: ${error instanceof Error ? error.message : String(error)}`));
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`));
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`status ${response.status()}: ${response.url()}`);
  });
  page.on('request', (request) => {
    const { href, origin: asked, protocol } = new URL(request.url());
    if (protocol === 'data:' || protocol === 'blob:') return;
    requests.push(href);
    if (asked !== origin) problems.push(`leaves the origin: ${href}`);
  });
  return { page, problems, requests };
}

/** Opens a page, hands it to `use`, and closes it whatever happens. */
export async function withPage<Result>(
  browser: Browser, kind: Kind, url: string, preferences: Preferences, use: (watched: WatchedPage) => Promise<Result>,
): Promise<Result> {
  const watched = await openPage(browser, kind, url, preferences);
  try {
    return await use(watched);
  } finally {
    await watched.page.close();
  }
}
