// What the curves of gradients.mjs say, as Markdown.
import { table } from '../bench/cells.mjs';
import { median } from '../bench/statistics.mjs';
import { factorPerHop, powerOfLength } from './gradients.mjs';

export function gradientsTable(curves) {
  const distinct = (key) => [...new Set(curves.map((curve) => curve[key]))];
  const lengths = distinct('n');
  const of = (wanted) => curves.filter((curve) => Object.entries(wanted).every(([key, value]) => curve[key] === value));
  const first = (model, n) => median(of({ model, n }).map(({ gradients }) => gradients.at(-1)));
  const rows = distinct('model').map((model) => [
    model,
    ...lengths.map((n) => first(model, n).toExponential(1)),
    ...[lengths[0], lengths.at(-1)].map((n) => median(of({ model, n }).map(factorPerHop)).toFixed(3)),
    median(distinct('seed').map((seed) => powerOfLength(of({ model, seed })))).toFixed(1),
  ]);
  return [
    'The gradient by the first of n inputs at the start, the factor a hop that fits a curve best, and the power of n that the first',
    'goes with; medians over seeds.', '',
    ...table(['', ...lengths.map((n) => `n ${n}`), `a hop, n ${lengths[0]}`, `a hop, n ${lengths.at(-1)}`, 'power of n'], rows), '',
  ].join('\n');
}
