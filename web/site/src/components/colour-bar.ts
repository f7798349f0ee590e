// The colour scale with its numbers.
import { html, type TemplateResult } from 'lit';
import { short } from '../format.js';
import type { Matrix } from './paint.js';

const steps = 64;

export function colourBar({ kind, limit }: Matrix): TemplateResult {
  const low = kind === 'weights' ? 0 : -limit;
  const values = Float32Array.from({ length: steps }, (_, i) => low + ((limit - low) * i) / (steps - 1));
  const middle = (low + limit) / 2;
  return html`
    <div class="colour-bar" role="img" aria-label="Colour scale from ${short(low, 3)} to ${short(limit, 3)}">
      <matrix-thumbnail .matrix=${{ values, rows: 1, columns: steps, kind, limit }}></matrix-thumbnail>
      <div class="ticks number" aria-hidden="true"><span>${short(low, 3)}</span><span>${short(middle, 3)}</span><span>${short(limit, 3)}</span></div>
    </div>`;
}
