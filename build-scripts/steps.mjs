// What every script here shares: running programs, showing steps, and failing with one sentence.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const project = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** An expected failure: its message is one sentence that says what to do, and no stack trace is shown. */
export class Failure extends Error {
  /** `output` is what the failed program printed, to show above the sentence. */
  constructor(message, output = '') {
    super(message);
    this.output = output;
  }
}

class Interruption extends Error {}

/** Prints a failure for the user; a fault of these scripts keeps its stack trace. */
export function report(error) {
  if (error.output) console.error(`\n${error.output.trimEnd()}`);
  console.error(error instanceof Failure ? `\n${error.message}` : error);
}

/** Runs a script's body, and turns its end into an exit code. */
export async function main(body) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interrupt(signal));
  try {
    if (Number(process.versions.node.split('.')[0]) < 20) {
      throw new Failure(`Node 20 or newer is needed, and this is ${process.versions.node}: install a newer one.`);
    }
    process.exitCode = await body();
  } catch (error) {
    if (interrupted) return endInterrupted();
    report(error);
    process.exitCode = 1;
  }
}

const children = new Map();
let interrupted = 0;

// Children get the signal first, and the script ends when they have: apt and mmdebstrap need the time to clean up.
// Each child leads its own process group, so that a terminal's Ctrl-C reaches it through here only.
function interrupt(signal) {
  // npm passes the terminal's signal on a second time.
  if (Date.now() - interrupted < 1000) return;
  interrupted = Date.now();
  if (children.size === 0) endInterrupted();
  if ([...children.values()].some(({ gently }) => gently)) console.log('\nStopping as soon as the package manager can.');
  for (const [child, { gently }] of children) stop(child, signal, gently);
}

function endInterrupted() {
  console.error('\nInterrupted: the same command goes on from here.');
  process.exit(130);
}

function stop(child, signal, gently = false) {
  try {
    process.kill(gently ? child.pid : -child.pid, signal);
  } catch {
    // It has just ended by itself.
  }
}

/**
 * Runs a program and resolves to { code, output }; rejects only when it cannot be started.
 * `show` passes the output on as it comes, `onLine` sees each line, `gently` signals the program but not its children,
 * `third` is a file descriptor for the program to hold as its number 3, or "pipe" for more lines to `onLine`.
 */
export function runAny(command, args, { cwd = project, env, show, onLine, gently, third = 'ignore', timeoutSeconds } = {}) {
  if (interrupted) return Promise.reject(new Interruption());
  const { promise, resolve, reject } = withResolvers();
  const stdio = ['ignore', 'pipe', 'pipe', third];
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio, detached: true });
  children.set(child, { gently });
  let output = '';
  let timedOut = false;
  const timer = timeoutSeconds && setTimeout(() => {
    timedOut = true;
    stop(child, 'SIGTERM');
    setTimeout(stop, 10_000, child, 'SIGKILL').unref();
  }, timeoutSeconds * 1000);
  const passLines = (text) => onLine && text.split(/[\r\n]+/).filter(Boolean).forEach((line) => onLine(line));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      if (show) process.stdout.write(text);
      passLines(text);
    });
  }
  child.stdio[3]?.setEncoding('utf8').on('data', passLines);
  const ended = () => {
    clearTimeout(timer);
    children.delete(child);
  };
  child.on('error', (error) => {
    ended();
    reject(new Failure(`${command} could not be started (${error.code}): install it and try again.`));
  });
  child.on('close', (code, signal) => {
    ended();
    if (interrupted) reject(new Interruption());
    else resolve({ code: code ?? 1, signal, timedOut, output });
  });
  return promise;
}

/** Runs a program that has to succeed and resolves to its output; `causes` are pairs of a pattern in it and what to say then. */
export async function run(command, args, { causes = [], ...options } = {}) {
  const { code, output } = await runAny(command, args, options);
  if (code === 0) return output;
  const cause = causes.find(([pattern]) => pattern.test(output))?.[1];
  if (cause) throw new Failure(cause);
  const name = [command, ...args].join(' ').replaceAll(`${project}/`, '');
  throw new Failure(`"${name}" failed with exit code ${code}: see its output above.`, options.show ? '' : output);
}

/** Why an installer may fail, for `causes`. */
export const installerCauses = [
  [/No space left on device|ENOSPC|You don't have enough free space/,
    'The disk is full: free some space and run the same command again.'],
  [/Temporary failure resolving|Could not resolve|Could not connect|Network is unreachable|Cannot initiate the connection|Connection timed out|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT/,
    'The package server cannot be reached: check the network (and proxy) and run the same command again.'],
];

/** Shows one step: what it does, how far it is, and how long it took. `action` gets a function that takes progress text. */
export async function step(title, action) {
  const started = Date.now();
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const live = process.stdout.isTTY;
  let detail = '';
  const show = () => {
    const text = `${title} ... ${detail}${detail && ', '}${seconds()}`;
    process.stdout.write(live ? `\r${text.slice(0, (process.stdout.columns || 80) - 1)}\x1b[K` : `${text}\n`);
  };
  if (live) show();
  else console.log(`${title} ...`);
  const timer = setInterval(show, live ? 500 : 15_000);
  const end = (text) => {
    clearInterval(timer);
    console.log(`${live ? '\r' : ''}${title}: ${text} after ${seconds()}${live ? '\x1b[K' : ''}`);
  };
  try {
    const result = await action((text) => { detail = text; });
    end('done');
    return result;
  } catch (error) {
    end(interrupted ? 'interrupted' : 'failed');
    throw error;
  }
}

function withResolvers() {
  const deferred = {};
  deferred.promise = new Promise((resolve, reject) => Object.assign(deferred, { resolve, reject }));
  return deferred;
}
