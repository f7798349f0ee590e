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

  for (const [i, code] of blocks.slice(1).entries()) {
    test(`example ${i + 2} prints what the comments beside its console.log say`, async () => {
      const promised = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, comment]) => comment);
      assert.ok(promised.length > 0, 'it has no such comment');
      assert.deepEqual((await run(code)).trimEnd().split('\n'), promised);
    });
  }

  test('there are examples to run', () => assert.ok(blocks.length > 1, `${blocks.length} blocks of js were found`));
});
