import { adamSettings } from './adam.js';
import { finite, type IndicesLike, invalid } from './arguments.js';
import { check, QkvError } from './errors.js';
import type { Block, EngineMemory, Frame } from './memory.js';
import type { Calls } from './module.js';
import type { NamedTensors } from './recurrent-import.js';
import { inputFields, readInputs, readTargets, type SequenceInputs, type SequenceOptions, type TrainStepOptions } from './sequence-inputs.js';
import { modelFields, type Readout, type SequenceModelOptions, type SequenceSettings, sequenceSettings, startFields } from './sequence-options.js';
import { elementAt, type Place, placesOf, readAll, readGiven, toFile } from './sequence-parameters.js';
import type { SequenceForward, SequenceGradients, SequenceResult } from './sequence-results.js';
import { allocate, sizeOf, Tensor } from './tensor.js';

/** As in cpp/include/qkv/sequence_model.hpp. */
const TASKS = ['start', 'forward', 'evaluate', 'gradients', 'train', 'weights'] as const;
type Task = (typeof TASKS)[number];
const FAULTS = ['', 'the loss', 'the gradient of', 'the parameter', 'the new value of'];
const LOSS_FAULT = 1;
const LEARNING_RATE = 3e-3;

const BYTES_PER_FLOAT = 4;
const SCRATCH_BYTES = 16;

type Fields = Calls['sequence'];
type Blocks = Readonly<Record<'parameters' | 'gradients' | 'mean' | 'square' | 'settings' | 'result' | 'scratch', Block>>;

/** What a model keeps in the engine's memory until it is disposed. */
interface Held {
  readonly blocks: Blocks;
  readonly count: number;
  release(): void;
}

function hold(memory: EngineMemory, model: Fields, settings: Float64Array): Held {
  const count = memory.ask('sequence', [model], (call) => memory.module.sequenceParameterCount(call));
  const sizes = [...Array<number>(4).fill(count * BYTES_PER_FLOAT), settings.byteLength, SCRATCH_BYTES, SCRATCH_BYTES];
  const { blocks, release } = memory.hold(sizes, 'sequenceModel');
  const [parameters, gradients, mean, square, settingsBlock, result, scratch] = blocks as [Block, Block, Block, Block, Block, Block, Block];
  return { blocks: { parameters, gradients, mean, square, settings: settingsBlock, result, scratch }, count, release };
}

/**
 * A small model that learns about sequences of tokens, wholly in the core: an embedding, positions, mixers and a
 * readout, see {@link SequenceModelOptions}. Made by engine.sequenceModel(). Parameters, their gradients and the
 * optimizer's state lie in the engine's memory until it is disposed.
 *
 * Tokens are (length) or (batch, length). A sequence's results depend neither on the rest of its batch nor on the
 * number of threads; the same seed and the same calls give the same bits.
 */
export class SequenceModel<Kind extends Readout = Readout> {
  /** How many numbers it learns. */
  readonly parameterCount: number;
  readonly #alive: (method: string) => EngineMemory;
  readonly #settings: SequenceSettings;
  /** As they were: what is inside of them stays the caller's. */
  readonly #json: string;
  readonly #model: Fields;
  readonly #optimizer: Float64Array;
  readonly #held: Held;
  readonly #places: readonly Place[];
  #steps = 0;
  #disposed = false;

  /** @internal Use engine.sequenceModel(). */
  constructor(alive: (method: string) => EngineMemory, options: SequenceModelOptions) {
    this.#settings = sequenceSettings(options);
    this.#optimizer = adamSettings(this.#settings.optimizer, 'optimizer', LEARNING_RATE);
    this.#json = JSON.stringify(this.#settings);
    this.#model = modelFields(this.#settings);
    this.#alive = alive;
    const memory = alive('sequenceModel');
    this.#held = hold(memory, this.#model, this.#optimizer);
    this.parameterCount = this.#held.count;
    try {
      this.#places = placesOf(memory, this.#settings, this.#held.blocks.scratch);
      this.#run(memory, memory.frame(), 'sequenceModel', 'start', startFields(this.#settings));
      this.#restart(memory);
    } catch (error) {
      this.#held.release();
      throw error;
    }
  }

