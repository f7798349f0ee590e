import type { List } from './arguments.js';
import type { Tensor, TensorLike } from './tensor.js';

/** What an RNN or a GRU learns for one direction; gates lie side by side, one in an RNN and three in a GRU. */
export interface RecurrentParameters {
  /** Weight of the input, (inputDim, gates * hidden). */
  wx: TensorLike;
  /** Weight of the state, (hidden, gates * hidden). */
  wh: TensorLike;
  /** Bias of the input, (gates * hidden), default 0. */
  bx?: TensorLike | undefined;
  /** Bias of the state, (gates * hidden), default 0. */
  bh?: TensorLike | undefined;
}

/** What an LSTM learns for one direction, with four gates. */
export interface LstmParameters extends RecurrentParameters {
  /**
   * (3 * hidden), of the gates i, f and o in every gateOrder (Gers & Schmidhuber, 2000): i and f add their part
   * times the old c to what goes into them, o its part times the new one. Default: none.
   */
  peephole?: TensorLike | undefined;
}

/** With `direction: 'both'`: the parameters of each. */
export interface BothDirections<Parameters> {
  /** Of the direction from the first step to the last. */
  forward: Parameters;
  /** Of the direction from the last step to the first. */
  reverse: Parameters;
}

/** What a run over sequences may be told, whatever the cell. */
export interface RecurrentOptions {
  /**
   * `'reverse'` reads each sequence from its last valid step to its first, `'both'` runs a network in each
   * direction (Schuster & Paliwal, 1997). Outputs are in time order always. Default `'forward'`.
   */
  direction?: 'forward' | 'reverse' | 'both' | undefined;
  /** How many steps of each sequence are valid: one number a batch. Default all. */
  lengths?: List | undefined;
  /** h before the first step: (hidden), or (batch, hidden) for a batch; for 'both' (2, ...) of these. Default 0. */
  h0?: TensorLike | undefined;
}

/** How an RNN computes. */
export interface RnnStepOptions {
  /** tanh(a) (default) or max(0, a). */
  activation?: 'tanh' | 'relu' | undefined;
}

/** How an LSTM computes. */
export interface LstmStepOptions {
  /** The order of the gates in weights and biases: `'ifgo'` (default; PyTorch, Keras) or `'iofg'` (ONNX). */
  gateOrder?: 'ifgo' | 'iofg' | undefined;
}

/** How a GRU computes. */
export interface GruStepOptions {
  /** The order of the gates in weights and biases: `'rzn'` (default; PyTorch) or `'zrn'` (Keras, ONNX). */
  gateOrder?: 'rzn' | 'zrn' | undefined;
  /**
   * Whether the reset gate comes after the product with wh (default; PyTorch, Keras) or before it (Cho et al.,
   * 2014; ONNX unless linear_before_reset says otherwise).
   */
  resetAfter?: boolean | undefined;
}

/** What rnn() may be told. */
export interface RnnOptions extends RecurrentOptions, RnnStepOptions {}

/** What lstm() may be told. */
export interface LstmOptions extends RecurrentOptions, LstmStepOptions {
  /** c before the first step, of h0's shape. Default 0. */
  c0?: TensorLike | undefined;
}

/** What gru() may be told. */
export interface GruOptions extends RecurrentOptions, GruStepOptions {}

/** What rnn() and gru() give. */
export interface RecurrentResult {
  /**
   * Every h in time order: (length, hidden) or (batch, length, hidden); for 'both' the last axis is 2 * hidden, the
   * forward half first. 0 beyond a sequence's length.
   */
  outputs: Tensor;
  /**
   * h after the last valid step that the direction took: (hidden) or (batch, hidden), for 'both' (2, ...) of these.
   * A sequence of length 0 keeps its initial state.
   */
  h: Tensor;
}

/** What lstm() gives. */
export interface LstmResult extends RecurrentResult {
  /** c after that step, of h's shape. */
  c: Tensor;
}

/** The state of an RNN or a GRU between two steps. */
export interface RecurrentState {
  /** (hidden), or (batch, hidden) for a batch. */
  h: TensorLike;
}

/** The state of an LSTM between two steps. */
export interface LstmState extends RecurrentState {
  /** Of h's shape. */
  c: TensorLike;
}
