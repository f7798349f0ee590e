// Keeps two runs at the same time from setting up or building the same thing.
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { runAny } from './steps.mjs';
import { commandPath } from './system.mjs';

let toldToWait = false;

/** Runs `action(lock)` while no other run holds `file`; the kernel lets go of the lock when its last holder ends, however it ends. */
export async function withLock(file, action) {
  mkdirSync(dirname(file), { recursive: true });
  const lock = openSync(file, 'a');
  try {
    if (!await take(lock, ['--nonblock'])) {
      if (!toldToWait) console.log('Another run is setting up or building here: waiting for it where both need the same.');
      toldToWait = true;
      await take(lock);
    }
    return await action(lock);
  } finally {
    closeSync(lock);
  }
}

// flock(1) locks the open file that it shares with us, so the lock stays when flock ends. Systems without it do without.
async function take(lock, mode = []) {
  if (!commandPath('flock')) return true;
  return (await runAny('flock', [...mode, '3'], { third: lock })).code === 0;
}
