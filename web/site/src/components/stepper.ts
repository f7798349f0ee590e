// Play, pause, step and reset. Where the user wants less motion, steps only.
import { html, nothing, type TemplateResult } from 'lit';

const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

/** A whole play takes no longer than this. */
const longestPlay = 5000;
const slowestStep = 600;

/** Runs `advance` again and again until it says that all is done. */
export class Stepper {
  readonly #advance: () => boolean;
  readonly #changed: () => void;
  #timer?: ReturnType<typeof setInterval> | undefined;

  constructor(advance: () => boolean, changed: () => void) {
    this.#advance = advance;
    this.#changed = changed;
    reducedMotion.addEventListener('change', () => { this.pause(); changed(); });
  }

  get playing(): boolean {
    return this.#timer !== undefined;
  }

  play(steps: number): void {
    this.pause();
    this.#timer = setInterval(() => {
      if (!this.#advance()) this.pause();
      this.#changed();
    }, Math.min(slowestStep, longestPlay / steps));
    this.#changed();
  }

  pause(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

interface Transport {
  playing: boolean;
  done: boolean;
  disabled: boolean;
  onPlay: () => void;
  onPause: () => void;
  onStep: () => void;
  onReset: () => void;
}

export const transport = ({ playing, done, disabled, onPlay, onPause, onStep, onReset }: Transport): TemplateResult => html`
  <div class="buttons transport" role="group" aria-label="Run the two machines">
    ${reducedMotion.matches ? nothing : playing
      ? html`<button type="button" class="primary" @click=${onPause}>Pause</button>`
      : html`<button type="button" class="primary" ?disabled=${disabled} @click=${onPlay}>${done ? 'Play again' : 'Play'}</button>`}
    <button type="button" ?disabled=${disabled || done} @click=${onStep}>Step</button>
    <button type="button" ?disabled=${disabled} @click=${onReset}>Reset</button>
  </div>`;
