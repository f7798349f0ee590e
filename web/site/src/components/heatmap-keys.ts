// Where a key press leads on a matrix.
import type { Cell, Matrix } from './paint.js';

export function cellAfterKey(key: string, { row, column }: Cell, { values, rows, columns }: Matrix): Cell | undefined {
  const within = (index: number, count: number): number => Math.min(count - 1, Math.max(0, index));
  switch (key) {
    case 'ArrowLeft': return { row, column: within(column - 1, columns) };
    case 'ArrowRight': return { row, column: within(column + 1, columns) };
    case 'ArrowUp': return { row: within(row - 1, rows), column };
    case 'ArrowDown': return { row: within(row + 1, rows), column };
    case 'Home': return { row, column: 0 };
    case 'End': return { row, column: columns - 1 };
    case 'PageUp': return { row: 0, column };
    case 'PageDown': return { row: rows - 1, column };
    case 'm':
    case 'M': return { row, column: largestColumn(values.subarray(row * columns, (row + 1) * columns)) };
    default: return undefined;
  }
}

const largestColumn = (row: Float32Array): number => row.indexOf(row.reduce((a, b) => Math.max(a, b)));
