// The sentence that all views compute with.
import { html, nothing, type TemplateResult } from 'lit';
import { lesson } from '../lesson.js';
import { defaultSentence } from '../words.js';
import { LessonElement } from './light-element.js';
import { tokenRow } from './token-row.js';

const examples = [
  ['… it was too tired', defaultSentence],
  ['… it was too wide', 'the animal did not cross the street because it was too wide'],
  ['dog saw the cat …', 'dog saw the cat and the cat saw the mouse'],
] as const;

export class SentenceBox extends LessonElement {
  #listWords = false;

  protected override render(): TemplateResult {
    const { settings: { text }, sentence, vocabulary } = lesson;
    return html`
      <label class="control"><span>Your sentence (up to 32 words)</span>
        <input type="text" name="sentence" maxlength="400" autocomplete="off" spellcheck="false" autocapitalize="none"
          .value=${text} @input=${(event: Event) => lesson.set({ text: (event.target as HTMLInputElement).value })}>
      </label>
      <div class="buttons examples">
        <span class="small soft">Or take one:</span>
        ${examples.map(([name, example]) => html`<button type="button" @click=${() => lesson.set({ text: example })}>${name}</button>`)}
      </div>
      ${sentence ? tokenRow(sentence) : nothing}
      ${vocabulary ? html`
        <details @toggle=${this.#onToggle}>
          <summary>The ${vocabulary.words.length} words the page knows</summary>
          ${this.#listWords ? html`<p class="small">${[...vocabulary.words].sort().join(' ')}</p>` : nothing}
        </details>` : nothing}`;
  }

  /** Seven hundred words are written out only for who wants to see them. */
  #onToggle(event: Event): void {
    this.#listWords = (event.target as HTMLDetailsElement).open;
    this.requestUpdate();
  }
}
