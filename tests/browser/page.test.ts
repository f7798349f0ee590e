// The page loads everywhere it may be put, asks nobody else, and shows what the engine computes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'puppeteer-core';
import { decodeVocabulary, readSentence } from '../../web/site/src/words.js';
import { inEachBrowser, launch, withPage } from './support/browser.js';
import { chooseStage, click, project, readProofs, readTable, serve, serveSite, typeSentence, untilComputed } from './support/site.js';

const firstLoadLimit = 200_000;

const vocabularyFile = readFileSync(`${project}web/site/data/words.safetensors`);
const vocabulary = decodeVocabulary(new Uint8Array(vocabularyFile).buffer);

/** The first load in bytes, each answer compressed as a server would. */
async function gzipSize(addresses: readonly string[]): Promise<number> {
  const answers = await Promise.all([...new Set(addresses)].map((address) => fetch(address).then((answer) => answer.arrayBuffer())));
  return answers.reduce((sum, bytes) => sum + gzipSync(new Uint8Array(bytes)).length, 0);
}

/** explain() of the package itself, in the page: the same host, so the same build and the same bits. */
const explainInPage = (page: Page, x: number[], length: number): Promise<Record<string, number[]>> =>
  page.evaluate(async (values, rows) => {
    const address = '/dist/index.js';
    const { load, tensor } = await import(address) as typeof import('qkv');
    const dims = values.length / rows;
    const identity = tensor(Float32Array.from({ length: dims * dims }, (_, i) => (i % (dims + 1) === 0 ? 1 : 0)), [dims, dims]);
    const input = tensor(Float32Array.from(values), [rows, dims]);
    const steps = (await load()).explain(input, { wq: identity, wk: identity, wv: identity });
    return Object.fromEntries(Object.entries(steps).map(([name, { data }]) => [name, [...data]]));
  }, x, length);

