// View 0: the same sentence through both machines, step beside step.
import { html, nothing, type TemplateResult } from 'lit';
import type { RemoteEngine } from 'qkv/worker';
import { limitOf } from '../components/colour-map.js';
import { LessonElement } from '../components/light-element.js';
import type { Matrix } from '../components/paint.js';
import { proofs, tag, trainedElsewhere } from '../components/proof.js';
import { Stepper, transport } from '../components/stepper.js';
import { scientific, thousands } from '../format.js';
import { lesson } from '../lesson.js';
import { AttentionMachine, RnnMachine, work } from '../machines.js';
import { isSquare, letters, stages, type MatrixName, type Role, type Stage, type Trace } from '../stages.js';
import type { Sentence } from '../words.js';

export class TwoMachines extends LessonElement {
  #attention: AttentionMachine | undefined;
  #rnn: RnnMachine | undefined;
  #builtFor = '';
  readonly #stepper = new Stepper(() => this.#advance(), () => this.requestUpdate());

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#stepper.pause();
  }

  protected override willUpdate(): void {
    const { engine, sentence, settings: { seed } } = lesson;
    if (!engine || !sentence) return;
    const key = `${seed} ${sentence.words.join(' ')}`;
    if (key === this.#builtFor) return;
    this.#builtFor = key;
    this.#stepper.pause();
    this.#build(engine, sentence, seed).catch((error: unknown) => lesson.fail(error));
  }

  async #build(engine: RemoteEngine, sentence: Sentence, seed: number): Promise<void> {
    const key = this.#builtFor;
    const isEmpty = sentence.words.length === 0;
    const machines = isEmpty ? [] : await Promise.all([AttentionMachine.run(engine, sentence, seed), RnnMachine.run(engine, sentence, seed)] as const);
    // Others may have been asked for meanwhile.
    if (key !== this.#builtFor) return;
    [this.#attention, this.#rnn] = machines;
    this.#stepper.pause();
    // Shown finished, so that the claim can be seen before anything is touched.
    while (this.#advance());
    this.requestUpdate();
  }

  /** One step of each machine that is not done; false when both are. */
  #advance(): boolean {
    const running = [this.#attention, this.#rnn].filter((machine) => machine && !machine.done);
    running.forEach((machine) => machine!.step());
    return running.length > 0 && !this.#done;
  }

  get #done(): boolean {
    return Boolean(this.#attention?.done && this.#rnn?.done);
  }

  #reset(): void {
    this.#stepper.pause();
    this.#attention?.reset();
    this.#rnn?.reset();
    this.requestUpdate();
  }

  protected override render(): TemplateResult {
    const { sentence, settings: { seed }, failure } = lesson;
    if (failure) return html`<p class="notice" role="alert">${failure}</p>`;
    const words = sentence?.words ?? [];
    const rows = Math.max(stages.length, words.length);
    return html`
      ${this.#proofs(words.length)}
      ${transport({
        playing: this.#stepper.playing,
        done: this.#done,
        disabled: words.length === 0,
        onPlay: () => {
          if (this.#done) this.#reset();
          this.#stepper.play(rows);
        },
        onPause: () => { this.#stepper.pause(); this.requestUpdate(); },
        onStep: () => { this.#stepper.pause(); this.#advance(); this.requestUpdate(); },
        onReset: () => this.#reset(),
      })}
      <table class="race">
        <caption>What each machine makes at each step. Purple is below nought, orange above it; weights have a scale of their own.</caption>
        <thead>
          <tr><th scope="col"><span class="visually-hidden">Step</span></th>
            <th scope="col">Self-attention <small>all words at once</small></th>
            <th scope="col">RNN <small>one word at a time</small></th></tr>
        </thead>
        <tbody>${Array.from({ length: rows }, (_, i) => this.#row(i, words))}</tbody>
      </table>
      ${this.#work(words.length, sentence?.dims ?? 0)}
      <p class="tags">${trainedElsewhere} ${tag(`all weights of both machines: untrained, seed ${seed}`)}</p>`;
  }

  #proofs(n: number): TemplateResult {
    const [attention, rnn] = [this.#attention, this.#rnn];
    return proofs(
      { name: 'attention-steps', value: attention?.steps, text: String(attention?.steps), caption: html`steps self-attention took: one for each of its ${stages.length} stages, however long the sentence` },
      { name: 'rnn-steps', value: rnn?.steps, text: String(rnn?.steps), caption: html`steps the RNN took: one for each of the ${n} words` },
      { name: 'rnn-difference', value: rnn?.difference, text: rnn?.difference === undefined ? '' : scientific(rnn.difference), caption: 'largest difference between these RNN steps and one run over the whole sentence' },
    );
  }

  #row(i: number, words: readonly string[]): TemplateResult {
    const [attention, rnn] = [this.#attention, this.#rnn];
    const stage = stages[i];
    const word = words[i];
    return html`
      <tr>
        <th scope="row" class="step-number">${i + 1}</th>
        ${stage && attention ? html`<td class=${i < attention.steps ? 'ran' : 'waits'}>${stageCell(stage, attention.trace, i < attention.steps)}</td>`
          : html`<td class="finished">${i === stages.length ? 'finished' : nothing}</td>`}
        ${word !== undefined && rnn ? html`<td class=${i < rnn.steps ? 'ran' : 'waits'}>${stateCell(word, i, rnn)}</td>`
          : html`<td class="finished">${i === words.length && words.length > 0 ? 'finished' : nothing}</td>`}
      </tr>`;
  }

  #work(n: number, d: number): TemplateResult {
    return html`
      <p class="small work">Fewer steps is not less work. Multiply-adds for this sentence: self-attention
        <b data-proof="attention-work" data-value=${work.attention(n, d)}>${thousands(work.attention(n, d))}</b>, RNN
        <b data-proof="rnn-work" data-value=${work.rnn(n, d)}>${thousands(work.rnn(n, d))}</b>. What self-attention has is that all
        the words of a stage can be worked on at the same time. (The engine runs the five stages of attention in one call and the RNN's steps in one call each, as soon as the sentence is there; here they are shown one by one.)</p>`;
  }
}

