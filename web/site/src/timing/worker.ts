// Times in a thread of its own: the page stays free, and the threaded builds of the engine can run.
import { load } from 'qkv';
import { runContest } from './contest.js';
import type { Contest, Reply, Request } from './messages.js';

const BEAT_MS = 500;

let running: AbortController | undefined;

addEventListener('message', ({ data }: MessageEvent<Request>) => {
  if (data.type === 'cancel') running?.abort();
  else void run(data.contest);
});

async function run(contest: Contest): Promise<void> {
  running = new AbortController();
  const { signal } = running;
  try {
    const engine = await audibly(load());
    reply({ type: 'round', round: 0 });
    const outcome = await runContest(engine, contest, {
      clock: () => performance.now(),
      pause: () => new Promise((resume) => setTimeout(resume)),
      signal,
      onRound: (round) => reply({ type: 'round', round }),
    });
    reply({ type: 'done', outcome });
  } catch (error) {
    reply(signal.aborted ? { type: 'cancelled' } : { type: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
}

/** The page is told all the while that this thread still runs. */
async function audibly<Result>(loading: Promise<Result>): Promise<Result> {
  const beat = () => reply({ type: 'loading' });
  beat();
  const timer = setInterval(beat, BEAT_MS);
  try {
    return await loading;
  } finally {
    clearInterval(timer);
  }
}

const reply = (message: Reply): void => postMessage(message);
