// View 12, its beginning: attention against the recurrent loop, timed on the reader's machine.
import { html, nothing, type TemplateResult } from 'lit';
import { select } from '../components/controls.js';
import { LessonElement } from '../components/light-element.js';
import { tag, trainedElsewhere } from '../components/proof.js';
import { lesson } from '../lesson.js';
import { contestantName, isOpponent, timingTable } from '../timing/bars.js';
import { cancelInWorker, runInWorker } from '../timing/client.js';
import { roundLimits, winner } from '../timing/measure.js';
import type { Outcome } from '../timing/messages.js';
import { lengths, widths } from '../url-state.js';

type Status = { at: 'waiting' | 'cancelled' } | { at: 'running'; round: number } | { at: 'failed'; message: string };

export class TimingPanel extends LessonElement {
  #status: Status = { at: 'waiting' };
  #outcome?: Outcome;
  #inputs = '';
  #watcher?: IntersectionObserver;
  #isNear = false;

  override connectedCallback(): void {
    super.connectedCallback();
    // The first run starts by itself, but not before the reader comes near.
    this.#watcher = new IntersectionObserver(([entry]) => {
      this.#isNear ||= entry!.isIntersecting;
      this.requestUpdate();
    }, { rootMargin: '200px' });
    this.#watcher.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#watcher?.disconnect();
    cancelInWorker();
  }

  protected override updated(): void {
    if (!this.#isNear || !lesson.sentence) return;
    this.#watcher?.disconnect();
    this.#isNear = false;
    void this.#run();
  }

  /** The sentence over and over until there are n vectors, as they are only for their own number of dimensions. */
  #sentenceVectors(): Float32Array | undefined {
    const { sentence, settings: { n, d, input } } = lesson;
    if (input !== 'sentence' || !sentence || sentence.words.length === 0 || sentence.dims !== d) return undefined;
    return Float32Array.from({ length: n * d }, (_, i) => sentence.vectors[i % sentence.vectors.length]!);
  }

  async #run(): Promise<void> {
    const { n, d, seed } = lesson.settings;
    const x = this.#sentenceVectors();
    this.#show({ at: 'running', round: 0 });
    try {
      const outcome = await runInWorker({ n, d, seed, ...(x && { x }) }, (round) => this.#show({ at: 'running', round }));
      if (outcome) {
        this.#outcome = outcome;
        this.#inputs = x ? 'your sentence’s, repeated' : `random, seed ${seed}`;
      }
      this.#show({ at: outcome ? 'waiting' : 'cancelled' });
    } catch (error) {
      this.#show({ at: 'failed', message: (error as Error).message });
    }
  }

  #show(status: Status): void {
    this.#status = status;
    this.requestUpdate();
  }

  protected override render(): TemplateResult {
    if (lesson.failure) return html`<p class="notice" role="alert">${lesson.failure}</p>`;
    return html`
      ${this.#verdict()}
      ${this.#controls()}
      ${this.#progress()}
      ${this.#outcome ? this.#results(this.#outcome) : html`<div class="figure-room"><p class="soft">The first run starts when you come near; it takes about a second.</p></div>`}
      <p class="tags">${lesson.settings.input === 'sentence' ? trainedElsewhere : nothing} ${tag(`RNN weights: untrained, seed ${lesson.settings.seed}`)} ${tag('times: your machine')}</p>`;
  }

  #controls(): TemplateResult {
    const { n, d, input } = lesson.settings;
    const running = this.#status.at === 'running';
    return html`
      <div class="controls">
        ${select({ label: 'Length n', name: 'n', choices: lengths.map((value) => [value, String(value)] as const), value: n, onChoose: (chosen) => lesson.set({ n: chosen }) })}
        ${select({ label: 'Dimensions d', name: 'd', choices: widths.map((value) => [value, String(value)] as const), value: d, onChoose: (chosen) => lesson.set({ d: chosen }) })}
        ${d === lesson.sentence?.dims ? select({
          label: 'Vectors',
          name: 'input',
          choices: [['random', 'seeded random numbers'], ['sentence', 'my sentence, repeated']] as const,
          value: input,
          onChoose: (chosen) => lesson.set({ input: chosen }),
        }) : nothing}
        <div class="buttons">
          <button type="button" class="primary" name="run" ?disabled=${running || !lesson.sentence} @click=${() => this.#run()}>Measure</button>
          <button type="button" name="cancel" ?disabled=${!running} @click=${cancelInWorker}>Cancel</button>
        </div>
      </div>`;
  }

  #progress(): TemplateResult {
    const status = this.#status;
    const text = {
      waiting: this.#outcome ? 'Done.' : '',
      cancelled: 'Cancelled.',
      running: 'Measuring …',
      failed: '',
    }[status.at];
    return html`
      <div class="progress"><span role="status">${text}</span>
        ${status.at === 'running' ? html`<progress aria-label="Rounds measured" max=${roundLimits.most} value=${status.round}></progress>` : nothing}</div>
      ${status.at === 'failed' ? html`<p class="notice" role="alert">${status.message}</p>` : nothing}`;
  }

  /** Only the two that run on the same engine compete. */
  #verdict(): TemplateResult {
    const opponents = this.#outcome?.results.filter(({ name }) => isOpponent(name));
    const name = opponents && winner(opponents);
    const [fast, slow] = [...(opponents ?? [])].sort((a, b) => a.median - b.median);
    const ratio = fast && slow ? slow.median / fast.median : undefined;
    const verdict = name ? `${contestantName(name)} ahead` : 'Too close to call on this machine';
    return html`
      <div class="verdict" data-winner=${this.#outcome ? name ?? 'none' : nothing} role="status">
        <p>${this.#outcome ? verdict : '…'}</p>
        <p class="soft small">${ratio === undefined ? nothing : html`The medians of self-attention and RNN are a factor of
          <b data-proof="time-ratio" data-value=${ratio}>${ratio.toFixed(2)}</b> apart${name ? '' : ', and their quartile ranges overlap'}.`}</p>
      </div>`;
  }

  #results(outcome: Outcome): TemplateResult {
    const { reason } = outcome.engine;
    return html`
      ${timingTable(outcome, this.#inputs)}
      ${outcome.stable ? nothing : html`<p class="notice small">The medians still moved after ${roundLimits.most} rounds: something else keeps this machine busy. Take the times with care.</p>`}
      <p class="small soft">Differences are from the same operation in double precision. Attention takes the vectors as query, key and value, without
        projections; with its four projections it would need 4<i>nd</i>² multiply-adds more. Each call is timed as a program makes it, copies included.
        ${reason ? html`About the build: ${reason}.` : nothing}</p>`;
  }
}
