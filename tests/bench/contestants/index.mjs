// Who takes part. A contestant is
//   { name, open(environment), only?(workload), gradients?, patient?, minor?, dense?, compiles?, native? }
// gradients: it can compute them; patient: its slow calls are waited for; minor: two processes are enough; dense: it computes hidden scores too;
// compiles: its first call does more than compute; native: not in a browser.
// environment: { load(package), address?(path in node_modules), packagedBytes(file of our package), loadEigen() -> bytes,
//   startNative?() }; open() resolves to
//   { prepare(workload, inputs), extraBytes?(workload, inputs), close?() }
// and fails with a sentence where the host lacks what it needs. prepare() gives the formulations that it has for the
// workload, of which the best counts:
//   { formulation, call(), read(result of a call) -> { output, weights? }, time?(calls) -> seconds, flops?, release?() }
//   or { formulation, error }.
import { eigenWasm } from './eigen.mjs';
import { jax } from './jax.mjs';
import { eigenNative, nativeOurs } from './native.mjs';
import { onnxNode, onnxWeb, onnxWebConstant } from './onnxruntime.mjs';
import { ours } from './ours.mjs';
import { relaxedPeak, simdPeak } from './peak.mjs';
import { plain } from './plain.mjs';
import { tensorflow } from './tensorflow.mjs';

export const contestants = [
  relaxedPeak, simdPeak, ...ours, onnxWeb, onnxWebConstant, tensorflow, jax, plain, eigenWasm, nativeOurs, eigenNative, onnxNode,
];