function stageCell({ name, does, makes }: Stage, trace: Trace, ran: boolean): TemplateResult {
  return html`
    <div class="stage"><div><b>${name}</b> <small>${does}</small></div>
      <div class="thumbnails">${makes.map((matrix) => html`
        <figure class="role-${roleOf(matrix)}">
          <matrix-thumbnail class=${isSquare(matrix) ? 'square' : 'wide'} .matrix=${ran ? glance(trace, matrix) : undefined}></matrix-thumbnail>
          ${makes.length > 1 ? html`<figcaption>${letters[matrix as Role]}</figcaption>` : nothing}
        </figure>`)}
      </div>
    </div>`;
}

const roleOf = (matrix: MatrixName): Role => (matrix === 'scores' || matrix === 'scaled' ? 'weights' : matrix);

function glance(trace: Trace, name: MatrixName): Matrix {
  const values = trace[name];
  const rows = trace.words.length;
  return { values, rows, columns: values.length / rows, kind: name === 'weights' ? 'weights' : 'signed', limit: limitOf(values) };
}

function stateCell(word: string, t: number, { states }: RnnMachine): TemplateResult {
  const values = states[t];
  const limit = Math.max(...states.map(limitOf));
  const matrix = values && { values, rows: 1, columns: values.length, kind: 'signed' as const, limit };
  return html`
    <div class="state"><span><b>${word}</b> <small>${t === 0 ? 'starts' : `waits for step ${t}`}</small></span>
      <matrix-thumbnail class="strip" .matrix=${matrix}></matrix-thumbnail></div>`;
}
