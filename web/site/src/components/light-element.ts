// The base of our elements: rendered into the page itself, so that one style sheet and one set of labels serve all.
import { LitElement } from 'lit';
import { lesson } from '../lesson.js';

export class LightElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}

/** An element that is rendered again whenever the shared state of the lesson changes. */
export class LessonElement extends LightElement {
  readonly #update = (): void => this.requestUpdate();

  override connectedCallback(): void {
    super.connectedCallback();
    lesson.addEventListener('change', this.#update);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    lesson.removeEventListener('change', this.#update);
  }
}