  /**
   * Copies of all that it learns, by name: `embedding` (vocab, embedDim), `positions` (maxLength, embedDim); of layer
   * i `layers.i.wq`, `.wk`, `.wv`, `.wo` (embedDim, embedDim), or `.wx`, `.wh` (embedDim, gates * embedDim), `.bx`,
   * `.bh` (gates * embedDim); `readout.weight` (embedDim, classes) and `readout.bias` (classes). Those that the
   * options leave out are not there. Give them back with load().
   */
  get parameters(): Record<string, Tensor> {
    return readAll(this.#use('parameters'), this.#places, this.#held.blocks.parameters);
  }

  /** How many steps it has made since it started, or was loaded. */
  get steps(): number {
    return this.#steps;
  }

  /**
   * What it answers.
   *
   * @param tokens whole numbers below vocab, (length) or (batch, length)
   * @param options which of them are valid, which are read, and a context
   * @throws QkvError INVALID_ARGUMENT: a token, length or position out of its range, an option that the model cannot
   *   have; SHAPE_MISMATCH
   */
  forward(tokens: IndicesLike, options: SequenceOptions = {}): SequenceForward<Kind> {
    const memory = this.#use('forward');
    const { readout, classes } = this.#settings;
    const inputs = readInputs('forward', this.#settings, tokens, options);
    const { lead, length, keyLength } = inputs;
    const shape = [...lead, ...(readout === 'pointer' ? [keyLength] : readout === 'every' ? [length, classes!] : [classes!])];
    const answers = this.#output(memory, 'forward', inputs, shape);
    return (readout === 'pointer' ? { weights: answers } : { logits: answers }) as SequenceForward as SequenceForward<Kind>;
  }

  /**
   * The weights of attention, of every row of every layer.
   *
   * @param tokens whole numbers below vocab, (length) or (batch, length)
   * @param options as of forward()
   * @returns for each layer (heads, length, keyLength) or (batch, heads, length, keyLength), the last axis being the
   *   context's where there is one; 0 beyond the lengths of the keys
   * @throws QkvError as forward(); UNSUPPORTED: a cell has no weights
   */
  weights(tokens: IndicesLike, options: SequenceOptions = {}): Tensor[] {
    const memory = this.#use('weights');
    const { mixer, layers, numHeads } = this.#settings;
    if (mixer !== 'attention') throw new QkvError('UNSUPPORTED', `weights: this model's mixer is '${mixer}', and only 'attention' has weights.`);
    const inputs = readInputs('weights', this.#settings, tokens, options);
    const shape = Object.freeze([...inputs.lead, numHeads, inputs.length, inputs.keyLength]);
    const all = this.#output(memory, 'weights', inputs, [layers, ...shape]).data;
    const size = sizeOf(shape);
    return Array.from({ length: layers }, (_, layer) => new Tensor(all.slice(layer * size, (layer + 1) * size), shape));
  }

  /**
   * How well it answers, without learning from it.
   *
   * @param tokens whole numbers below vocab, (length) or (batch, length)
   * @param targets the right answers. With readout `'last'` a class, with `'pointer'` a position that the row that is
   *   read sees: a number, or for a batch (batch). With `'every'` of the tokens' shape, a class for each of them, or -1
   *   for those that are not asked
   * @param options as of forward()
   * @throws QkvError as forward(), and for targets likewise
   */
  evaluate(tokens: IndicesLike, targets: number | IndicesLike, options: SequenceOptions = {}): SequenceResult {
    return this.#answer('evaluate', 'evaluate', tokens, targets, options).result;
  }

  /**
   * The loss's gradients by the parameters, without a step.
   *
   * @param tokens whole numbers below vocab, (length) or (batch, length)
   * @param targets as of evaluate()
   * @param options as of forward()
   * @throws QkvError as evaluate()
   */
  gradients(tokens: IndicesLike, targets: number | IndicesLike, options: SequenceOptions = {}): SequenceGradients {
    const { gradients } = this.#held.blocks;
    const { memory, result } = this.#answer('gradients', 'gradients', tokens, targets, options, { gradients });
    return { ...result, gradients: readAll(memory, this.#places, gradients) };
  }

  /**
   * How much each position matters to the loss: the Euclidean norm of the loss's gradient by its row, the token's of the
   * embedding plus its position.
   *
   * @param tokens whole numbers below vocab, (length) or (batch, length)
   * @param targets as of evaluate()
   * @param options as of forward()
   * @returns a number from 0 for each token, of the tokens' shape
   * @throws QkvError as evaluate()
   */
  inputGradients(tokens: IndicesLike, targets: number | IndicesLike, options: SequenceOptions = {}): Tensor {
    const { gradients } = this.#held.blocks;
    const { frame, inputs, inputNorms } = this.#answer('inputGradients', 'gradients', tokens, targets, options, { gradients });
    return frame.read(inputNorms, [...inputs.lead, inputs.length]);
  }

  /**
   * A step of its optimizer down the loss's gradients.
   *
   * @param tokens whole numbers below vocab, (length) or (batch, length)
   * @param targets as of evaluate()
   * @param options as of forward(), and the learning rate of this step
   * @returns how well it answered before the step
   * @throws QkvError as evaluate(); INVALID_ARGUMENT: a gradient that is not finite, or whose square, once clipped, is
   *   not; with the option `check` a loss or a new parameter likewise. The error names the tensor and the step, of
   *   which nothing is kept
   */
  trainStep(tokens: IndicesLike, targets: number | IndicesLike, options: TrainStepOptions = {}): SequenceResult {
    const { settings, gradients, mean, square, scratch } = this.#held.blocks;
    const { result } = this.#answer('trainStep', 'train', tokens, targets, options, {
      gradients, mean, square, settings, check: this.#settings.check, fault: scratch,
    });
    this.#steps++;
    return result;
  }

  /**
   * Everything that it has learned, as a file: https://github.com/huggingface/safetensors, float32. Its metadata holds
   * the format `qkv-sequence-model`, a version, and the options as JSON.
   */
  save(): Uint8Array<ArrayBuffer> {
    return toFile(readAll(this.#use('save'), this.#places, this.#held.blocks.parameters), this.#json);
  }

  /**
   * Takes parameters over, all or, after an error, none of them, and starts the optimizer anew.
   *
   * @param from a safetensors file, F32, F16, BF16 or F64, or tensors by the names of `parameters`. A file that save()
   *   made has to be of a model with the same options but for those of starts and steps
   * @throws QkvError INVALID_ARGUMENT: a file that is broken, or of another model; a name that is missing or not known;
   *   SHAPE_MISMATCH
   */
  load(from: Uint8Array | NamedTensors): void {
    const memory = this.#use('load');
    // Resident ones may be another engine's: all are found before the first is written.
    const given = readGiven(from, this.#places, this.#settings).map((tensor) => memory.elements(tensor));
    given.forEach((elements, i) => memory.write(this.#held.blocks.parameters.address + this.#places[i]!.offset * BYTES_PER_FLOAT, elements));
    this.#restart(memory);
  }

  /** Gives its memory back to the engine. Disposing twice is harmless. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#held.release();
  }

  /** dispose(), for a `using` declaration. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The optimizer as before its first step. */
  #restart(memory: EngineMemory): void {
    const { mean, square, settings } = this.#held.blocks;
    const zeros = allocate(this.parameterCount, 'sequenceModel');
    for (const { address } of [mean, square]) memory.write(address, zeros);
    memory.write(settings.address, this.#optimizer);
    this.#steps = 0;
  }

  #output(memory: EngineMemory, task: 'forward' | 'weights', inputs: SequenceInputs, shape: readonly number[]): Tensor {
    const frame = memory.frame();
    const output = frame.output(shape);
    this.#run(memory, frame, task, task, inputFields(frame, inputs), { output });
    return frame.read(output, shape);
  }

  /** The loss of answers, and what a task makes of it: `method` is what the user called. */
  #answer(method: string, task: Task, tokens: IndicesLike, targetsLike: number | IndicesLike, options: TrainStepOptions, more: Fields = {}) {
    const memory = this.#use(method);
    const inputs = readInputs(method, this.#settings, tokens, options, task === 'train' ? ['lr'] : []);
    const targets = readTargets(this.#settings, inputs, targetsLike);
    const { lr = this.#optimizer[0]! } = options;
    const { result, settings } = this.#held.blocks;
    if (task === 'train') memory.write(settings.address, Float64Array.of(finite(lr, 'lr', 0)));
    const frame = memory.frame();
    const inputNorms = frame.output([inputs.batch, inputs.length], method === 'inputGradients');
    this.#run(memory, frame, method, task, inputFields(frame, inputs), { targets: frame.input(targets), inputNorms, result }, more);
    const told = new Float64Array(2);
    memory.read(result.address, told);
    const [loss, accuracy] = told as unknown as [number, number];
    return { memory, frame, inputs, inputNorms, result: { loss, accuracy } };
  }

  #run(memory: EngineMemory, frame: Frame, method: string, task: Task, ...more: Fields[]): void {
    // Sets side by side: to make one of them would take longer than the core takes for a small step.
    const fields = [this.#model, { task: TASKS.indexOf(task), parameters: this.#held.blocks.parameters }, ...more];
    const scratch = frame.workspace(memory.ask('sequence', fields, (call) => memory.module.sequenceWorkspaceBytes(call)));
    const status = frame.call(method, 'sequence', ...fields, scratch);
    if (status !== memory.module.OK && task === 'train') this.#expectNumbers(memory);
    check(memory.module, status, method);
  }

  /** Why a step was refused. */
  #expectNumbers(memory: EngineMemory): void {
    const [told, value] = [new Int32Array(2), new Float32Array(1)];
    const { address } = this.#held.blocks.scratch;
    memory.read(address, told);
    memory.read(address + told.byteLength, value);
    const [what, element] = told as unknown as [number, number];
    if (what === 0) return;
    const { name, indices } = what === LOSS_FAULT ? { name: '', indices: '' } : elementAt(this.#places, element);
    const expected = Number.isFinite(value[0]) ? 'one below 2^63, whose square is finite; clip shrinks gradients' : 'a finite number';
    invalid(`trainStep: ${`${FAULTS[what]} ${name}`.trim()} holds ${value[0]} at step ${this.#steps + 1}${indices && `, in ${indices}`}, expected ${expected}; nothing has changed.`);
  }

  #use(method: string): EngineMemory {
    if (this.#disposed) throw new QkvError('DISPOSED', `sequenceModel.${method}: this model was disposed; engine.sequenceModel() gives a new one.`);
    return this.#alive(`sequenceModel.${method}`);
  }
}
