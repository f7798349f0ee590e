// View 6: the five stages of self-attention, and the arithmetic of every cell.
import { html, nothing, type TemplateResult } from 'lit';
import { cellArithmetic, largestStageDifference } from '../arithmetic.js';
import { arithmeticTable } from '../components/cell-arithmetic.js';
import { colourBar } from '../components/colour-bar.js';
import { limitOf } from '../components/colour-map.js';
import { segments, select } from '../components/controls.js';
import type { CellEvent } from '../components/heatmap.js';
import { LessonElement } from '../components/light-element.js';
import { matrixTable } from '../components/matrix-table.js';
import type { Cell, Matrix } from '../components/paint.js';
import { proofs, tag, trainedElsewhere } from '../components/proof.js';
import { readOut } from '../components/read-out.js';
import { stageFormula } from '../components/stage-formula.js';
import { scientific, short } from '../format.js';
import { lesson } from '../lesson.js';
import { isSquare, makeInput, makeProjections, runStages, stages, type MatrixName, type Trace } from '../stages.js';
import { fiveStepsSettings } from './06-settings.js';

/** How the page speaks of a matrix, of one of its numbers, and of the parts of that number. */
const speech: Record<MatrixName, { title: string; one: string; term: string; parts: [string, string, string] }> = {
  query: { title: 'Queries', one: 'query', term: 'j', parts: ['x', 'w', 'product'] },
  key: { title: 'Keys', one: 'key', term: 'j', parts: ['x', 'w', 'product'] },
  value: { title: 'Values', one: 'value', term: 'j', parts: ['x', 'w', 'product'] },
  scores: { title: 'Scores', one: 'score', term: 'j', parts: ['q', 'k', 'product'] },
  scaled: { title: 'Scaled scores', one: 'scaled score', term: '', parts: ['score', '√d', 'quotient'] },
  weights: { title: 'Weights', one: 'weight', term: 'word', parts: ['z', 'm', 'exp(z − m)'] },
  output: { title: 'Output', one: 'output', term: 'word', parts: ['a', 'v', 'product'] },
};

const helpId = 'heatmap-keys';

export class FiveSteps extends LessonElement {
  #trace: Trace | undefined;
  #tracedFor = '';
  #largestDifference?: number;
  #preview: Cell | undefined;
  #showTable = false;
  #isPrinting = false;
  #spoken = '';

