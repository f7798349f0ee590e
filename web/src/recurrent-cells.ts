import { BuildingBlocks } from './building-blocks.js';
import type { EngineMemory } from './memory.js';
import { recurrent, recurrentStep } from './recurrent.js';
import {
  type LstmGradients, type LstmOutputGradients, recurrentBackward, type RecurrentGradients, type RecurrentOutputGradients,
} from './recurrent-backward.js';
import type {
  BothDirections, GruOptions, GruStepOptions, LstmOptions, LstmParameters, LstmResult, LstmState, LstmStepOptions,
  RecurrentParameters, RecurrentResult, RecurrentState, RnnOptions, RnnStepOptions,
} from './recurrent-options.js';
import type { TensorLike } from './tensor.js';

/** The recurrent cells over whole sequences and step by step, and their gradients. Part of {@link Engine}. */
export class RecurrentCells extends BuildingBlocks {
  readonly #memory: (method: string) => EngineMemory;

  /** @internal `memory` throws where the engine was disposed. */
  constructor(memory: (method: string) => EngineMemory) {
    super(memory);
    this.#memory = memory;
  }

  /**
   * A plain recurrent network (Elman, 1990) over whole sequences:
   * `h_t = tanh(x_t . wx + bx + h_(t-1) . wh + bh)`.
   *
   * @param x (length, inputDim) or (batch, length, inputDim)
   * @param parameters weights (in, out) and biases; `{ forward, reverse }` of these for `direction: 'both'`
   * @param options direction, valid lengths, the first state, the activation
   * @throws QkvError SHAPE_MISMATCH: parameters or states that do not fit x and each other, lengths that are not one
   *   a batch; INVALID_ARGUMENT: a length beyond x, an option that is not known; OUT_OF_MEMORY
   */
  rnn(x: TensorLike, parameters: RecurrentParameters | BothDirections<RecurrentParameters>, options?: RnnOptions): RecurrentResult {
    const memory = this.#memory('rnn');
    return recurrent(memory, 'rnn', x, parameters, options);
  }

  /**
   * Long short-term memory (Hochreiter & Schmidhuber, 1997; with the forget gate of Gers et al., 2000) over whole
   * sequences. With a = x_t . wx + bx + h_(t-1) . wh + bh, whose columns are those of the gates i, f, g, o:
   * `c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g)`, `h_t = sigmoid(o) tanh(c_t)`.
   *
   * @param x (length, inputDim) or (batch, length, inputDim)
   * @param parameters weights, biases and peepholes; `{ forward, reverse }` of these for `direction: 'both'`
   * @param options direction, valid lengths, the first states, the order of the gates
   * @throws QkvError as of {@link rnn}
   */
  lstm(x: TensorLike, parameters: LstmParameters | BothDirections<LstmParameters>, options?: LstmOptions): LstmResult {
    const memory = this.#memory('lstm');
    return recurrent(memory, 'lstm', x, parameters, options);
  }

  /**
   * A gated recurrent unit (Cho et al., 2014) over whole sequences. With a = x_t . wx + bx and
   * s = h_(t-1) . wh + bh, whose columns are those of the gates r, z, n: `r = sigmoid(a_r + s_r)`,
   * `z = sigmoid(a_z + s_z)`, `n = tanh(a_n + r s_n)`, `h_t = (1 - z) n + z h_(t-1)`; with `resetAfter: false`
   * s_n is (r h_(t-1)) . wh + bh and n = tanh(a_n + s_n).
   *
   * @param x (length, inputDim) or (batch, length, inputDim)
   * @param parameters weights and biases; `{ forward, reverse }` of these for `direction: 'both'`
   * @param options direction, valid lengths, the first state, the order of the gates, where the reset comes
   * @throws QkvError as of {@link rnn}
   */
  gru(x: TensorLike, parameters: RecurrentParameters | BothDirections<RecurrentParameters>, options?: GruOptions): RecurrentResult {
    const memory = this.#memory('gru');
    return recurrent(memory, 'gru', x, parameters, options);
  }

