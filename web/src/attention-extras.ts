import { expectNames, flag, invalid, type List, oneOf, wholeNumbers } from './arguments.js';
import type { AttentionSizes } from './heads.js';
import type { ScoreOptions } from './score-options.js';
import { describe } from './tensor.js';

/** The extras that the options ask for: their shapes, and what the core is told of them. */
export interface AttentionExtras {
  readonly weights?: { readonly shape: readonly number[]; readonly mean: boolean };
  readonly weightHeads?: Int32Array | undefined;
  readonly weightQueries?: Int32Array | undefined;
  readonly scores?: { readonly shape: readonly number[]; readonly stage: number };
  readonly logSumExp?: { readonly shape: readonly number[] };
}

const STAGES = ['raw', 'capped', 'biased'] as const;

export function attentionExtras({ weights, scores, logSumExp }: ScoreOptions, sizes: AttentionSizes, rowsShape: readonly number[]): AttentionExtras {
  const { batch, numHeads, queryLen, keyLen } = sizes;
  const rows = (heads: number, queries: number) => [batch, heads, queries].slice(-rowsShape.length);
  const extras: { -readonly [Name in keyof AttentionExtras]: AttentionExtras[Name] } = {};
  if (weights === 'mean') {
    extras.weights = { shape: [...(rowsShape.length === 3 ? [batch] : []), queryLen, keyLen], mean: true };
  } else if (typeof weights === 'object' && weights !== null) {
    expectNames(weights, 'weights', ['heads', 'queries']);
    if (weights.heads !== undefined && rowsShape.length === 1) {
      invalid('weights.heads is given with a query of rank 2, expected an axis of heads (or numHeads) to choose from.');
    }
    const chosen = (list: List | undefined, name: string, count: number) =>
      list === undefined ? undefined : wholeNumbers(list, `weights.${name}`, 0, count - 1, `${name} to give the weights of`);
    extras.weightHeads = chosen(weights.heads, 'heads', numHeads);
    extras.weightQueries = chosen(weights.queries, 'queries', queryLen);
    extras.weights = {
      shape: [...rows(extras.weightHeads?.length ?? numHeads, extras.weightQueries?.length ?? queryLen), keyLen],
      mean: false,
    };
  } else if (weights !== undefined) {
    if (weights !== 'heads') invalid(`weights is ${describe(weights)}, expected 'heads', 'mean' or { heads, queries }.`);
    extras.weights = { shape: [...rowsShape, keyLen], mean: false };
  }
  if (scores !== undefined) {
    extras.scores = { shape: [...rowsShape, keyLen], stage: STAGES.indexOf(oneOf(scores, 'scores', STAGES)) };
  }
  if (flag(logSumExp, 'logSumExp')) extras.logSumExp = { shape: rowsShape };
  return extras;
}
