// Where the suites are, and their cases. They are not part of the project: whoever has them says where.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { GraphNode } from './graph.js';
import type { Attribute } from './node.js';
import { type Description, isHalf, readValue, type Value } from './values.js';

/** Outputs; of the last also gradients. */
export const SUITES = ['onnx', 'ort'] as const;
export const GRADIENT_SUITE = 'tfjs';
export type Suite = (typeof SUITES)[number] | typeof GRADIENT_SUITE;

/** A line of a suite's index. */
export interface Entry {
  readonly name: string;
  readonly family: string;
  readonly op: string;
}

export interface Tolerance {
  readonly rtol: number;
  readonly atol: number;
}

export interface GradientTolerance {
  readonly gradient_rtol: number;
  readonly gradient_atol: number;
}

export interface Case {
  readonly suite: Suite;
  readonly name: string;
  readonly op: string;
  readonly domain: string;
  readonly opset: number;
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly graph?: readonly GraphNode[];
  /** null where one is left out. */
  readonly inputs: readonly (Description | null)[];
  readonly outputs: readonly (Description | null)[];
  readonly tolerance: Tolerance & Partial<GradientTolerance>;
  readonly data: string;
  /** A loss's gradient by each output, or null where it has none, and by each input. */
  readonly upstream?: readonly (Description | null)[];
  readonly gradients?: readonly (Description | null)[];
}

function projectRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (dirname(folder) !== folder) {
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest) && (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }).name === 'qkv') return folder;
    folder = dirname(folder);
  }
  throw new Error('no folder above this test has the package.json of qkv');
}

const told = process.env['QKV_CONFORMANCE'];
const folder = told ?? join(projectRoot(), '..', 'shared', 'conformance');

/** Undefined where the suite is not there; a folder that was named has to have one. */
export function entriesOf(suite: Suite): Entry[] | undefined {
  const index = join(folder, suite, 'index.json');
  if (existsSync(index)) return JSON.parse(readFileSync(index, 'utf8')) as Entry[];
  if (told !== undefined && ![...SUITES, GRADIENT_SUITE].some((name) => existsSync(join(folder, name, 'index.json')))) {
    throw new Error(`QKV_CONFORMANCE is ${told}, which has none of onnx/index.json, ort/index.json and tfjs/index.json in it`);
  }
  return undefined;
}

type Values = (Value | null)[];

export function loadCase(suite: Suite, name: string) {
  const place = join(folder, suite, name);
  const one: Case = { ...(JSON.parse(readFileSync(join(place, 'case.json'), 'utf8')) as Case), suite };
  const file = readFileSync(join(place, one.data));
  const read = (description: Description | null): Value | null => description && readValue(description, file);
  const [upstream, gradients] = [one.upstream ?? [], one.gradients ?? []].map((list) => list.map(read)) as [Values, Values];
  return { case: one, inputs: one.inputs.map(read), expected: one.outputs.map(read), upstream, gradients };
}

const HALF_SOFTMAX: readonly unknown[] = [10, 16];

/**
 * The onnx suite's own tolerance is wide for float32: its outputs are those of double precision rounded once,
 * and this is what its notes say a float32 implementation can be held to. Of a half-float it allows little
 * more than one unit.
 */
export function toleranceOf({ suite, inputs, outputs, attributes, tolerance }: Case): Tolerance {
  const half =
    HALF_SOFTMAX.includes(attributes['softmax_precision']?.value) ||
    [...inputs, ...outputs].some((description) => description && isHalf(description.dtype));
  return suite === 'onnx' && !half ? { rtol: 1e-5, atol: 1e-6 } : tolerance;
}

/** "attention 66 of 66, gelu 4 of 4" */
export function byFamily(entries: readonly Entry[], passed: ReadonlyMap<string, unknown>): string {
  const families = [...new Set(entries.map(({ family }) => family))];
  return families
    .map((family) => entries.filter((entry) => entry.family === family))
    .map((own) => `${own[0]!.family} ${own.filter(({ name }) => passed.has(name)).length} of ${own.length}`)
    .join(', ');
}
