// A sentence as the page reads it: known words in order, unknown ones marked as such.
import { html, nothing, type TemplateResult } from 'lit';
import { plural } from '../format.js';
import { maxWords, type Sentence } from '../words.js';

export function tokenRow({ tokens, words, dropped }: Sentence): TemplateResult {
  const unknown = [...new Set(tokens.filter(({ known }) => !known).map(({ text }) => text))];
  return html`
    <ol class="tokens" aria-label="The sentence as the page reads it">
      ${tokens.map(({ text, known }) => html`<li class=${known ? '' : 'unknown'}>${text}${known ? nothing : html` <small>unknown</small>`}</li>`)}
    </ol>
    <p class="small soft" role="status">
      The page computes with ${plural(words.length, 'word')}.
      ${unknown.length > 0 ? html`<b>Unknown and left out: ${unknown.join(', ')}.</b>` : nothing}
      ${dropped > 0 ? html`<b>Only the first ${maxWords} words are used; ${plural(dropped, 'word')} left out.</b>` : nothing}
      ${words.length === 0 ? html`<b>Type at least one word that the page knows.</b>` : nothing}
    </p>`;
}
