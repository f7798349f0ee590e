// What our engine costs besides arithmetic, in a process that has done nothing before: seconds.
import { makeInputs } from './inputs.mjs';
import { median } from './statistics.mjs';
import { attention } from './workloads.mjs';

const FIRST = attention(12, 512, 64);
/** A short call, and as much arithmetic as many of them in one. */
const [HEADS, SHORT] = [64, attention(1, 16, 64)];
const MANY = attention(HEADS, 16, 64);
/** Two tasks of hardly any arithmetic. */
const WAKING = attention(2, 4, 64);
const WARM_SECONDS = 1;
const ROUNDS = 41;
const TURN = 0.004;
const WAYS = 15;
const WAKINGS = 101;
/** Long enough for a pool's threads to fall asleep. */
const PAUSE_MS = 3;

/**
 * { load: from bytes; first, warm: calls of 12 x 512 x 64; forward, backward: warm calls of it in turns; call: of 16 x 64;
 * beside: its part that is neither arithmetic nor copies; waking: what a small call of two tasks takes more with two threads
 * than with one }. `environment` as in session.mjs.
 */
export async function measureCosts({ load: loadPackage, packagedBytes }) {
  const { load } = await loadPackage('qkv');
  const bytes = await packagedBytes('qkv-relaxed.wasm');
  const start = performance.now();
  const engine = await load({ wasm: bytes });
  const loadSeconds = (performance.now() - start) / 1000;
  const costs = { load: loadSeconds, ...firstCall(engine), ...bothWays(engine), ...shortCall(engine) };
  engine.dispose();
  return { ...costs, waking: await waking(load) };
}

function callOf(engine, workload) {
  const { query, key, value } = makeInputs(workload);
  return () => engine.attention(query, key, value);
}

function secondsOf(call, calls = 1) {
  const start = performance.now();
  for (let i = 0; i < calls; i++) call();
  return (performance.now() - start) / 1000 / calls;
}

function firstCall(engine) {
  const call = callOf(engine, FIRST);
  const first = secondsOf(call);
  const later = [];
  for (const end = performance.now() + 1000 * WARM_SECONDS; performance.now() < end;) later.push(secondsOf(call));
  return { first, warm: median(later.slice(later.length >> 1)) };
}

function bothWays(engine) {
  const { query, key, value } = makeInputs(FIRST);
  const calls = [() => engine.attention(query, key, value), () => engine.attentionBackward(query, query, key, value)];
  for (const call of calls) secondsOf(call, 3);
  const times = [[], []];
  for (let round = 0; round < WAYS; round++) calls.forEach((call, i) => times[i].push(secondsOf(call)));
  const [forward, backward] = times.map(median);
  return { forward, backward };
}

function shortCall(engine) {
  const calls = [SHORT, MANY].map((workload) => callOf(engine, workload));
  const perTurn = calls.map((call) => Math.ceil(TURN / secondsOf(call, 200)));
  const times = [[], []];
  for (let round = 0; round < ROUNDS; round++) calls.forEach((call, i) => times[i].push(secondsOf(call, perTurn[i])));
  const [one, many] = times.map(median);
  return { call: one, beside: one - (many - one) / (HEADS - 1) };
}

/** Undefined where there are no threads. */
async function waking(load) {
  const engines = [];
  try {
    for (const threads of [1, 2]) engines.push(await load({ variant: 'relaxed-mt', threads }));
    const calls = engines.map((engine) => callOf(engine, WAKING));
    for (const call of calls) secondsOf(call, 1000);
    const times = [[], []];
    for (let i = 0; i < WAKINGS; i++) {
      for (const [which, call] of calls.entries()) {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        times[which].push(secondsOf(call));
      }
    }
    const [alone, woken] = times.map(median);
    return woken - alone;
  } catch {
    return undefined;
  } finally {
    for (const engine of engines) engine.dispose();
  }
}
