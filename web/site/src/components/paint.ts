// Draws a matrix on a canvas: one pixel a cell, blown up without smoothing.
import { colourTable, coloursAreForced, inkOn, tableIndex, type MapKind } from './colour-map.js';

export interface Matrix {
  readonly values: Float32Array;
  readonly rows: number;
  readonly columns: number;
  readonly kind: MapKind;
  /** The value at the end of the colour scale. */
  readonly limit: number;
  /** Cells to the right of the diagonal are no part of the result. */
  readonly causal?: boolean;
}

export function toImage({ values, rows, columns, kind, limit }: Matrix): ImageData {
  const table = colourTable(kind);
  const pixels = Uint32Array.from(values, (value) => table[tableIndex(kind, value, limit)]!);
  return new ImageData(new Uint8ClampedArray(pixels.buffer), columns, rows);
}

/** Fills a canvas of one pixel a cell. */
export function paintPixels(canvas: HTMLCanvasElement, matrix: Matrix): void {
  canvas.width = matrix.columns;
  canvas.height = matrix.rows;
  if (matrix.rows > 0) canvas.getContext('2d')!.putImageData(toImage(matrix), 0, 0);
}

export interface Size {
  /** CSS pixels of one cell. */
  readonly width: number;
  readonly height: number;
}

export interface Marks {
  readonly selected: Cell | undefined;
  readonly preview: Cell | undefined;
}

export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** Draws cells of the given size with grid lines, numbers where they fit, and marks. */
export function paintCells(canvas: HTMLCanvasElement, matrix: Matrix, size: Size, marks: Marks): void {
  const { rows, columns } = matrix;
  const ratio = devicePixelRatio;
  const width = columns * size.width;
  const height = rows * size.height;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  if (rows * columns === 0) return;
  const context = canvas.getContext('2d')!;
  context.scale(ratio, ratio);
  if (coloursAreForced()) paintBars(context, matrix, size);
  else {
    const pixels = document.createElement('canvas');
    paintPixels(pixels, matrix);
    context.imageSmoothingEnabled = false;
    context.drawImage(pixels, 0, 0, width, height);
    paintNumbers(context, matrix, size);
  }
  if (matrix.causal) paintHidden(context, matrix, size);
  paintGrid(context, matrix, size);
  if (marks.preview) paintMark(context, marks.preview, size, 1.5);
  if (marks.selected) paintMark(context, marks.selected, size, 3);
}

/** With the user's own colours: a bar as high as the amount, hollow where it is negative. */
function paintBars(context: CanvasRenderingContext2D, { values, rows, columns, limit }: Matrix, { width, height }: Size): void {
  context.fillStyle = context.strokeStyle = 'CanvasText';
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column]!;
      const high = limit === 0 ? 0 : (Math.abs(value) / limit) * (height - 4);
      const bar = [column * width + 2, (row + 1) * height - 2 - high, width - 4, high] as const;
      if (value >= 0) context.fillRect(...bar);
      else context.strokeRect(...bar);
    }
  }
}

function paintNumbers(context: CanvasRenderingContext2D, { values, rows, columns, kind, limit }: Matrix, { width, height }: Size): void {
  if (height < 20 || width < 24) return;
  const decimals = limit < 10 ? 2 : limit < 100 ? 1 : 0;
  const texts = Array.from(values, (value) => value.toFixed(decimals).replace('-', '−').replace(/^(−?)0\./, '$1.'));
  context.font = `${Math.min(13, height * 0.36)}px ${getComputedStyle(context.canvas).fontFamily}`;
  const widest = Math.max(...texts.map((text) => context.measureText(text).width));
  if (widest > width - 3) return;
  const table = colourTable(kind);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let i = 0; i < rows * columns; i++) {
    context.fillStyle = inkOn(table[tableIndex(kind, values[i]!, limit)]!);
    context.fillText(texts[i]!, ((i % columns) + 0.5) * width, (Math.floor(i / columns) + 0.5) * height + 0.5);
  }
}

/** A stroke through every cell that the row may not see. */
function paintHidden(context: CanvasRenderingContext2D, { rows, columns }: Matrix, { width, height }: Size): void {
  const style = getComputedStyle(context.canvas);
  context.fillStyle = coloursAreForced() ? 'Canvas' : style.getPropertyValue('--sunk');
  context.strokeStyle = style.getPropertyValue('--control-line');
  context.lineWidth = 1;
  context.beginPath();
  for (let row = 0; row < rows; row++) {
    for (let column = row + 1; column < columns; column++) {
      context.fillRect(column * width, row * height, width, height);
      context.moveTo((column + 0.3) * width, (row + 0.7) * height);
      context.lineTo((column + 0.7) * width, (row + 0.3) * height);
    }
  }
  context.stroke();
}

function paintGrid(context: CanvasRenderingContext2D, { rows, columns }: Matrix, { width, height }: Size): void {
  context.strokeStyle = getComputedStyle(context.canvas).getPropertyValue('--line');
  context.lineWidth = 0.5;
  context.beginPath();
  for (let row = 0; row <= rows; row++) {
    context.moveTo(0, row * height);
    context.lineTo(columns * width, row * height);
  }
  for (let column = 0; column <= columns && width >= 14; column++) {
    context.moveTo(column * width, 0);
    context.lineTo(column * width, rows * height);
  }
  context.stroke();
}

/** Ink around paper, so that the frame shows on every colour. */
function paintMark(context: CanvasRenderingContext2D, { row, column }: Cell, { width, height }: Size, line: number): void {
  const style = getComputedStyle(context.canvas);
  const frame = (inset: number): void =>
    context.strokeRect(column * width + inset, row * height + inset, width - 2 * inset, height - 2 * inset);
  context.lineWidth = line;
  context.strokeStyle = style.getPropertyValue('--ink');
  frame(line / 2);
  context.lineWidth = 1;
  context.strokeStyle = style.getPropertyValue('--paper');
  frame(line + 0.5);
}
