// The build strips the page's types without checking them; this checks them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { project } from './support/site.js';

test('the page’s TypeScript is sound', () => {
  const { status, stdout } = spawnSync('node_modules/.bin/tsc', ['-p', 'web/site'], { cwd: project, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
