// What all views share: the engine, the words, the sentence and the settings in the address.
import type { EngineInfo } from 'qkv';
import type { RemoteEngine } from 'qkv/worker';
import { theEngine } from './engine.js';
import { readHash, writeHash, type Settings } from './url-state.js';
import { fetchVocabulary, readSentence, type Sentence, type Vocabulary } from './words.js';

class Lesson extends EventTarget {
  settings = readHash(location.hash);
  engine?: RemoteEngine;
  info?: EngineInfo;
  vocabulary?: Vocabulary;
  sentence?: Sentence;
  /** A sentence that says why nothing can be computed. */
  failure?: string;
  #pendingWrite?: ReturnType<typeof setTimeout>;

  async start(): Promise<void> {
    addEventListener('hashchange', () => this.#readAddress());
    try {
      [this.engine, this.vocabulary] = await Promise.all([theEngine(), fetchVocabulary()]);
      this.info = await this.engine.info();
      this.#readText();
    } catch (error) {
      return this.fail(error);
    }
    this.#tell();
  }

  /** Ends the figures: this says why. */
  fail(error: unknown): void {
    this.failure = error instanceof Error ? error.message : String(error);
    this.#tell();
  }

  set(change: Partial<Settings>): void {
    this.#take({ ...this.settings, ...change });
    // Browsers limit how often an address may change, and a slider changes it often.
    clearTimeout(this.#pendingWrite);
    this.#pendingWrite = setTimeout(() => history.replaceState(null, '', writeHash(location.hash, this.settings)), 200);
  }

  #readAddress(): void {
    clearTimeout(this.#pendingWrite);
    this.#take(readHash(location.hash));
    this.show();
  }

  /** Goes to the view that the address names: with the eyes, and with the keyboard. */
  show(): void {
    const section = document.querySelector(`[data-view="${this.settings.view}"]`);
    section?.scrollIntoView();
    section?.querySelector('h2')?.focus({ preventScroll: true });
  }

  #take(settings: Settings): void {
    const textChanged = settings.text !== this.settings.text;
    this.settings = settings;
    if (textChanged) this.#readText();
    this.#tell();
  }

  #readText(): void {
    if (this.vocabulary) this.sentence = readSentence(this.settings.text, this.vocabulary);
  }

  #tell(): void {
    this.dispatchEvent(new Event('change'));
  }
}

export const lesson = new Lesson();
