// The page's side of the timing worker; the worker is started with the first contest.
import type { Contest, Outcome, Reply, Request } from './messages.js';

/**
 * A worker that loads and is silent for so long has stopped for good, and another one takes its place: in Firefox (153) a
 * worker that starts workers, as the threaded engine does in it, now and then waits for a notice that the new one took.
 */
const LONGEST_SILENCE_MS = 5000;
const ATTEMPTS = 3;

let worker: Worker | undefined;
let isCancelled = false;

/** Runs one contest; resolves to nothing when it was cancelled. */
export async function runInWorker(contest: Contest, onRound: (round: number) => void): Promise<Outcome | undefined> {
  isCancelled = false;
  for (let attempt = 0; attempt < ATTEMPTS && !isCancelled; attempt++) {
    const reply = await attemptInWorker(contest, onRound);
    if (reply?.type === 'failed') throw new Error(reply.message);
    if (reply) return reply.type === 'done' ? reply.outcome : undefined;
  }
  if (isCancelled) return undefined;
  throw new Error('The timing worker does not answer: reload the page.');
}

/** Resolves to the last reply, or to nothing where the worker stopped while it loaded. */
function attemptInWorker(contest: Contest, onRound: (round: number) => void): Promise<Reply | undefined> {
  const active = (worker ??= new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' }));
  return new Promise((resolve, reject) => {
    let silence: ReturnType<typeof setTimeout> | undefined;
    const giveUp = () => {
      worker = undefined;
      active.terminate();
      resolve(undefined);
    };
    active.onmessage = ({ data }: MessageEvent<Reply>) => {
      clearTimeout(silence);
      if (data.type === 'loading') silence = setTimeout(giveUp, LONGEST_SILENCE_MS);
      else if (data.type === 'round') onRound(data.round);
      else resolve(data);
    };
    active.onerror = (event) => {
      clearTimeout(silence);
      worker = undefined;
      reject(new Error(`The timing worker could not run (${event.message || 'no reason given'}): reload the page.`));
    };
    active.postMessage({ type: 'run', contest } satisfies Request);
  });
}

export function cancelInWorker(): void {
  isCancelled = true;
  worker?.postMessage({ type: 'cancel' } satisfies Request);
}
