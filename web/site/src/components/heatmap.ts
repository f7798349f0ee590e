// A matrix with labels on a canvas: hover previews a cell, a click pins it, and the keyboard reaches every cell.
import { html, type TemplateResult } from 'lit';
import { whenColoursChange } from './colour-map.js';
import { cellAfterKey } from './heatmap-keys.js';
import { LightElement } from './light-element.js';
import { paintCells, type Cell, type Matrix, type Size } from './paint.js';

/** The user points at a cell ("preview", no cell when the pointer leaves) or chooses it ("pin"). */
export class CellEvent extends Event {
  readonly cell: Cell | undefined;

  constructor(type: 'preview' | 'pin', cell: Cell | undefined) {
    super(type);
    this.cell = cell;
  }
}

export class MatrixHeatmap extends LightElement {
  static override properties = {
    matrix: { attribute: false },
    label: { attribute: false },
    rowNames: { attribute: false },
    columnNames: { attribute: false },
    selected: { attribute: false },
    preview: { attribute: false },
    described: { attribute: false },
  };

  declare matrix: Matrix;
  declare label: string;
  declare rowNames: readonly string[];
  declare columnNames: readonly string[];
  declare selected: Cell;
  declare preview: Cell | undefined;
  /** The id of the element with the keys' explanation. */
  declare described: string;

  #ends: (() => void)[] = [];

  override connectedCallback(): void {
    super.connectedCallback();
    const observer = new ResizeObserver(() => this.requestUpdate());
    observer.observe(this);
    this.#ends = [() => observer.disconnect(), whenColoursChange(() => this.requestUpdate())];
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#ends.forEach((end) => end());
  }

  /** Square cells where columns are words; narrow columns where they are dimensions. */
  get #size(): Size {
    const { rows, columns } = this.matrix;
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const labels = Number.parseFloat(getComputedStyle(this).getPropertyValue('--labels')) * rem;
    const room = Math.max(0, this.clientWidth - labels - 2);
    const fill = Math.floor((room / Math.max(1, columns)) * 4) / 4;
    if (columns > 32) return { width: Math.max(7, Math.min(14, fill)), height: rows > 16 ? 20 : 28 };
    const side = Math.max(14, Math.min(46, fill));
    return { width: side, height: Math.max(side, 20) };
  }

  protected override render(): TemplateResult {
    const { width, height } = this.#size;
    // Numbers are thinned, words are not: a row of words is never so long.
    const isNumbered = this.matrix.columns > 32;
    const every = isNumbered ? [1, 2, 5, 10].find((step) => step * width >= 20)! : 1;
    return html`
      <div class="pan" tabindex="-1">
        <div class="heatmap" style="--cell-width: ${width}px; --cell-height: ${height}px">
          <div class="column-names" aria-hidden="true">
            ${this.columnNames.map((name, i) => html`<span>${(i + 1) % every === 0 ? name : ''}</span>`)}
          </div>
          <div class="row-names" aria-hidden="true">${this.rowNames.map((name) => html`<span>${name}</span>`)}</div>
          <div class="cells" role="group" tabindex="0" aria-label=${this.label} aria-describedby=${this.described}
            @keydown=${this.#onKey} @pointermove=${this.#onMove} @pointerleave=${() => this.#tell('preview', undefined)} @click=${this.#onClick}>
            <canvas>The table of numbers below holds the same values.</canvas>
          </div>
        </div>
      </div>`;
  }

  protected override updated(): void {
    paintCells(this.querySelector('canvas')!, this.matrix, this.#size, { selected: this.selected, preview: this.preview });
  }

  #onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const cell = event.key === 'Enter' ? this.preview ?? this.selected : cellAfterKey(event.key, this.selected, this.matrix);
    if (!cell) return;
    event.preventDefault();
    this.#tell('pin', cell);
    this.#scrollTo(cell);
  }

  #onMove(event: PointerEvent): void {
    // A finger that pans is not pointing at anything.
    if (event.pointerType !== 'touch') this.#tell('preview', this.#cellAt(event));
  }

  #onClick(event: MouseEvent): void {
    const cell = this.#cellAt(event);
    if (cell) this.#tell('pin', cell);
  }

  #cellAt({ clientX, clientY }: MouseEvent): Cell | undefined {
    const { left, top } = this.querySelector('canvas')!.getBoundingClientRect();
    const { width, height } = this.#size;
    const cell = { row: Math.floor((clientY - top) / height), column: Math.floor((clientX - left) / width) };
    const inside = cell.row >= 0 && cell.column >= 0 && cell.row < this.matrix.rows && cell.column < this.matrix.columns;
    return inside ? cell : undefined;
  }

  #tell(type: 'preview' | 'pin', cell: Cell | undefined): void {
    if (type === 'preview' && cell?.row === this.preview?.row && cell?.column === this.preview?.column) return;
    this.dispatchEvent(new CellEvent(type, cell));
  }

  /** Keeps a cell that was reached by key within the box that pans. */
  #scrollTo({ column }: Cell): void {
    const pan = this.querySelector('.pan')!;
    const { width } = this.#size;
    const room = pan.clientWidth - (pan.scrollWidth - this.matrix.columns * width);
    pan.scrollLeft = Math.min(column * width, Math.max(pan.scrollLeft, (column + 1) * width - room));
  }
}
