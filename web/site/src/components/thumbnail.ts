// A matrix at a glance: colours only, no numbers, as large as its style says.
import { html, type TemplateResult } from 'lit';
import { whenColoursChange } from './colour-map.js';
import { LightElement } from './light-element.js';
import { paintPixels, type Matrix } from './paint.js';

export class MatrixThumbnail extends LightElement {
  static override properties = { matrix: { attribute: false } };
  declare matrix?: Matrix;
  #stop?: () => void;

  override connectedCallback(): void {
    super.connectedCallback();
    this.#stop = whenColoursChange(() => this.requestUpdate());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#stop?.();
  }

  protected override render(): TemplateResult {
    return html`<canvas aria-hidden="true"></canvas>`;
  }

  protected override updated(): void {
    if (this.matrix) paintPixels(this.querySelector('canvas')!, this.matrix);
  }
}
