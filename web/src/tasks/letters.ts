/** Names for symbols: A to Z, then A1 to Z1 and so on. */
export const letters = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => String.fromCharCode(65 + (i % 26)) + (Math.floor(i / 26) || ''));

/** What asks at a sequence's end. */
export const QUESTION = '?';

/** The longest sequence, and the most symbols. */
export const MOST = 65536;
