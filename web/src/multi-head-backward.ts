import { expectShape, numbers, type Numbers } from './arguments.js';
import { AttentionBackwardCall } from './attention-backward.js';
import { LinearBackwardCall, type LinearCall } from './linear.js';
import type { Block, EngineMemory } from './memory.js';
import type { MultiHeadParameters } from './multi-head.js';
import { HeadsCall, type LayerArguments, type LayerParts, rowsOf } from './multi-head-call.js';
import type { Tensor, TensorLike } from './tensor.js';

/** By each parameter of a layer, under its name and of its shape: see {@link MultiHeadParameters}. */
export type MultiHeadParameterGradients = { [Name in keyof MultiHeadParameters]: Tensor };

/**
 * The loss's gradients by what a layer was given and by its parameters, summed over the batch. With mixed the heads'
 * attention side by side, and dQuery, dKey, dValue the gradients of attention (of queries and keys turned back, where
 * rotary turned them) by dMixed:
 *
 *     dMixed = dOutput . wo^T          dParameters.wo = mixed^T . dOutput
 *     dX = dQuery . wq^T               dParameters.wq = x^T . dQuery
 *     dContext = dKey . wk^T + dValue . wv^T
 *     dParameters.wk = context^T . dKey     dParameters.wv = context^T . dValue
 *
 * and a bias's gradient is the sum of the rows. Where x is its own context, dX has dContext in it.
 */
export interface MultiHeadGradients {
  /** x's shape. */
  dX: Tensor;
  /** The context's shape, where one is given; of a context that is x, apart from dX all the same. */
  dContext?: Tensor;
  /** In the order of `parameters`, so that the values of both go to an optimizer. */
  dParameters: MultiHeadParameterGradients;
  /** The shape of the option `bias`, where there is one, as of attentionBackward(). */
  dBias?: Tensor;
  /** (numHeads), where there is the option `sinks`, as of attentionBackward(). */
  dSinks?: Tensor;
}

/** What asks for more than the output. */
const EXTRAS = { weights: undefined, scores: undefined, logSumExp: undefined };

/** Adds to the first. */
function sumOf(first: Tensor, second: Tensor): Tensor {
  for (let i = 0; i < first.data.length; i++) first.data[i]! += second.data[i]!;
  return first;
}

/** Rows that hold NaN or Infinity become copies, whose blocks are ours to write to. */
function writable(memory: EngineMemory, given: LayerArguments): LayerArguments {
  const copied = (rows: Numbers) => (memory.elements(rows).every(Number.isFinite) ? rows : { data: rows.data.slice(), shape: rows.shape });
  const x = copied(given.x);
  return { ...given, x, context: given.context === given.x ? x : copied(given.context) };
}

/**
 * Writes rows to their block anew, as zeros where each gradient by what was made of them is 0: what attention hides may
 * hold NaN, and 0 times NaN would come into the sums over the rows.
 */
function hideUnseen(memory: EngineMemory, { data, shape }: Numbers, block: Block, gradients: readonly Tensor[]): void {
  const dim = shape.at(-1)!;
  const seen = data.slice();
  for (let row = 0; row * dim < data.length; row++) {
    const isUnseen = gradients.every(({ data: by, shape: [, columns] }) => by.subarray(row * columns!, (row + 1) * columns!).every((x) => x === 0));
    if (isUnseen) seen.fill(0, row * dim, (row + 1) * dim);
  }
  memory.write(block.address, seen);
}

function parameterGradients(linears: Readonly<Record<string, LinearBackwardCall>>): MultiHeadParameterGradients {
  const made = Object.entries(linears).map(([part, call]) => ({ part, ...call.ofParameters() }));
  const weights = made.map(({ part, dWeight }) => [`w${part}`, dWeight] as const);
  const biases = made.flatMap(({ part, dBias }) => (dBias ? [[`b${part}`, dBias] as const] : []));
  return Object.fromEntries([...weights, ...biases]) as unknown as MultiHeadParameterGradients;
}

export function multiHeadBackward(memory: EngineMemory, dOutputLike: TensorLike, layer: LayerParts, asGiven: LayerArguments): MultiHeadGradients {
  const given = writable(memory, asGiven);
  const { x, context, options } = given;
  const dOutput = numbers(dOutputLike, 'dOutput', x.shape.length);
  expectShape(dOutput, 'dOutput', x.shape, "the output's shape, which is x's");
  const frame = memory.frame();
  const call = new HeadsCall(memory, frame, layer, given, { ...options, ...EXTRAS });
  const attention = new AttentionBackwardCall(memory, frame, call.heads, options);
  const { parameters } = layer;
  const linear = (rows: Numbers, part: 'q' | 'k' | 'v' | 'o') =>
    new LinearBackwardCall(memory, frame, rowsOf(rows), parameters[`w${part}`]!, parameters[`b${part}`]);
  const linears = { q: linear(x, 'q'), k: linear(context, 'k'), v: linear(context, 'v'), o: linear(x, 'o') };
  const { q, k, v, o } = linears;
  const [dQuery, dKey, dValue] = [call.query, call.key, call.value].map(({ shape }) => frame.output(shape)) as [Block, Block, Block];
  const dOut = frame.input(dOutput);

  call.run('backward');
  o.run('backward', dOut, call.mixed);
  attention.run('backward', { dOutput: o.dX, query: call.query.out, key: call.key.out, value: call.value.out, dQuery, dKey, dValue });
  call.turnBack('backward', dQuery, dKey);
  const gradient = (from: Block, { shape }: LinearCall) => frame.read(from, shape);
  if (x !== asGiven.x) hideUnseen(memory, x, call.x, [gradient(dQuery, call.query)]);
  q.run('backward', dQuery, call.x);
  if (context !== asGiven.context) hideUnseen(memory, context, call.context, [gradient(dKey, call.key), gradient(dValue, call.value)]);
  k.run('backward', dKey, call.context);
  v.run('backward', dValue, call.context);
  const dX = frame.read(q.dX, x.shape);
  const dContext = sumOf(frame.read(k.dX, context.shape), frame.read(v.dX, context.shape));
  return {
    ...(options.context === undefined ? { dX: sumOf(dX, dContext) } : { dX, dContext }),
    dParameters: parameterGradients(linears),
    ...attention.ofOptions(),
  };
}
