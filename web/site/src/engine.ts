// One engine for all views, on the page's own thread: their matrices are tiny. The timing view has its own, in a worker.
import { load, type Engine } from 'qkv';

let engine: Promise<Engine> | undefined;

export const theEngine = (): Promise<Engine> => (engine ??= load());
