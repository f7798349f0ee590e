// One cell's number written out with its factors.
import { html, nothing, type TemplateResult } from 'lit';
import type { Arithmetic, Term } from '../arithmetic.js';
import { fixed, scientific, short } from '../format.js';

/** More terms than these are folded. */
const shownTerms = 16;

/** What the two factors of a term, and the term, are called. */
export interface Headings {
  term: string;
  left: string;
  right: string;
  value: string;
}

export function arithmeticTable({ kind, terms, result, engine }: Arithmetic, headings: Headings, chosenTerm: number): TemplateResult {
  const shown = terms.slice(0, shownTerms);
  const folded = terms.slice(shownTerms);
  const sum = terms.reduce((total, { value }) => total + value, 0);
  const chosen = kind === 'softmax' ? terms[chosenTerm] : undefined;
  return html`
    <table class="arithmetic">
      <thead><tr><th scope="col">${headings.term}</th>
        ${[headings.left, headings.right, headings.value].map((heading) => html`<th scope="col" class="number">${heading}</th>`)}</tr></thead>
      <tbody>${shown.map((term) => termRow(kind, term, term === chosen))}</tbody>
      ${folded.length > 0 ? foldedRows(kind, folded, chosen) : nothing}
      <tfoot>
        ${kind === 'quotient' ? nothing : totalRow('sum', short(sum, 7))}
        ${kind === 'softmax' ? totalRow(chosen ? html`${fixed(chosen.value, 4)} ÷ sum` : 'hidden by the causal mask', short(result, 7)) : nothing}
        ${totalRow('engine', short(engine, 7))}
        ${totalRow('difference', html`<b>${scientific(result - engine)}</b>`)}
      </tfoot>
    </table>`;
}

const signs = { sum: '×', quotient: '÷', softmax: '−' } as const;

const termRow = (kind: Arithmetic['kind'], { name, left, right, value }: Term, chosen: boolean): TemplateResult => html`
  <tr class=${chosen ? 'chosen' : ''}><th scope="row">${name}</th>
    <td class="number">${fixed(left, 4)}</td><td class="number">${signs[kind]} ${fixed(right, 4)}</td><td class="number">${fixed(value, 4)}</td></tr>`;

function foldedRows(kind: Arithmetic['kind'], folded: readonly Term[], chosen: Term | undefined): TemplateResult {
  const sum = folded.reduce((total, { value }) => total + value, 0);
  return html`<tbody>
    ${chosen && folded.includes(chosen) ? termRow(kind, chosen, true) : nothing}
    <tr class="folded"><th scope="row" colspan="3">${folded.length} more terms, together</th><td class="number">${fixed(sum, 4)}</td></tr></tbody>`;
}

const totalRow = (name: string | TemplateResult, value: string | TemplateResult): TemplateResult => html`
  <tr><th scope="row" colspan="3">${name}</th><td class="number">${value}</td></tr>`;
