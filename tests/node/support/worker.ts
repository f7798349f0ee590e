// The engine of the variant under test in a worker, and programs that use one.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { LoadOptions } from 'qkv';
import { type RemoteEngine, spawn } from 'qkv/worker';

import { threaded, variant } from './engine.js';

export const variantOptions: LoadOptions = { variant, threads: threaded ? 2 : 1 };

export const spawnVariant = (options: LoadOptions = {}): Promise<RemoteEngine> => spawn({ ...variantOptions, ...options });

/** A program of its own, given up after some seconds. */
export const runProgram = (code: string): Promise<{ stdout: string; stderr: string }> => {
  const flags = process.execArgv.filter((flag) => flag.startsWith('--experimental-wasm'));
  return promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', code], { cwd: import.meta.dirname, timeout: 20000 });
};

/** Hands a copy of the package's files to `use`: its folder, to change something there. */
export async function withCopy(use: (dist: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'qkv-'));
  try {
    const dist = join(folder, 'dist');
    await cp(new URL('.', import.meta.resolve('qkv')), dist, { recursive: true });
    await use(dist);
  } finally {
    await rm(folder, { recursive: true });
  }
}
