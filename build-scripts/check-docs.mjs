// What a reader of the API page relies on: every export has its comment, and the page needs no network.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { docsFolder, makeDocs } from './docs.mjs';
import { project } from './steps.mjs';

describe('the API page', () => {
  let problems;
  before(async () => { problems = await makeDocs(); });

  test('every export, property, method and parameter has a comment, and every link leads somewhere', () => {
    assert.deepEqual(problems, [], 'write what is missing in web/src; "npm run docs" names it again');
  });

  const pages = () => readdirSync(docsFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.html'))
    .map((entry) => join(entry.parentPath, entry.name));

  test('every page loads from its own folder only', () => {
    const remote = /<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(?:https?:)?\/\/[^"]*/g;
    const found = pages().flatMap((page) => readFileSync(page, 'utf8').match(remote) ?? []);
    assert.ok(pages().length > 20, `there are ${pages().length} pages, but more exports than that`);
    assert.deepEqual(found, [], 'the page has to work without a network');
  });

  test('no page knows where it was made', () => {
    const found = pages().filter((page) => readFileSync(page, 'utf8').includes(project));
    assert.deepEqual(found, [], `these hold "${project}"`);
  });
});
