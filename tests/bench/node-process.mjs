// One process of the benchmark in Node: takes its plan as JSON and appends a line of JSON for each workload to plan.file.
import { appendFileSync } from 'node:fs';
import { startNativeProgram } from './native-program.mjs';
import { runSession } from './session.mjs';

const plan = JSON.parse(process.argv[2]);
const { qkv, nativeProgram } = plan;

await runSession(plan, {
  async load(name) {
    const module = await import(name === 'qkv' ? qkv : name);
    return module.default ?? module;
  },
  ...(nativeProgram && { startNative: () => startNativeProgram(nativeProgram[0], nativeProgram.slice(1)) }),
}, (result) => {
  appendFileSync(plan.file, `${JSON.stringify(result)}\n`);
  console.log(`timed ${result.workload}`);
});
// Some library may still hold a worker.
process.exit();
