import { expectOptions, oneOf, wholeNumber } from '../arguments.js';
import { Chance } from './chance.js';
import { makeTask, type Row, type Source } from './make-task.js';
import type { Examples, Task } from './task.js';

/** Options of {@link pronoun}. */
export interface PronounOptions {
  /**
   * What the answer is: `'position'` of the noun in the sentence, for a pointer, or the `'noun'`, one class of twelve.
   * Default `'position'`.
   */
  answer?: 'position' | 'noun' | undefined;
  /** A whole number; others give other examples. Default 0. */
  seed?: number | undefined;
}

/** Examples of {@link pronoun}. */
export interface PronounExamples extends Examples {
  /** (count): the position of the noun that "it" stands for. */
  readonly right: Int32Array<ArrayBuffer>;
  /** (count): the position of the other noun. */
  readonly wrong: Int32Array<ArrayBuffer>;
}

const ANIMALS = ['animal', 'dog', 'cat', 'horse', 'fox', 'hen'] as const;
const PLACES = ['street', 'road', 'river', 'bridge', 'field', 'square'] as const;
const OF_ANIMALS = ['tired', 'hungry', 'afraid', 'lazy', 'ill', 'old'] as const;
const OF_PLACES = ['wide', 'long', 'busy', 'icy', 'muddy', 'crowded'] as const;
const NOUNS = [...ANIMALS, ...PLACES];
const ADJECTIVES = [...OF_ANIMALS, ...OF_PLACES];
const WORDS = [...NOUNS, ...ADJECTIVES, 'the', 'did', 'not', 'cross', 'because', 'it', 'was', 'too', 'crossed', 'by'];
/** Of the 36 pairs of an animal and a place, for each adjective. */
const HELD_OUT_PAIRS = 9;

/**
 * What "it" is: "the animal did not cross the street because it was too tired", or too wide, after the example of
 * Uszkoreit ("Transformer: A Novel Neural Network Architecture", 2017) and of Winograd (1972) before him. 6 animals, 6
 * places and 12 adjectives, 6 for each kind, in two orders of the words: "the street was not crossed by the animal
 * because ...". A quarter of the triples is held out, in both orders: 216 sentences, beside 648 to train on. The answer
 * is read at "it". Its weight on the right noun cannot depend on the adjective before it has seen that, so a pointer
 * takes two layers.
 *
 * @param options what the answer is
 * @throws QkvError INVALID_ARGUMENT: an answer or an option that is not known
 */
export function pronoun(options: PronounOptions = {}): Task<'pointer' | 'last', PronounExamples> {
  expectOptions('pronoun', options, ['answer', 'seed']);
  const { answer = 'position', seed = 0 } = options;
  wholeNumber(seed, 'seed', 0);
  const isPointer = oneOf(answer, 'answer', ['position', 'noun']) === 'position';
  const description = {
    name: 'pronoun', readout: isPointer ? 'pointer' : 'last', length: 13, words: [...WORDS], answers: isPointer ? [] : NOUNS, ragged: true,
  } as const;
  return makeTask(description, sentences(seed, isPointer), (column) => ({
    right: column(({ right }) => right).data,
    wrong: column(({ wrong }) => wrong).data,
  }));
}

interface Sentence extends Row {
  readonly right: number;
  readonly wrong: number;
}

function sentences(seed: number, isPointer: boolean): Source<Sentence> {
  const [chance, split] = [new Chance(seed, 0), new Chance(seed, 1)];
  const pairs = ANIMALS.flatMap((animal) => PLACES.map((place) => [animal, place] as const));
  const triples = ADJECTIVES.map((adjective) => split.shuffled(pairs).map(([animal, place]) => ({ animal, place, adjective })));
  const bothOrders = (some: typeof triples) =>
    some.flat().flatMap((triple) => [false, true].map((isPassive) => sentence({ ...triple, isPassive }, isPointer)));
  const heldOut = split.shuffled(bothOrders(triples.map((all) => all.slice(0, HELD_OUT_PAIRS))));
  const train = bothOrders(triples.map((all) => all.slice(HELD_OUT_PAIRS)));
  return {
    train: () => train[chance.below(train.length)]!,
    heldOut: () => heldOut,
    heldOutCount: () => heldOut.length,
  };
}

interface Meaning {
  readonly animal: string;
  readonly place: string;
  readonly adjective: string;
  readonly isPassive: boolean;
}

function sentence({ animal, place, adjective, isPassive }: Meaning, isPointer: boolean): Sentence {
  const fact = isPassive ? `the ${place} was not crossed by the ${animal}` : `the ${animal} did not cross the ${place}`;
  const words = `${fact} because it was too ${adjective}`.split(' ');
  const nouns = (OF_ANIMALS as readonly string[]).includes(adjective) ? [animal, place] : [place, animal];
  const [right, wrong] = nouns.map((noun) => words.indexOf(noun)) as [number, number];
  const target = isPointer ? right : NOUNS.indexOf(nouns[0] as (typeof NOUNS)[number]);
  return { tokens: words.map((word) => WORDS.indexOf(word)), target, at: words.indexOf('it'), right, wrong };
}
