// Talks to the program of native/main.cpp.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Starts `command` with `args`. Its requests are answered one after another. */
export async function startNativeProgram(command, args) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child, 'spawn');
  const answers = answersOf(child);
  const send = (...words) => child.stdin.write(`${words.join(' ')}\n`);
  let prepared = 0;
  const counts = new Map();
  return {
    async prepare(job, inputs, outputs) {
      const id = (prepared += 1);
      counts.set(id, outputs);
      send('prepare', id, inputs.length, ...inputs.map(({ length }) => length), outputs.length, ...outputs, ...job);
      for (const { buffer, byteOffset, byteLength } of inputs) child.stdin.write(new Uint8Array(buffer, byteOffset, byteLength));
      return id;
    },
    async time(id, calls) {
      send('time', id, calls);
      return Number(await answers.line());
    },
    async results(id) {
      send('results', id);
      const results = [];
      for (const count of counts.get(id)) results.push(await answers.floats(count));
      return results;
    },
    release: (id) => send('release', id),
    close: () => child.stdin.end(),
  };
}

/** What the child prints, taken by the line or by the number of floats. */
function answersOf(child) {
  let waiting = Buffer.alloc(0);
  let ended = false;
  let wake = () => {};
  child.stdout.on('data', (bytes) => {
    waiting = waiting.length === 0 ? bytes : Buffer.concat([waiting, bytes]);
    wake();
  });
  child.on('close', () => {
    ended = true;
    wake();
  });
  const take = async (lengthOf) => {
    for (;;) {
      const length = lengthOf(waiting);
      if (length > 0 && length <= waiting.length) {
        const taken = waiting.subarray(0, length);
        waiting = waiting.subarray(length);
        return taken;
      }
      if (ended) throw new Error('the native program ended');
      await new Promise((resolve) => { wake = resolve; });
    }
  };
  return {
    line: async () => (await take((bytes) => bytes.indexOf(10) + 1)).toString().trim(),
    floats: async (count) => new Float32Array(Uint8Array.from(await take(() => 4 * count)).buffer),
  };
}