inEachBrowser('the page', (kind) => {
  let browser: Browser;
  before(async () => { browser = await launch(kind); });
  after(() => browser?.close());

  for (const [title, isolated, base] of [
    ['with isolation headers', true, '/'],
    ['without isolation headers', false, '/'],
    ['in a sub-folder', false, '/some/where/'],
  ] as const) {
    test(`loads ${title}, soundly, and proves its claims`, async () => {
      const server = await serveSite({ isolated, base });
      try {
        await withPage(browser, kind, server.url, {}, async ({ page, problems }) => {
          await untilComputed(page);
          assert.equal(await page.evaluate(() => crossOriginIsolated), isolated);
          const proofs = await readProofs(page);
          for (const [name, value] of Object.entries(proofs)) {
            assert.ok(value !== '' && Number.isFinite(Number(value)), `data-proof="${name}" has to hold a number, not "${value}"`);
          }
          assert.equal(proofs['attention-steps'], '5');
          assert.equal(proofs['rnn-steps'], '12', 'the RNN has to take one step for each of the 12 words');
          assert.equal(proofs['rnn-difference'], '0', 'steps and whole run have to agree to the bit: compare rnnStep with rnn');
          assert.ok(Number(proofs['largest-difference']) < 1e-6, `the engine is ${proofs['largest-difference']} off: look at the stage's kernel`);
          assert.deepEqual(problems, [], 'mend what the page complains of');
        });
      } finally {
        await server.close();
      }
    });
  }

  test(`needs at most ${firstLoadLimit / 1000} kB, compressed, for its first load`, async (context) => {
    const server = await serveSite();
    try {
      await withPage(browser, kind, server.url, {}, async ({ page, requests }) => {
        await untilComputed(page);
        const bytes = await gzipSize(requests);
        context.diagnostic(`first load: ${requests.length} requests, ${bytes} bytes gzip`);
        assert.ok(requests.some((address) => address.endsWith('.wasm')), 'the WebAssembly belongs to the first load: count it');
        assert.ok(bytes <= firstLoadLimit, `the first load is ${bytes} bytes: load less, or later`);
      });
    } finally {
      await server.close();
    }
  });

  test('shows the values of explain to the bit, at every stage', async () => {
    // The whole checkout, so that the page and the package come from one origin.
    const server = await serve('.');
    try {
      await withPage(browser, kind, `${server.url}build/site/#times=2`, {}, async ({ page }) => {
        await untilComputed(page);
        const { words, vectors } = readSentence(await page.$eval('input[name="sentence"]', (input) => (input as HTMLInputElement).value), vocabulary);
        const expected = await explainInPage(page, [...vectors.map((value) => value * 2)], words.length);
        await click(page, 'button[name="table"]');
        for (const [stage, matrix] of [['project', 'query'], ['score', 'scores'], ['scale', 'scaled'], ['softmax', 'weights'], ['mix', 'output']] as const) {
          await chooseStage(page, stage);
          assert.deepEqual(await readTable(page), expected[matrix], `the ${matrix} on the page have to be the engine's own`);
        }
      });
    } finally {
      await server.close();
    }
  });

  test('says which words it does not know, and leaves them out', async () => {
    const server = await serveSite();
    try {
      await withPage(browser, kind, server.url, {}, async ({ page, problems }) => {
        await untilComputed(page);
        await typeSentence(page, 'The zyzzyva saw a dog, 42 times');
        await page.waitForSelector('.tokens .unknown');
        assert.deepEqual(await page.$$eval('.tokens .unknown', (items) => items.map((item) => item.textContent)), ['zyzzyva unknown', '42 unknown']);
        // The, saw, a, dog and times are known.
        await page.waitForSelector('[data-proof="rnn-steps"][data-value="5"]');
        assert.match(await page.$eval('sentence-box [role="status"]', (status) => status.textContent!), /Unknown and left out: zyzzyva, 42/);
        await typeSentence(page, 'zyzzyva');
        await page.waitForSelector('[data-view="06"] .figure-room');
        assert.deepEqual(problems, [], 'a sentence without a known word is no error');
      });
    } finally {
      await server.close();
    }
  });

  test('says in a sentence when the engine cannot be had', async () => {
    // The server refuses, not the page: what a worker asks for may pass a page's interception by.
    const server = await serveSite({ refuse: (path) => path.endsWith('.wasm') });
    const page = await browser.newPage();
    try {
      await page.goto(server.url);
      await page.waitForSelector('[data-view="06"] [role="alert"]');
      assert.match(await page.$eval('[data-view="06"] [role="alert"]', (alert) => alert.textContent!), /wasm.*could not be fetched/);
      assert.ok(await page.$('math'), 'text and formulas have to stay');
    } finally {
      await page.close();
      await server.close();
    }
  });

  test('keeps its state in the address, and keys of others too', async () => {
    const server = await serveSite();
    try {
      await withPage(browser, kind, `${server.url}#stage=mix&other=kept`, {}, async ({ page }) => {
        await untilComputed(page);
        assert.equal(await page.$eval('input[name="stage"]:checked', (input) => (input as HTMLInputElement).value), 'mix');
        await chooseStage(page, 'score');
        await page.waitForFunction(() => location.hash.includes('stage=score'));
        assert.match(await page.evaluate(() => location.hash), /other=kept/);
      });
    } finally {
      await server.close();
    }
  });

  // Firefox gives its driver no switch for scripts.
  if (kind === 'chromium') test('reads without scripts', async () => {
    const server = await serveSite();
    const page = await browser.newPage();
    try {
      await page.setJavaScriptEnabled(false);
      await page.goto(server.url);
      const text = await page.$eval('main', (main) => (main as HTMLElement).innerText);
      assert.match(text, /Two machines read one sentence/);
      assert.match(text, /Softmax\./);
      assert.ok(await page.$eval('math', (math) => math.getBoundingClientRect().height > 10), 'formulas have to be laid out');
      assert.ok(await page.$('noscript'), 'say why there are no figures');
    } finally {
      await page.close();
      await server.close();
    }
  });
});
