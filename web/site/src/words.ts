// The words the page knows, and their vectors: see data/NOTICE.md for where they come from.
const fileUrl = new URL('../data/words.safetensors', import.meta.url);

export const maxWords = 32;
export const defaultSentence = 'the animal did not cross the street because it was too tired';

export interface Vocabulary {
  /** From the commonest to the rarest. */
  readonly words: readonly string[];
  readonly dims: number;
  /** The vector of a word, or nothing for a word that the page does not know. */
  vector(word: string): Float32Array | undefined;
}

export interface Sentence {
  /** Everything that was typed, in order. */
  readonly tokens: readonly { readonly text: string; readonly known: boolean }[];
  /** The known words: those that are computed with. */
  readonly words: readonly string[];
  /** (words, dims), row after row. */
  readonly vectors: Float32Array;
  readonly dims: number;
  /** Words left out because the sentence is too long. */
  readonly dropped: number;
}

export async function fetchVocabulary(): Promise<Vocabulary> {
  const response = await fetch(fileUrl);
  if (!response.ok) throw new Error(`The word vectors could not be loaded (${response.status}): reload the page.`);
  return decodeVocabulary(await response.arrayBuffer());
}

interface Header {
  __metadata__: { words: string; scale: string };
  vectors: { dtype: string; shape: [number, number]; data_offsets: [number, number] };
}

/** Reads a safetensors file of int8 vectors with one common scale. */
export function decodeVocabulary(file: ArrayBuffer): Vocabulary {
  const headerLength = Number(new DataView(file).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, headerLength))) as Header;
  const { shape: [, dims], data_offsets: [start, end] } = header.vectors;
  const rounded = new Int8Array(file, 8 + headerLength + start, end - start);
  const scale = Number(header.__metadata__.scale);
  const words = header.__metadata__.words.split(' ');
  const rows = new Map(words.map((word, row) => [word, row]));
  return {
    words,
    dims,
    vector(word) {
      const row = rows.get(word);
      return row === undefined ? undefined : Float32Array.from(rounded.subarray(row * dims, (row + 1) * dims), (value) => value * scale);
    },
  };
}

/** Splits a text into words; unknown ones are kept as tokens but never computed with. */
export function readSentence(text: string, vocabulary: Vocabulary): Sentence {
  const found = text.toLowerCase().match(/\p{L}[\p{L}\p{M}'’-]*|\p{N}+/gu) ?? [];
  const tokens = found.slice(0, maxWords).map((word) => ({ text: word, vector: vocabulary.vector(word) }));
  const known = tokens.filter(({ vector }) => vector);
  const vectors = new Float32Array(known.length * vocabulary.dims);
  known.forEach(({ vector }, row) => vectors.set(vector!, row * vocabulary.dims));
  return {
    tokens: tokens.map(({ text, vector }) => ({ text, known: vector !== undefined })),
    words: known.map(({ text }) => text),
    vectors,
    dims: vocabulary.dims,
    dropped: found.length - tokens.length,
  };
}
