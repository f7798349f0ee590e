// One engine for all views, in a worker, so that the page stays free. Their matrices are tiny: one thread is enough. The
// timing view has its own, in the worker that holds its contestants.
import { spawn, type RemoteEngine } from 'qkv/worker';

let engine: Promise<RemoteEngine> | undefined;

export const theEngine = (): Promise<RemoteEngine> => (engine ??= spawn({ threads: 1 }));
