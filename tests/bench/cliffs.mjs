// The cliff sweep, `npm run bench -- --cliffs`: attention at every length from 1 to 300 and every dim from 1 to 160. No size
// may cost much more per multiply-add than its neighbours, as one beyond the edge of a tile would.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeFlags } from '../../build-scripts/node-flags.mjs';
import { project, run, step } from '../../build-scripts/steps.mjs';
import { plot } from './cliffs-plot.mjs';
import { machineLine } from './report.mjs';
import { median, quantile } from './statistics.mjs';

const BAR = 3;
/** To each side. */
const NEIGHBOURS = 3;

/** `qkv`: the address of the package's entry. Writes build/cliffs.csv and build/cliffs.svg; resolves to what they say. */
export async function sweepCliffs(qkv) {
  const machine = machineLine();
  const output = await step('Sweeping lengths and dims, about a minute', () =>
    run(process.execPath, [...nodeFlags('relaxed'), 'tests/bench/cliffs-process.mjs', qkv]));
  const [call, ...points] = JSON.parse(output);
  const overhead = { middle: median(call.times), low: quantile(call.times, 0.25) };
  const lengths = costs(points.filter(({ series }) => series === 'length'), 'length', overhead);
  const dims = costs(points.filter(({ series }) => series === 'dim'), 'dim', overhead);
  await mkdir(join(project, 'build'), { recursive: true });
  await writeFile(join(project, 'build/cliffs.csv'), csv([...lengths, ...dims]));
  await writeFile(join(project, 'build/cliffs.svg'), plot([
    { title: 'length, at dim 64', points: lengths }, { title: 'dim, at length 128', points: dims },
  ]));
  return [
    `relaxed, one thread, Node ${process.versions.node}, ${machine}`,
    `A call of length 1 and dim 1 takes ${(overhead.middle * 1e6).toFixed(1)} us.`,
    '',
    ...verdict('lengths 1 to 300 at dim 64', lengths),
    ...verdict('dims 1 to 160 at length 128', dims),
    '',
    'build/cliffs.csv has the numbers, build/cliffs.svg the plot.',
  ].join('\n');
}

/**
 * Of each point { series, size, multiplyAdds, seconds, quartiles, asCalled, cost, lowCost }: seconds a multiply-add, as called;
 * with the call's overhead counted as the multiply-adds that the series' best size does in that time; and the last by the
 * lower quartiles. Where arithmetic takes a fraction of the overhead, the first says nothing of kernels: it falls by four
 * from length 1 to 2 whatever they do.
 */
function costs(points, axis, overhead) {
  const made = points.map(({ series, times, ...sizes }) => ({
    series,
    size: sizes[axis],
    multiplyAdds: 2 * sizes.length ** 2 * sizes.dim,
    seconds: median(times),
    quartiles: [quantile(times, 0.25), quantile(times, 0.75)],
  }));
  const withCall = (secondsOf, ofCall) => {
    const best = Math.min(...made.map((point) => secondsOf(point) / point.multiplyAdds));
    return (point) => secondsOf(point) / (point.multiplyAdds + ofCall / best);
  };
  const cost = withCall(({ seconds }) => seconds, overhead.middle);
  const lowCost = withCall(({ quartiles }) => quartiles[0], overhead.low);
  return made.map((point) => ({ ...point, asCalled: point.seconds / point.multiplyAdds, cost: cost(point), lowCost: lowCost(point) }));
}

const scales = {
  cost: 'medians, a call\'s overhead counted as multiply-adds',
  lowCost: 'the same of lower quartiles, which a busy machine moves less',
  asCalled: 'medians as called, where the smallest sizes are overhead',
};

function verdict(title, points) {
  return [`${title}:`, ...Object.entries(scales).map(([scale, meaning]) => {
    const [around, beside] = [worst(points, scale, NEIGHBOURS, median), worst(points, scale, 1, (values) => Math.min(...values))];
    const judged = scale === 'cost' ? `, ${Math.max(around.ratio, beside.ratio) <= BAR ? 'within' : 'ABOVE'} the bar of ${BAR}` : '';
    return `  ${around.ratio.toFixed(2)} times the median of ${NEIGHBOURS} neighbours to each side (at ${around.size}), ${beside.ratio.toFixed(2)} times one beside it (at ${beside.size})${judged}: ${meaning}`;
  })];
}

/** The largest ratio of a point to what `of` makes of its neighbours. */
function worst(points, scale, reach, of) {
  const ratios = points.map((point, i) => {
    const around = [...points.slice(Math.max(0, i - reach), i), ...points.slice(i + 1, i + 1 + reach)];
    return { size: point.size, ratio: point[scale] / of(around.map((other) => other[scale])) };
  });
  return ratios.reduce((a, b) => (b.ratio > a.ratio ? b : a));
}

function csv(points) {
  const titles = 'series,size,multiply_adds,seconds,lower_quartile,upper_quartile,seconds_per_multiply_add,with_overhead_as_work';
  const lines = points.map(({ series, size, multiplyAdds, seconds, quartiles, asCalled, cost }) =>
    [series, size, multiplyAdds, ...[seconds, ...quartiles, asCalled, cost].map((number) => number.toExponential(4))].join(','));
  return `${[titles, ...lines].join('\n')}\n`;
}
