// A number that proves a claim, in large type, and the tag that says where numbers come from.
import { html, type TemplateResult } from 'lit';

export interface ProofNumber {
  name: string;
  /** Unrounded; nothing while it is not known yet. */
  value: number | undefined;
  text: string;
  caption: string | TemplateResult;
}

export const proofs = (...numbers: ProofNumber[]): TemplateResult => html`
  <dl class="proofs">
    ${numbers.map(({ name, value, text, caption }) => html`
      <div>
        <dt>${caption}</dt>
        <dd data-proof=${name} data-value=${value ?? ''}>${value === undefined ? '…' : text}</dd>
      </div>`)}
  </dl>`;

/** Where the word vectors and this page's code come from; made by the build beside the page. */
export const noticesUrl = './notices.txt';

export const trainedElsewhere = html`<span class="tag">word vectors: <a href=${noticesUrl}>trained elsewhere (Universal Sentence Encoder Lite)</a></span>`;

export const tag = (text: string): TemplateResult => html`<span class="tag">${text}</span>`;
