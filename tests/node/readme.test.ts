// The README's JavaScript runs as written, and prints what its comments say.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';

const readme = await readFile(new URL('../README.md', import.meta.resolve('qkv')), 'utf8');
const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code!);

const run = async (code: string) => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: import.meta.dirname });
  return stdout;
};

describe('README', () => {
  test('the first example gives the causal attention of three vectors', async () => {
    const lines = await run(blocks[0]!);
    for (const expected of [/\[ 1, 0 \]/, /\[ 0\.33\d+, 0\.66\d+ \]/, /\[ 0\.75\d+, 0\.75\d+ \]/, /^0\.248\d+$/m, /'query',\s+'key',\s+'value',\s+'scores',\s+'scaled',\s+'weights',\s+'output'/, /variant: '/]) {
      assert.match(lines, expected, 'the README says otherwise');
    }
  });

  test('the second example names what is wrong, word by word as its comment', async () => {
    const lines = (await run(blocks[1]!)).split('\n');
    assert.equal(lines[0], 'true SHAPE_MISMATCH');
    assert.ok(blocks[1]!.includes(`// ${lines[1]}`), `the README should say: ${lines[1]}`);
  });

  test('there is no example that is not run here', () => assert.equal(blocks.length, 2));
});
