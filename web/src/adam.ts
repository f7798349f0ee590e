import { type Destination, expectNames, expectShape, finite, inPlace, invalid, nameAt, type Numbers, numbers } from './arguments.js';
import { check, QkvError } from './errors.js';
import type { Block, EngineMemory } from './memory.js';
import { describe, overlap, sizeOf, type TensorLike } from './tensor.js';

/** How far and by what measure adam() steps. */
export interface AdamOptions {
  /** The learning rate: about how far a parameter goes in a step. At least 0, default 1e-3. */
  lr?: number | undefined;
  /**
   * What stays of the means of the gradients and of their squares from step to step; from 0, below 1. Default
   * [0.9, 0.999].
   */
  betas?: readonly [number, number] | undefined;
  /** Added to the root of the mean square, after its bias is corrected. At least 0, default 1e-8. */
  eps?: number | undefined;
  /**
   * Decoupled weight decay: before its step a parameter loses `lr * weightDecay` of itself (Loshchilov & Hutter,
   * "Decoupled Weight Decay Regularization", 2019). At least 0, default 0.
   */
  weightDecay?: number | undefined;
  /**
   * The largest norm of all gradients together: where theirs is larger, all are shrunk by one factor (Pascanu,
   * Mikolov & Bengio, 2013). Above 0, default none.
   */
  clip?: number | undefined;
}

/** What is kept from step to step in the engine's memory, for parameters of these shapes. */
interface Kept {
  readonly shapes: readonly (readonly number[])[];
  readonly count: number;
  readonly blocks: Record<'parameters' | 'gradients' | 'mean' | 'square' | 'settings' | 'fault' | 'workspace', Block>;
  release(): void;
}

const BYTES_PER_FLOAT = 4;
const BYTES_PER_DOUBLE = 8;

/** In the order of cpp/bindings/adam_settings.hpp, the powers of both betas last. `name` is that of the options. */
export function adamSettings(options: AdamOptions, name: string, learningRate = 1e-3): Float64Array {
  expectNames(options, name, ['lr', 'betas', 'eps', 'weightDecay', 'clip']);
  const { lr = learningRate, betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0, clip } = options;
  if (!Array.isArray(betas) || betas.length !== 2) {
    return invalid(`betas is ${Array.isArray(betas) ? `an array of ${betas.length}` : describe(betas)}, expected two numbers.`);
  }
  finite(lr, 'lr', 0);
  betas.forEach((beta: number, i) => {
    if (typeof beta !== 'number' || !(beta >= 0 && beta < 1)) invalid(`betas[${i}] is ${describe(beta)}, expected a number from 0, below 1.`);
  });
  finite(eps, 'eps', 0);
  finite(weightDecay, 'weightDecay', 0);
  if (clip !== undefined && (typeof clip !== 'number' || !(clip > 0))) invalid(`clip is ${describe(clip)}, expected a number above 0.`);
  return Float64Array.of(lr, ...betas, eps, weightDecay, clip ?? Infinity, 1, 1);
}

function listOf<Given, Checked>(
  given: readonly Given[],
  name: string,
  count: number | undefined,
  checked: (entry: Given, name: string) => Checked,
): Checked[] {
  if (!Array.isArray(given)) return invalid(`${name} is ${describe(given)}, expected an array of tensors.`);
  if (count !== undefined && given.length !== count) {
    throw new QkvError('SHAPE_MISMATCH', `${name} has ${given.length} tensors, expected ${count}, one for each parameter.`);
  }
  // By index, since map() passes over holes.
  return Array.from(given as readonly Given[], (entry, i) => checked(entry, `${name}[${i}]`));
}

/**
 * Adam (Kingma & Ba, "Adam: A Method for Stochastic Optimization", 2015): a step down the gradient, of each
 * parameter by its own measure. Made by engine.adam(). It keeps two numbers for each parameter in the engine's
 * memory, until it is disposed.
 */
export class Adam {
  readonly #alive: (method: string) => EngineMemory;
  readonly #settings: Float64Array;
  #kept: Kept | undefined;
  #steps = 0;
  #disposed = false;

  /** @internal Use engine.adam(). */
  constructor(alive: (method: string) => EngineMemory, options: AdamOptions) {
    this.#settings = adamSettings(options, 'adam: options');
    this.#alive = alive;
  }

