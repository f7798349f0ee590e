import { expectOptions, expectShape, invalid, type Numbers, numbers } from './arguments.js';
import type { ParameterName } from './multi-head.js';
import type { TensorLike } from './tensor.js';

/** Whose names and layouts parameters have. */
export type ParameterSource = 'qkv' | 'pytorch' | 'keras' | 'onnx';

/** Our shape of each parameter that a layer has, (in, out). */
export type ParameterShapes = Readonly<Partial<Record<ParameterName, readonly number[]>>>;

interface LayerSizes {
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
}

const NAMES: readonly ParameterName[] = ['wq', 'wk', 'wv', 'wo', 'bq', 'bk', 'bv', 'bo'];

interface Source {
  /** Their names for each of ours, in the order of NAMES. */
  readonly names?: readonly (readonly string[])[];
  /** Query, key and value in one: weight and bias. */
  readonly packed?: readonly [weight: string, bias: string];
  /** Weights are (out, in). */
  readonly transposed?: boolean;
  /** Weights and biases have an axis of heads. */
  readonly splitHeads?: boolean;
}

const four = (name: (part: string) => string[]) => ['q', 'k', 'v', 'out'].map(name);

const SOURCES: Readonly<Record<ParameterSource, Source>> = {
  qkv: {},
  onnx: { packed: ['weights', 'bias'] },
  pytorch: {
    names: [
      ...four((part) => [`${part}_proj_weight`, `${part}_proj.weight`, ...(part === 'out' ? ['o_proj.weight'] : [])]),
      ...four((part) => [`${part}_proj.bias`, ...(part === 'out' ? ['o_proj.bias'] : [])]),
    ],
    packed: ['in_proj_weight', 'in_proj_bias'],
    transposed: true,
  },
  keras: {
    names: ['kernel', 'bias'].flatMap((kind) => ['query', 'key', 'value', 'attention_output'].map((part) => [`${part}/${kind}`])),
    splitHeads: true,
  },
};

/** (out, in) to (in, out). */
function transpose({ data, shape }: Numbers): Numbers {
  const [rows, columns] = shape as [number, number];
  return { data: data.map((_, i) => data[(i % rows) * columns + Math.floor(i / rows)]!), shape: [columns, rows] };
}

/** Columns [begin, end) of a weight, or entries of a bias. */
function part({ data, shape }: Numbers, begin: number, end: number): Numbers {
  const columns = shape.at(-1)!;
  const kept = data.filter((_, i) => i % columns >= begin && i % columns < end);
  return { data: kept, shape: [...shape.slice(0, -1), end - begin] };
}

/** A shape of ours in their layout. */
function theirShape(name: ParameterName, ours: readonly number[], source: Source, sizes: LayerSizes): readonly number[] {
  if (source.transposed) return [...ours].reverse();
  if (!source.splitHeads || name === 'bo') return ours;
  const heads = [/[kv]$/.test(name) ? sizes.numKvHeads : sizes.numHeads, sizes.headDim];
  return name === 'wo' ? [...heads, ours[1]!] : [...ours.slice(0, -1), ...heads];
}

/**
 * Numbers for each name in `shapes`, in our layout; undefined for biases that were not given.
 * @throws QkvError where one has another shape, is missing, came twice, or is a bias of a layer without.
 */
export function importParameters(
  parameters: Readonly<Record<string, TensorLike>>,
  from: ParameterSource,
  shapes: ParameterShapes,
  sizes: LayerSizes,
): Partial<Record<ParameterName, Numbers>> {
  const source = SOURCES[from];
  const { names = [], packed = [] } = source;
  expectOptions('load', parameters, [...NAMES, ...names.flat(), ...packed], 'parameters');
  const imported: Partial<Record<ParameterName, Numbers>> = {};
  const origins: Partial<Record<ParameterName, string>> = {};
  const take = (name: ParameterName, theirs: string, given: Numbers) => {
    if (origins[name]) invalid(`parameters has ${origins[name]} and ${theirs}, expected one of them.`);
    origins[name] = theirs;
    imported[name] = given;
  };
  /** Checks the shape as it came, so that a message speaks of what was given. */
  const read = (name: ParameterName, theirs: string, ours: readonly number[] | undefined): Numbers => {
    if (!ours) return invalid(`parameters has ${theirs}, but the layer was made with bias: false, expected only weights.`);
    const given = numbers(parameters[theirs]!, theirs, 1, 2, 3);
    expectShape(given, theirs, theirShape(name, ours, source, sizes), `the layer's sizes as '${from}' has them`);
    if (source.transposed && ours.length === 2) return transpose(given);
    // As it came, so that a resident one stays one.
    return given.shape.length === ours.length ? given : { data: given.data, shape: ours };
  };
  NAMES.forEach((name, i) => {
    for (const theirs of [name, ...(names[i] ?? [])]) {
      if (parameters[theirs] !== undefined) take(name, theirs, read(name, theirs, shapes[name]));
    }
  });
  packed.forEach((theirs, i) => {
    if (parameters[theirs] === undefined) return;
    const three = NAMES.slice(4 * i, 4 * i + 3);
    const widths = three.map((name) => shapes[name]?.at(-1) ?? 0);
    const first = shapes[three[0]!];
    const whole = read(three[0]!, theirs, first && [...first.slice(0, -1), widths.reduce((sum, width) => sum + width)]);
    let begin = 0;
    three.forEach((name, k) => take(name, theirs, part(whole, begin, (begin += widths[k]!))));
  });
  NAMES.slice(0, 4).forEach((name, i) => {
    if (!imported[name]) invalid(`parameters has no ${[name, ...(names[i] ?? [])].join(' or ')}, expected all of wq, wk, wv and wo.`);
  });
  return imported;
}
