// Calls that have to fail, as tables. Each gives one sentence and its code, writes to nothing, takes no
// memory, and leaves an engine that works on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { Engine, QkvErrorCode } from 'qkv';

import { errorOf, variant } from './engine.js';

/** What is wrong, the call, its code, and its sentence: the argument, what came, what was expected. */
export type Refusal = readonly [name: string, call: () => unknown, code: QkvErrorCode, message: RegExp];

export interface Refused {
  /** Asked when the tests run. */
  engine: () => Engine;
  /** Calls by the argument that is wrong. */
  tables: Readonly<Record<string, readonly Refusal[]>>;
  /** Throws where a good call gives wrong numbers. */
  next: () => void;
  /** What no failing call may write to. */
  untouched: () => readonly ArrayLike<number>[];
}

/** Every sentence on an argument says what would have been right. */
const EXPECTATION = /\bexpected\b|; it may have .|, but the data has /;

/** @returns what is wrong with the refusal, or undefined */
async function faultOf([name, call, code, message]: Refusal, { next, untouched }: Refused): Promise<string | undefined> {
  const before = untouched().map((data) => Array.from(data));
  try {
    const error = await errorOf(call);
    assert.equal(error.code, code, `its code is ${error.code} and not ${code}: ${error.message}`);
    assert.match(error.message, message);
    assert.ok(error.message.length < 600, `its sentence has ${error.message.length} characters`);
    if (code === 'INVALID_ARGUMENT' || code === 'SHAPE_MISMATCH') assert.match(error.message, EXPECTATION);
    assert.deepEqual(untouched().map((data) => Array.from(data)), before, 'it wrote to an argument');
    next();
    return undefined;
  } catch (error) {
    return `${name}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** A test for each argument, and one of a thousand failing calls. */
export function refuses(title: string, refused: Refused): void {
  describe(`${title}, ${variant}`, () => {
    for (const [argument, refusals] of Object.entries(refused.tables)) {
      test(argument, async () => {
        const faults: string[] = [];
        for (const refusal of refusals) {
          const fault = await faultOf(refusal, refused);
          if (fault !== undefined) faults.push(fault);
        }
        assert.ok(refusals.length > 0, 'there is no case');
        assert.equal(faults.length, 0, `${faults.length} of ${refusals.length} are not refused as they should be:\n${faults.join('\n')}`);
      });
    }

    test('1,000 failing calls take no memory', async () => {
      const calls = Object.values(refused.tables).flat().map(([, call]) => call);
      let used = 0;
      for (let failed = 0; failed < 1000 + calls.length; failed += calls.length) {
        for (const call of calls) await errorOf(call);
        // The first round may take what every engine takes once.
        if (failed === 0) used = refused.engine().info().memory.used;
      }
      assert.equal(refused.engine().info().memory.used, used, 'failing calls let the memory of the engine grow');
      refused.next();
    });
  });
}