  /**
   * One step, the t-th: with g the gradients, clipped,
   * - `mean = beta1 mean + (1 - beta1) g`, `square = beta2 square + (1 - beta2) g^2`,
   * - `parameter -= lr weightDecay parameter`,
   * - `parameter -= lr (mean / (1 - beta1^t)) / (sqrt(square / (1 - beta2^t)) + eps)`.
   *
   * Gradients below 2^-50 count as 0. Of a step that fails nothing is written, and none is counted.
   *
   * @param parameters tensors with float32 data, which are written to; of the same shapes in every step
   * @param gradients one of its shape for each parameter
   * @returns parameters
   * @throws QkvError SHAPE_MISMATCH: other shapes or another number of tensors; INVALID_ARGUMENT: parameters that
   *   share memory; the first number that is NaN or infinite, or a gradient whose square, once clipped, would be,
   *   named with its tensor and step
   */
  step<const Parameters extends readonly Destination[]>(parameters: Parameters, gradients: readonly TensorLike[]): Parameters {
    const memory = this.#use('step');
    const places = listOf(parameters, 'parameters', this.#kept?.shapes.length, inPlace);
    places.forEach(({ data }, i) => {
      const other = places.slice(0, i).findIndex((earlier) => overlap(earlier.data, data));
      if (other >= 0) invalid(`parameters[${i}] shares memory with parameters[${other}], expected each to have its own.`);
      if (this.#kept) expectShape(places[i]!, `parameters[${i}]`, this.#kept.shapes[i]!, 'as in the first step');
    });
    const slopes = listOf(gradients, 'gradients', places.length, (entry, name) => numbers(entry, name));
    slopes.forEach((slope, i) => expectShape(slope, `gradients[${i}]`, places[i]!.shape, `the shape of parameters[${i}]`));
    const kept = this.#kept ?? this.#keep(memory, places);
    try {
      this.#write(memory, kept.blocks.parameters, places);
      this.#write(memory, kept.blocks.gradients, slopes);
      this.#run(memory, kept);
    } catch (error) {
      // A first step that fails says nothing of the shapes of the next.
      if (kept !== this.#kept) kept.release();
      throw error;
    }
    this.#kept = kept;
    let at = kept.blocks.parameters.address;
    for (const { data } of places) {
      memory.read(at, data);
      at += data.byteLength;
    }
    this.#steps++;
    return parameters;
  }

  /** Takes memory for tensors of these shapes, side by side. */
  #keep(memory: EngineMemory, places: readonly Numbers[]): Kept {
    const count = places.reduce((sum, { data }) => sum + data.length, 0);
    const numberBytes = count * BYTES_PER_FLOAT;
    const sizes = [...Array<number>(4).fill(numberBytes), this.#settings.byteLength, BYTES_PER_DOUBLE, memory.module.adamWorkspaceBytes(count)];
    const { blocks, release } = memory.hold(sizes, 'adam.step');
    const [parameters, gradients, mean, square, settings, fault, workspace] = blocks as [Block, Block, Block, Block, Block, Block, Block];
    for (const { address } of [mean, square]) memory.write(address, new Float32Array(count));
    memory.write(settings.address, this.#settings);
    const shapes = places.map(({ shape }) => shape);
    return { shapes, count, blocks: { parameters, gradients, mean, square, settings, fault, workspace }, release };
  }

  #write(memory: EngineMemory, { address }: Block, tensors: readonly Numbers[]): void {
    for (const tensor of tensors) {
      const elements = memory.elements(tensor);
      memory.write(address, elements);
      address += elements.byteLength;
    }
  }

  #run(memory: EngineMemory, { shapes, count, blocks }: Kept): void {
    const status = memory.call('adam', [{ ...blocks, count, workspaceBytes: blocks.workspace.bytes }]);
    const fault = new Int32Array(2);
    memory.read(blocks.fault.address, fault);
    let [inParameters, element] = fault as unknown as [number, number];
    if (element < 0) return check(memory.module, status, 'adam.step');
    const tensor = shapes.findIndex((shape) => {
      if (element < sizeOf(shape)) return true;
      element -= sizeOf(shape);
      return false;
    });
    const found = new Float32Array(1);
    memory.read(blocks[inParameters ? 'parameters' : 'gradients'].address + fault[1]! * BYTES_PER_FLOAT, found);
    const name = `${inParameters ? 'parameters' : 'gradients'}[${tensor}]`;
    const expected = Number.isFinite(found[0]) ? 'one below 2^63, whose square is finite; clip shrinks gradients' : 'a finite number';
    invalid(`${nameAt(name, element, shapes[tensor]!)} is ${found[0]} in step ${this.#steps + 1}, expected ${expected}.`);
  }

  /** Gives its memory back to the engine. Disposing twice is harmless. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#kept?.release();
  }

  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  #use(method: string): EngineMemory {
    if (this.#disposed) throw new QkvError('DISPOSED', `adam.${method}: this optimizer was disposed; engine.adam() gives a new one.`);
    return this.#alive(`adam.${method}`);
  }
}
