// One process of the benchmark in Node: takes its plan as JSON and appends a line of JSON for each workload to plan.file.
import { appendFileSync, readFileSync } from 'node:fs';
import { startNativeProgram } from './native-program.mjs';
import { runSession } from './session.mjs';

const plan = JSON.parse(process.argv[2]);
const { qkv, eigen, nativeProgram } = plan;

await runSession(plan, {
  async load(name) {
    const module = await import(name === 'qkv' ? qkv : name);
    return module.default ?? module;
  },
  packagedBytes: (name) => readFileSync(new URL(name, qkv)),
  loadEigen: () => readFileSync(eigen),
  ...(nativeProgram && { startNative: () => startNativeProgram(nativeProgram[0], nativeProgram.slice(1)) }),
}, (result) => {
  appendFileSync(plan.file, `${JSON.stringify(result)}\n`);
  // Something printed makes the parent look at the file.
  console.log('timed');
});
// Some library may still hold a worker.
process.exit();
