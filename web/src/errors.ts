import type { RawModule } from './module.js';

/**
 * What kind of failure it was; the message says the rest.
 * - `'INVALID_ARGUMENT'`: a value out of range, options that exclude each other, an option that is not known.
 * - `'SHAPE_MISMATCH'`: shapes that do not fit together, ragged rows.
 * - `'OUT_OF_MEMORY'`: more than `maxMemory`, or than the host gives; nothing has changed.
 * - `'DISPOSED'`: a call after dispose().
 * - `'UNSUPPORTED'`: the host cannot run what was asked for.
 * - `'LOAD_FAILED'`: the WebAssembly could not be had, or is not this package's.
 */
export type QkvErrorCode =
  | 'INVALID_ARGUMENT'
  | 'SHAPE_MISMATCH'
  | 'OUT_OF_MEMORY'
  | 'DISPOSED'
  | 'UNSUPPORTED'
  | 'LOAD_FAILED';

/**
 * Every failure of this library. The message is one sentence that names the argument, what came and
 * what was expected. The engine works on after any of them.
 */
export class QkvError extends Error {
  /** What kind of failure it was. */
  readonly code: QkvErrorCode;

  /**
   * @param code what kind of failure it is
   * @param message one sentence
   * @param options `cause`, the error that led to this one
   */
  constructor(code: QkvErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'QkvError';
    this.code = code;
  }
}

/** Statuses of the core that are failures; module.ts has their numbers. */
const FAILURE_STATUSES = ['INVALID_ARGUMENT', 'SHAPE_MISMATCH', 'OUT_OF_MEMORY'] as const;

/**
 * Throws where the core refused a call. Arguments were checked before, with sentences of their own,
 * so this speaks only when the two sides disagree about what is allowed.
 */
export function check(module: RawModule, status: number, operation: string): void {
  if (status === module.OK) return;
  const code = FAILURE_STATUSES.find((name) => module[name] === status) ?? 'INVALID_ARGUMENT';
  throw new QkvError(code, `${operation}: the core refused the call with ${code}.`);
}
