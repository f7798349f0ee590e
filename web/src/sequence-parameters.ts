import { expectShape, invalid, nameAt, type Numbers, numbers } from './arguments.js';
import type { Block, EngineMemory } from './memory.js';
import type { RawModule } from './module.js';
import type { NamedTensors } from './recurrent-import.js';
import { readSafetensors, writeSafetensors } from './safetensors.js';
import { modelFields, type SequenceSettings, STRUCTURE } from './sequence-options.js';
import { allocate, classOf, describe, frozen, isBytes, sizeOf, Tensor } from './tensor.js';

/** Where a parameter lies in a block of all of them. */
export interface Place {
  readonly name: string;
  readonly shape: readonly number[];
  /** In elements. */
  readonly offset: number;
}

const BYTES_PER_FLOAT = 4;
/** How a file says that a model of ours wrote it, and by which rules. */
const FORMAT = 'qkv-sequence-model';
const VERSION = '1';

/** The parameters of a model in the order of the block, as the core lists them. `scratch` holds 4 integers. */
export function placesOf(memory: EngineMemory, settings: SequenceSettings, scratch: Block): Place[] {
  const { module } = memory;
  const ask = (question: (module: RawModule, call: number) => number) => memory.ask('sequence', [modelFields(settings)], (call) => question(module, call));
  const places: Place[] = [];
  for (;;) {
    const name = ask((core, call) => core.sequenceParameter(call, places.length, scratch.address));
    if (name === 0) return places;
    const told = new Int32Array(4);
    memory.read(scratch.address, told);
    const [layer, rows, columns, offset] = told as unknown as [number, number, number, number];
    places.push({ name: memory.text(name).replace('#', String(layer)), shape: frozen(rows === 0 ? [columns] : [rows, columns]), offset });
  }
}

/** The parameter that element `element` of a block belongs to, and the element's own indices: "[3][2]". */
export function elementAt(places: readonly Place[], element: number): { name: string; indices: string } {
  const { name, shape, offset } = places.filter((place) => place.offset <= element).at(-1)!;
  return { name, indices: nameAt('', element - offset, shape) };
}

/** Copies of what lies in a block, by name. */
export function readAll(memory: EngineMemory, places: readonly Place[], block: Block): Record<string, Tensor> {
  return Object.fromEntries(places.map(({ name, shape, offset }) => {
    const data = allocate(sizeOf(shape), name);
    memory.read(block.address + offset * BYTES_PER_FLOAT, data);
    return [name, new Tensor(data, shape)];
  }));
}

/** A file of the parameters, which says by its model's options, as JSON, what they are of. */
export const toFile = (parameters: Readonly<Record<string, Tensor>>, options: string): Uint8Array<ArrayBuffer> =>
  writeSafetensors(parameters, { format: FORMAT, version: VERSION, options });

/** A model's own file has to be of a model like this one; one of other tools has to have its names and shapes. */
function expectModel(metadata: ReadonlyMap<string, string>, settings: SequenceSettings): void {
  if (metadata.get('format') !== FORMAT) return;
  const version = metadata.get('version');
  if (version !== VERSION) invalid(`load: the file's version is ${describe(version)}, expected ${describe(VERSION)}.`);
  let options: unknown;
  try {
    options = JSON.parse(metadata.get('options') ?? '');
  } catch {
    // Refused below.
  }
  if (typeof options !== 'object' || options === null) return invalid(`load: the file's options are ${describe(metadata.get('options'))}, expected the JSON of an object.`);
  for (const name of STRUCTURE) {
    const theirs = (options as Record<string, unknown>)[name];
    if (theirs !== settings[name]) invalid(`load: the file's model has ${name} ${describe(theirs)}, expected ${describe(settings[name])} as in this one.`);
  }
}

/** Numbers for each place, all of them or an error. */
export function readGiven(from: Uint8Array | NamedTensors, places: readonly Place[], settings: SequenceSettings): Numbers[] {
  const names = places.map(({ name }) => name);
  let given: ReadonlyMap<string, unknown>;
  if (isBytes(from)) {
    const { tensors, metadata } = readSafetensors(from);
    expectModel(metadata, settings);
    given = tensors;
  } else {
    if (classOf(from) !== 'Object') {
      invalid(`load: ${describe(from)} came, expected the bytes of a file in a Uint8Array, or an object of tensors by name.`);
    }
    given = new Map(Object.entries(from));
  }
  for (const name of given.keys()) if (!names.includes(name)) invalid(`load: the model has no ${describe(name)}, expected ${names.join(', ')}.`);
  return places.map(({ name, shape }) => {
    if (!given.has(name)) return invalid(`load: there is no ${name}, expected all of ${names.join(', ')}.`);
    const tensor = numbers(given.get(name) as Numbers, `load: ${name}`);
    expectShape(tensor, `load: ${name}`, shape, "as in this model");
    return tensor;
  });
}
