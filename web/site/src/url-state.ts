// The page's state in the address, as readable keys: #v=1&seed=7&stage=softmax. Keys that are not ours are kept.
import { defaultSentence } from './words.js';

export const stageNames = ['project', 'score', 'scale', 'softmax', 'mix'] as const;
export type StageName = (typeof stageNames)[number];

export interface Settings {
  view: string;
  text: string;
  seed: number;
  projection: 'identity' | 'random';
  positions: boolean;
  times: number;
  causal: boolean;
  stage: StageName;
  matrix: 'query' | 'key' | 'value';
  row: number;
  column: number;
  n: number;
  d: number;
  input: 'random' | 'sentence';
}

export const defaults: Readonly<Settings> = {
  view: '',
  text: defaultSentence,
  seed: 7,
  projection: 'identity',
  positions: false,
  times: 2,
  causal: false,
  stage: 'softmax',
  matrix: 'query',
  row: -1,
  column: -1,
  n: 64,
  d: 64,
  input: 'random',
};

export const lengths = [16, 64, 256, 1024] as const;
export const widths = [64, 128, 256] as const;
export const timesRange = { min: 0.5, max: 4, step: 0.5 } as const;

/** One key's spelling; `read` gives undefined for what it does not understand, and the default is taken. */
interface Codec<Value> {
  read(text: string): Value | undefined;
  write(value: Value): string;
}

const oneOf = <Value extends string | number>(choices: readonly Value[]): Codec<Value> => ({
  read: (text) => choices.find((choice) => String(choice) === text),
  write: String,
});

const number = (min: number, max: number, step: number): Codec<number> => ({
  read: (text) => {
    const value = Number(text);
    return text !== '' && value >= min && value <= max && Number.isInteger(value / step) ? value : undefined;
  },
  write: String,
});

const flag: Codec<boolean> = {
  read: (text) => (text === '1' ? true : text === '0' ? false : undefined),
  write: (value) => (value ? '1' : '0'),
};

// Sentences travel as base64url: chat programs break links at blanks and quotes.
const sentence: Codec<string> = {
  read: (text) => {
    try {
      const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      return undefined;
    }
  },
  write: (value) => {
    const binary = String.fromCharCode(...new TextEncoder().encode(value));
    return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  },
};

const codecs: { readonly [Key in keyof Settings]: Codec<Settings[Key]> } = {
  view: oneOf(['', '00', '06', '12']),
  text: sentence,
  seed: number(0, 2 ** 31 - 1, 1),
  projection: oneOf(['identity', 'random']),
  positions: flag,
  times: number(timesRange.min, timesRange.max, timesRange.step),
  causal: flag,
  stage: oneOf(stageNames),
  matrix: oneOf(['query', 'key', 'value']),
  row: number(-1, 31, 1),
  column: number(-1, 63, 1),
  n: oneOf<number>(lengths),
  d: oneOf<number>(widths),
  input: oneOf(['random', 'sentence']),
};

const keys = Object.keys(codecs) as (keyof Settings)[];

const parse = (hash: string): URLSearchParams => new URLSearchParams(hash.replace(/^#/, ''));

export function readHash(hash: string): Settings {
  const given = parse(hash);
  const settings = { ...defaults };
  const take = <Key extends keyof Settings>(key: Key): void => {
    const text = given.get(key);
    if (text !== null) settings[key] = codecs[key].read(text) ?? defaults[key];
  };
  keys.forEach(take);
  return settings;
}

/** The hash for `settings`: defaults are left out, keys of others are taken over from `hash`. */
export function writeHash(hash: string, settings: Settings): string {
  const given = parse(hash);
  const put = <Key extends keyof Settings>(key: Key): void => {
    given.delete(key);
    if (settings[key] !== defaults[key]) given.set(key, codecs[key].write(settings[key]));
  };
  given.set('v', '1');
  keys.forEach(put);
  return `#${given}`;
}
