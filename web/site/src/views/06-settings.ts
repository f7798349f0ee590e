// The settings of the five steps: what goes in, and through which projections.
import { html, nothing, type TemplateResult } from 'lit';
import { checkbox, numberField, select, slider } from '../components/controls.js';
import { lesson } from '../lesson.js';
import { timesRange } from '../url-state.js';

export function fiveStepsSettings(): TemplateResult {
  const { projection, seed, times, positions, causal } = lesson.settings;
  return html`
    <div class="controls">
      ${select({
        label: 'Projections',
        name: 'projection',
        choices: [['identity', 'identity: query = key = value = x'], ['random', 'seeded random numbers']] as const,
        value: projection,
        onChoose: (chosen) => lesson.set({ projection: chosen }),
      })}
      ${projection === 'random' ? numberField({ label: 'Seed', value: seed, min: 0, max: 2 ** 31 - 1, step: 1, onInput: (value) => lesson.set({ seed: value }) }) : nothing}
      ${slider({ label: 'Multiply the vectors by', value: times, ...timesRange, onInput: (value) => lesson.set({ times: value }) })}
      ${checkbox('add sinusoidal positions', positions, (checked) => lesson.set({ positions: checked }))}
      ${checkbox('causal: no word sees a later one', causal, (checked) => lesson.set({ causal: checked }))}
    </div>`;
}
