// Medians as bars, quartiles as whiskers, in one table with the numbers they are drawn from.
import { html, type TemplateResult } from 'lit';
import { scientific, short, thousands } from '../format.js';
import type { Outcome, Result } from './messages.js';

const contestants: Record<string, { name: string; note: string; role: string }> = {
  attention: { name: 'Self-attention', note: 'WebAssembly SIMD: score, scale, softmax, mix', role: 'weights' },
  rnn: { name: 'RNN', note: 'WebAssembly SIMD: input product and the loop over n', role: 'key' },
  'js-loop': { name: 'RNN as a JavaScript loop', note: 'no SIMD, no opponent: what plain JavaScript costs', role: 'plain' },
};

/** The JavaScript loop does not run on the engine, so it is no opponent. */
export const isOpponent = (key: string): boolean => key !== 'js-loop';

export const contestantName = (key: string): string => contestants[key]!.name;

export function timingTable({ n, d, results, engine }: Outcome, inputs: string): TemplateResult {
  // The two opponents fill the width; what is far slower is cut off, and says so.
  const end = Math.max(...results.filter(({ name }) => isOpponent(name)).map(({ upper }) => upper)) * 1.1;
  return html`
    <div class="pan" tabindex="0" role="region" aria-label="Times: table">
      <table class="timing">
        <caption>n = ${n} vectors of d = ${d} numbers (${inputs}); engine build “${engine.variant}”, ${engine.threads} ${engine.threads === 1 ? 'thread' : 'threads'}</caption>
        <thead><tr>
          <th scope="col">Contestant</th><th scope="col">Median, with quartiles as a whisker</th><th scope="col" class="number">ms</th>
          <th scope="col" class="number">quartiles</th><th scope="col" class="number">largest difference</th><th scope="col" class="number">multiply-adds</th>
        </tr></thead>
        <tbody>${results.map((result) => row(result, end))}</tbody>
      </table>
    </div>`;
}

function row({ name, lower, median, upper, difference, multiplyAdds, samples }: Result, end: number): TemplateResult {
  const percent = (value: number): string => `${Math.min(100, (100 * value) / end)}%`;
  const isCut = median > end;
  const { name: title, note, role } = contestants[name]!;
  return html`
    <tr data-contestant=${name} data-lower=${lower} data-upper=${upper}>
      <th scope="row">${title} <small>${note}</small></th>
      <td class="bar-cell"><div class="bar role-${role} ${isCut ? 'cut' : ''}" aria-hidden="true">
        <i class="median" style="width: ${percent(median)}"></i>
        ${isCut ? html`<span>cut off: ${(median / end).toFixed(1)} times this width</span>`
          : html`<i class="whisker" style="left: ${percent(lower)}; width: ${percent(Math.min(end, upper) - lower)}"></i>`}</div></td>
      <td class="number" data-label="ms"><b data-proof="time-${name}" data-value=${median}>${short(median, 3)}</b></td>
      <td class="number" data-label="quartiles">${short(lower, 3)} – ${short(upper, 3)}<br><small>${samples.length} samples</small></td>
      <td class="number" data-label="largest difference" data-proof="difference-${name}" data-value=${difference}>${scientific(difference)}</td>
      <td class="number" data-label="multiply-adds">${thousands(multiplyAdds)}</td>
    </tr>`;
}
