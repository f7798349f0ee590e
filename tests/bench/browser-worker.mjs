// One page's part of the benchmark, in a worker, since a page's own thread may not wait for threads.
import { runSession } from './session.mjs';

const modules = '/tests/bench/node_modules/';

/** Where each library is, and what it is called where it exports nothing. */
const libraries = {
  'onnxruntime-web': { path: 'onnxruntime-web/dist/ort.wasm.bundle.min.mjs' },
  '@jax-js/jax': { path: '@jax-js/jax/dist/index.js' },
  '@tensorflow/tfjs': { path: '@tensorflow/tfjs/dist/tf.min.js', global: () => globalThis.tf },
  '@tensorflow/tfjs-backend-wasm': { path: '@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js', global: () => globalThis.tf.wasm },
};

const bytesOf = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());

addEventListener('message', async ({ data: plan }) => {
  const environment = {
    async load(name) {
      if (name === 'qkv') return import(plan.qkv);
      const { path, global } = libraries[name];
      const module = await import(`${modules}${path}`);
      return global?.() ?? module;
    },
    packagedBytes: (name) => bytesOf(new URL(name, new URL(plan.qkv, location.href))),
    loadEigen: () => bytesOf(plan.eigen),
    address: (path) => new URL(`${modules}${path}`, location.href).href,
  };
  try {
    await runSession(plan, environment, (result) => postMessage({ result }));
    postMessage({ done: true });
  } catch (error) {
    postMessage({ failed: String(error?.stack ?? error) });
  }
});
