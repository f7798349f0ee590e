// A matrix as a table: the same numbers as the heatmap's, for reading, copying and screen readers.
import { html, type TemplateResult } from 'lit';
import { short } from '../format.js';
import type { Matrix } from './paint.js';

export function matrixTable({ values, rows, columns }: Matrix, title: string, rowNames: readonly string[], columnNames: readonly string[]): TemplateResult {
  const cells = (row: number): TemplateResult[] => Array.from(values.subarray(row * columns, (row + 1) * columns),
    (value) => html`<td data-value=${value}>${short(value, 3)}</td>`);
  return html`
    <div class="pan table-twin" tabindex="0" role="region" aria-label="${title}: table">
      <table>
        <caption>${title}: ${rows} rows, ${columns} columns</caption>
        <thead><tr><td></td>${columnNames.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${rowNames.map((name, row) => html`<tr><th scope="row">${name}</th>${cells(row)}</tr>`)}</tbody>
      </table>
    </div>`;
}