  /**
   * One step of {@link rnn}, with the same bits.
   *
   * @param x (inputDim) or (batch, inputDim)
   * @param state the state before the step
   * @param parameters as of rnn() for one direction
   * @param options the activation
   * @returns the state after the step, of h's shape
   */
  rnnStep(x: TensorLike, state: RecurrentState, parameters: RecurrentParameters, options?: RnnStepOptions): Pick<RecurrentResult, 'h'> {
    const memory = this.#memory('rnnStep');
    return recurrentStep(memory, 'rnn', x, state, parameters, options);
  }

  /**
   * One step of {@link lstm}, with the same bits.
   *
   * @param x (inputDim) or (batch, inputDim)
   * @param state h and c before the step
   * @param parameters as of lstm() for one direction
   * @param options the order of the gates
   * @returns h and c after the step
   */
  lstmStep(x: TensorLike, state: LstmState, parameters: LstmParameters, options?: LstmStepOptions): Pick<LstmResult, 'h' | 'c'> {
    const memory = this.#memory('lstmStep');
    return recurrentStep(memory, 'lstm', x, state, parameters, options);
  }

  /**
   * One step of {@link gru}, with the same bits.
   *
   * @param x (inputDim) or (batch, inputDim)
   * @param state the state before the step
   * @param parameters as of gru() for one direction
   * @param options the order of the gates, and where the reset comes
   * @returns the state after the step, of h's shape
   */
  gruStep(x: TensorLike, state: RecurrentState, parameters: RecurrentParameters, options?: GruStepOptions): Pick<RecurrentResult, 'h'> {
    const memory = this.#memory('gruStep');
    return recurrentStep(memory, 'gru', x, state, parameters, options);
  }

  /**
   * The gradients of {@link rnn}; see {@link RecurrentGradients} for the formulas. The forward pass is made again.
   *
   * @param gradients the loss's gradients by what rnn() gave: any of dOutputs and dH
   * @param x what rnn() was given, as the next two
   * @param parameters weights and biases; `{ forward, reverse }` of these for `direction: 'both'`
   * @param options the same
   * @throws QkvError as rnn(); SHAPE_MISMATCH: a gradient that has not its output's shape
   */
  rnnBackward<const Parameters extends RecurrentParameters | BothDirections<RecurrentParameters>>(
    gradients: RecurrentOutputGradients,
    x: TensorLike,
    parameters: Parameters,
    options?: RnnOptions,
  ): RecurrentGradients<Parameters> {
    const memory = this.#memory('rnnBackward');
    return recurrentBackward(memory, 'rnn', gradients, x, parameters, options);
  }

  /**
   * The gradients of {@link lstm}; see {@link rnnBackward}.
   *
   * @param gradients the loss's gradients by what lstm() gave: any of dOutputs, dH and dC
   * @param x what lstm() was given, as the next two
   * @param parameters weights, biases and peepholes; `{ forward, reverse }` of these for `direction: 'both'`
   * @param options the same
   * @throws QkvError as lstm(); SHAPE_MISMATCH: a gradient that has not its output's shape
   */
  lstmBackward<const Parameters extends LstmParameters | BothDirections<LstmParameters>>(
    gradients: LstmOutputGradients,
    x: TensorLike,
    parameters: Parameters,
    options?: LstmOptions,
  ): LstmGradients<Parameters> {
    const memory = this.#memory('lstmBackward');
    return recurrentBackward(memory, 'lstm', gradients, x, parameters, options);
  }

  /**
   * The gradients of {@link gru}; see {@link rnnBackward}.
   *
   * @param gradients the loss's gradients by what gru() gave: any of dOutputs and dH
   * @param x what gru() was given, as the next two
   * @param parameters weights and biases; `{ forward, reverse }` of these for `direction: 'both'`
   * @param options the same
   * @throws QkvError as gru(); SHAPE_MISMATCH: a gradient that has not its output's shape
   */
  gruBackward<const Parameters extends RecurrentParameters | BothDirections<RecurrentParameters>>(
    gradients: RecurrentOutputGradients,
    x: TensorLike,
    parameters: Parameters,
    options?: GruOptions,
  ): RecurrentGradients<Parameters> {
    const memory = this.#memory('gruBackward');
    return recurrentBackward(memory, 'gru', gradients, x, parameters, options);
  }
}
