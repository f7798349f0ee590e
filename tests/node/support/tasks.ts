// Rows of the tasks' examples in words.
import assert from 'node:assert/strict';

import type { Examples, Task } from 'qkv/tasks';

/** One row of some examples, in words, cut to its length. */
export interface Shown {
  readonly words: string[];
  readonly context: string[];
  readonly targets: number[];
  readonly at: number;
  readonly row: number;
}

export function shownOf(task: Task, { tokens, targets, options }: Examples): Shown[] {
  const [rows, length] = tokens.shape as [number, number];
  assert.equal(length, task.length, 'tokens have the task’s length');
  assert.equal(targets.shape[0], rows, 'there is a target for each row');
  const width = targets.data.length / rows;
  return Array.from({ length: rows }, (_, row) => {
    const used = options.lengths?.[row] ?? length;
    const padding = tokens.data.slice(row * length + used, (row + 1) * length);
    assert.ok(padding.every((token) => token === 0), `row ${row} ends in ${padding}, expected zeros beyond its length`);
    const contextLength = options.context?.shape[1] ?? 0;
    return {
      words: task.decode(tokens.data.subarray(row * length, row * length + used)).split(' '),
      context: task.decode(options.context?.data.subarray(row * contextLength, (row + 1) * contextLength) ?? []).split(' '),
      targets: [...targets.data.subarray(row * width, (row + 1) * width)],
      at: options.at?.[row] ?? used - 1,
      row,
    };
  });
}

/** The most that may be asked for, as the refusal of more says. */
export function mostHeldOut(task: Task): number {
  try {
    task.heldOut(2 ** 31);
  } catch (error) {
    return Number(/from 1 to (\d+)\.$/.exec((error as Error).message)?.[1]);
  }
  return assert.fail('heldOut(2 ** 31) was not refused');
}

/** Rows in words, with their context. */
export const keysOf = (task: Task, examples: Examples) => shownOf(task, examples).map(({ words, context }) => `${words.join(' ')} | ${context.join(' ')}`);
