// Decides whether a step has to run again, by times of files.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { project } from './steps.mjs';

/**
 * Runs `action` unless `outputs` exist and nothing in `inputs` (files and folders, from the project's root) has changed
 * since it last succeeded. `identity` is any text that the outputs depend on beside those files.
 */
export async function whenStale(name, { inputs, outputs, identity = '' }, action) {
  const stamp = join(project, 'build/stamps', name);
  const fresh = () => [...outputs.map(inProject), stamp].every((path) => existsSync(path))
    && readFileSync(stamp, 'utf8') === identity
    && newest(inputs.map(inProject)) <= statSync(stamp).mtimeMs;
  if (fresh()) return;
  await withLock(join(project, 'build/lock'), async () => {
    // Another run may have done it while this one waited.
    if (fresh()) return;
    const started = new Date();
    await action();
    mkdirSync(join(project, 'build/stamps'), { recursive: true });
    writeFileSync(stamp, identity);
    // A file that is edited while the step runs makes the step stale.
    utimesSync(stamp, started, started);
  });
}

const inProject = (path) => join(project, path);

// Folders count as well: their time changes when a file in them is removed.
function newest(paths) {
  return Math.max(0, ...paths.filter((path) => existsSync(path)).map((path) => {
    const status = statSync(path);
    const inside = status.isDirectory() ? newest(readdirSync(path).map((name) => join(path, name))) : 0;
    return Math.max(status.mtimeMs, inside);
  }));
}