  // Paper has no pointer: it gets the numbers.
  readonly #onPrint = ({ type }: Event): void => {
    this.#isPrinting = type === 'beforeprint';
    this.requestUpdate();
  };

  override connectedCallback(): void {
    super.connectedCallback();
    for (const type of ['beforeprint', 'afterprint']) addEventListener(type, this.#onPrint);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const type of ['beforeprint', 'afterprint']) removeEventListener(type, this.#onPrint);
  }

  protected override willUpdate(): void {
    const { engine, sentence, settings: { projection, seed, positions, times, causal } } = lesson;
    if (!engine || !sentence) return;
    const key = [projection, seed, positions, times, causal, ...sentence.words].join(' ');
    if (key === this.#tracedFor) return;
    this.#tracedFor = key;
    const { words, dims } = sentence;
    const x = makeInput(sentence, times, positions);
    const tracing = words.length > 0 ? runStages(engine, words, x, makeProjections(projection, dims, seed), causal) : undefined;
    this.#take(key, tracing).catch((error: unknown) => lesson.fail(error));
  }

  async #take(key: string, tracing: Promise<Trace> | undefined): Promise<void> {
    const trace = await tracing;
    // Another one may have been asked for meanwhile.
    if (key !== this.#tracedFor) return;
    this.#preview = undefined;
    this.#trace = trace;
    if (trace) this.#largestDifference = largestStageDifference(trace);
    this.requestUpdate();
  }

  /** The matrix that the chosen stage shows. */
  get #shown(): MatrixName {
    const { stage, matrix } = lesson.settings;
    return stage === 'project' ? matrix : stages.find(({ name }) => name === stage)!.makes[0]!;
  }

  #matrix(trace: Trace): Matrix {
    const name = this.#shown;
    const values = trace[name];
    const rows = trace.words.length;
    const kind = name === 'weights' ? 'weights' : 'signed';
    return { values, rows, columns: values.length / rows, kind, limit: limitOf(values), causal: trace.causal && name === 'weights' };
  }

  /** The pinned cell; at first the row of "it", or the last, and the largest number in it. */
  #selected({ words }: Trace, { values, rows, columns }: Matrix): Cell {
    const { row, column } = lesson.settings;
    const it = words.indexOf('it');
    const chosenRow = row >= 0 && row < rows ? row : it >= 0 ? it : rows - 1;
    const numbers = values.subarray(chosenRow * columns, (chosenRow + 1) * columns);
    return { row: chosenRow, column: column >= 0 && column < columns ? column : numbers.indexOf(Math.max(...numbers)) };
  }

  protected override render(): TemplateResult {
    const { failure, settings: { stage, matrix } } = lesson;
    if (failure) return html`<p class="notice" role="alert">${failure}</p>`;
    return html`
      ${fiveStepsSettings()}
      <div class="stage-choice">
        ${segments({
          label: 'Stage',
          name: 'stage',
          choices: stages.map(({ name }, i) => [name, html`<span class="step-number">${i + 1}</span>${name}`] as const),
          value: stage,
          onChoose: (chosen) => lesson.set({ stage: chosen, ...(isSameShape(stage, chosen) ? {} : { column: -1 }) }),
        })}
        ${stage === 'project' ? segments({
          label: 'Matrix',
          name: 'matrix',
          choices: (['query', 'key', 'value'] as const).map((name) => [name, html`<span class="letter role-${name}">${name[0]!.toUpperCase()}</span>${name}`] as const),
          value: matrix,
          onChoose: (chosen) => lesson.set({ matrix: chosen }),
        }) : nothing}
      </div>
      ${this.#trace ? this.#figure(this.#trace) : html`<div class="figure-room"><p class="soft">${lesson.sentence ? 'Type at least one word that the page knows.' : 'The engine is on its way …'}</p></div>`}
      ${this.#tags()}`;
  }

  #figure(trace: Trace): TemplateResult {
    const name = this.#shown;
    const matrix = this.#matrix(trace);
    const selected = this.#selected(trace, matrix);
    const cell = isInside(this.#preview, matrix) ? this.#preview : selected;
    const visible = matrix.causal ? cell.row + 1 : matrix.rows;
    const { title, one, term, parts } = speech[name];
    const rowNames = trace.words;
    const columnNames = isSquare(name) ? trace.words : Array.from({ length: matrix.columns }, (_, i) => String(i + 1));
    const rowName = numbered(rowNames, cell.row);
    const columnName = isSquare(name) ? numbered(columnNames, cell.column) : `dimension ${cell.column + 1}`;
    const arithmetic = cellArithmetic(trace, name, cell.row, cell.column);
    const difference = arithmetic.result - arithmetic.engine;
    return html`
      ${proofs(
        { name: 'cell-difference', value: difference, text: scientific(difference), caption: 'this cell: JavaScript in double precision minus the engine' },
        { name: 'largest-difference', value: this.#largestDifference, text: scientific(this.#largestDifference!), caption: 'largest difference over all cells of all five stages, as a part of the largest number in its matrix' },
      )}
      <div class="matrix-and-sum">
        <div class="matrix-side">
          <h3>${title} <small class="soft">${matrix.rows} × ${matrix.columns}</small></h3>
          <matrix-heatmap class=${isSquare(name) ? '' : 'dims'} .matrix=${matrix} .label=${`${title}, ${matrix.rows} rows, ${matrix.columns} columns`}
            .rowNames=${rowNames} .columnNames=${columnNames} .selected=${selected} .preview=${this.#preview} .described=${helpId}
            @preview=${(event: CellEvent) => { this.#preview = event.cell; this.requestUpdate(); }}
            @pin=${(event: CellEvent) => this.#pin(event.cell!, matrix, rowNames, columnNames)}></matrix-heatmap>
          ${colourBar(matrix)}
          ${readOut(matrix, cell, visible, rowName, columnName, one)}
          <live-region .text=${this.#spoken}></live-region>
          ${this.#cellChoice(matrix, selected, rowNames, isSquare(name) ? columnNames : undefined)}
        </div>
        <div class="sum-side">
          <h3>How ${short(arithmetic.engine, 4)} comes about</h3>
          ${stageFormula(name, rowNames[cell.row]!, isSquare(name) ? columnNames[cell.column]! : String(cell.column + 1), visible, trace.dims)}
          <div class="pan">${arithmeticTable(arithmetic, { term, left: parts[0], right: parts[1], value: parts[2] }, cell.column)}</div>
        </div>
      </div>
      ${this.#showTable || this.#isPrinting ? matrixTable(matrix, title, rowNames, columnNames) : nothing}`;
  }

  #pin(cell: Cell, { values, columns }: Matrix, rowNames: readonly string[], columnNames: readonly string[]): void {
    this.#preview = undefined;
    this.#spoken = `${rowNames[cell.row]}, ${columnNames[cell.column]}: ${short(values[cell.row * columns + cell.column]!, 4)}`;
    lesson.set(cell);
  }

  #cellChoice(matrix: Matrix, { row, column }: Cell, rowNames: readonly string[], columnWords: readonly string[] | undefined): TemplateResult {
    const names = (count: number, words?: readonly string[]): (readonly [number, string])[] =>
      Array.from({ length: count }, (_, i) => [i, words ? numbered(words, i) : String(i + 1)]);
    return html`
      <div class="controls cell-choice">
        ${select({ label: 'Row', name: 'row', choices: names(matrix.rows, rowNames), value: row, onChoose: (chosen) => lesson.set({ row: chosen, column }) })}
        ${select({ label: columnWords ? 'Column' : 'Column (dimension)', name: 'column', choices: names(matrix.columns, columnWords), value: column, onChoose: (chosen) => lesson.set({ row, column: chosen }) })}
        <button type="button" name="table" aria-expanded=${this.#showTable} @click=${() => { this.#showTable = !this.#showTable; this.requestUpdate(); }}>
          ${this.#showTable ? 'Hide the table' : 'Show as a table'}</button>
      </div>
      <p class="small soft help" id=${helpId}>Hover to look, click to pin. Keys: arrows, Home and End for the row’s ends, Page Up and Page Down for the column’s, M for the row’s largest.</p>`;
  }

  #tags(): TemplateResult {
    const { projection, seed, positions, times } = lesson.settings;
    return html`
      <p class="tags">${trainedElsewhere} ${tag(`multiplied by ${times}${positions ? ', sinusoidal positions added' : ''}`)}
        ${tag(projection === 'identity' ? 'projections: none (identity), nothing was trained' : `projections: untrained, seed ${seed}; their weights mean nothing`)}</p>`;
  }
}

/** A previewed cell may be of the matrix that was shown before. */
const isInside = (cell: Cell | undefined, { rows, columns }: Matrix): cell is Cell =>
  cell !== undefined && cell.row < rows && cell.column < columns;

/** The selected column can stay when it means the same thing. */
const isSameShape = (before: string, after: string): boolean => {
  const square = (stage: string): boolean => ['score', 'scale', 'softmax'].includes(stage);
  return square(before) === square(after);
};

const numbered = (names: readonly string[], i: number): string => `${i + 1} ${names[i]}`;
