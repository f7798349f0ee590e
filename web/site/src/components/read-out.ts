// The line beside a matrix that says all about one cell, and the same for screen readers, not too often.
import { html, nothing, type TemplateResult } from 'lit';
import { entropy } from '../arithmetic.js';
import { short } from '../format.js';
import { LightElement } from './light-element.js';
import type { Cell, Matrix } from './paint.js';

/** `visible` is the number of columns that the row may see. */
export function readOut(matrix: Matrix, { row, column }: Cell, visible: number, rowName: string, columnName: string, valueName: string): TemplateResult {
  const values = matrix.values.subarray(row * matrix.columns, (row + 1) * matrix.columns);
  const value = values[column]!;
  const rank = 1 + values.filter((other) => other > value).length;
  const isWeight = matrix.kind === 'weights';
  return html`
    <dl class="read-out">
      <div><dt>row</dt><dd>${rowName}</dd></div>
      <div><dt>column</dt><dd>${columnName}</dd></div>
      <div><dt>${valueName}</dt><dd class="number" data-value=${value}>${short(value, 5)}</dd></div>
      <div><dt>rank in row</dt><dd class="number">${rank} of ${matrix.columns}</dd></div>
      ${isWeight ? html`<div><dt>row entropy</dt><dd class="number">${short(entropy(values), 3)} of ln ${visible} = ${short(Math.log(visible), 3)}</dd></div>` : nothing}
    </dl>`;
}

const silence = 250;

/** A polite live region that speaks at most four times a second, and always says the last thing. */
export class LiveRegion extends LightElement {
  static override properties = { text: { attribute: false } };
  declare text: string;
  #spoken = '';
  #timer?: ReturnType<typeof setTimeout> | undefined;

  protected override render(): TemplateResult {
    return html`<p class="visually-hidden" role="status">${this.#spoken}</p>`;
  }

  protected override updated(): void {
    if (this.#timer || this.text === this.#spoken) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#spoken = this.text;
      this.requestUpdate();
    }, silence);
  }
}
