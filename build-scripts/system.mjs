// What kind of machine this is, asked without starting a program.
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from './steps.mjs';

export const isRoot = process.getuid?.() === 0;

/** The full path of a program on PATH, or undefined. */
export function commandPath(name) {
  return (process.env.PATH ?? '').split(':').map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** { release: 12, codename: 'bookworm' } on Debian, with release Infinity on testing and unstable; undefined elsewhere. */
export function debian() {
  if (!existsSync('/etc/os-release')) return undefined;
  const text = readFileSync('/etc/os-release', 'utf8');
  const field = (name) => text.match(new RegExp(`^${name}="?([^"\n]*)`, 'm'))?.[1];
  if (field('ID') !== 'debian') return undefined;
  return { release: Number(field('VERSION_ID') ?? Infinity), codename: field('VERSION_CODENAME') };
}

/** Fails when the disk under `folder`, which need not exist yet, has too little room for `purpose`. */
export function requireSpace(folder, gigabytes, purpose) {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  const { bavail, bsize } = statfsSync(existing);
  const free = (bavail * bsize) / 1e9;
  if (free >= gigabytes) return;
  throw new Failure(`${purpose} needs ${gigabytes} GB in ${folder} and ${free.toFixed(1)} GB are free: free some space and run the same command again.`);
}
