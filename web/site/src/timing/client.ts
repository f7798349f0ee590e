// The page's side of the timing worker; the worker is started with the first contest.
import type { Contest, Outcome, Reply, Request } from './messages.js';

let worker: Worker | undefined;

/** Runs one contest; resolves to nothing when it was cancelled. */
export function runInWorker(contest: Contest, onRound: (round: number) => void): Promise<Outcome | undefined> {
  const active = (worker ??= new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' }));
  return new Promise((resolve, reject) => {
    active.onmessage = ({ data }: MessageEvent<Reply>) => {
      if (data.type === 'round') onRound(data.round);
      else if (data.type === 'failed') reject(new Error(data.message));
      else resolve(data.type === 'done' ? data.outcome : undefined);
    };
    active.onerror = (event) => {
      worker = undefined;
      reject(new Error(`The timing worker could not run (${event.message || 'no reason given'}): reload the page.`));
    };
    active.postMessage({ type: 'run', contest } satisfies Request);
  });
}

export function cancelInWorker(): void {
  worker?.postMessage({ type: 'cancel' } satisfies Request);
}
