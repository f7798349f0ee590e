// Starts the page: names our elements, and lets the lesson begin.
import { EngineLine } from './components/engine-line.js';
import { MatrixHeatmap } from './components/heatmap.js';
import { LiveRegion } from './components/read-out.js';
import { SentenceBox } from './components/sentence-box.js';
import { MatrixThumbnail } from './components/thumbnail.js';
import { lesson } from './lesson.js';
import { TwoMachines } from './views/00-two-machines.js';
import { FiveSteps } from './views/06-five-steps.js';
import { TimingPanel } from './views/12-timing.js';

const elements = {
  'matrix-thumbnail': MatrixThumbnail,
  'matrix-heatmap': MatrixHeatmap,
  'live-region': LiveRegion,
  'sentence-box': SentenceBox,
  'engine-line': EngineLine,
  'two-machines': TwoMachines,
  'five-steps': FiveSteps,
  'timing-panel': TimingPanel,
};
for (const [name, element] of Object.entries(elements)) customElements.define(name, element);

// Links between views change one key of the address and keep the others.
document.addEventListener('click', (event) => {
  const link = (event.target as Element).closest('a[href^="#view="]');
  if (!link) return;
  event.preventDefault();
  lesson.set({ view: link.getAttribute('href')!.slice('#view='.length) });
  lesson.show();
});

void lesson.start().then(() => lesson.show());
