// The sweep as an SVG: a panel for each series, nanoseconds a multiply-add on a logarithmic axis.

const [WIDTH, HEIGHT, GAP] = [880, 300, 60];
const LINES = [
  { key: 'asCalled', colour: '#b0b0b0', label: 'as called' },
  { key: 'cost', colour: '#1f5fa8', label: 'a call\'s overhead counted as multiply-adds' },
];

/** `panels`: { title, points: { size, asCalled, cost } in seconds }. */
export function plot(panels) {
  const height = panels.length * (HEIGHT + GAP) + GAP;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH + 2 * GAP} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    ...LINES.map(({ colour, label }, i) => `<text x="${GAP + 160 * i}" y="20" fill="${colour}">${label}</text>`),
    ...panels.map((panel, i) => `<g transform="translate(${GAP} ${GAP + i * (HEIGHT + GAP)})">${drawPanel(panel)}</g>`),
    '</svg>\n',
  ].join('\n');
}

function drawPanel({ title, points }) {
  const nanoseconds = LINES.flatMap(({ key }) => points.map((point) => point[key] * 1e9));
  const [low, high] = [Math.floor(Math.log10(Math.min(...nanoseconds))), Math.ceil(Math.log10(Math.max(...nanoseconds)))];
  const last = points.at(-1).size;
  const x = (size) => ((WIDTH * size) / last).toFixed(1);
  const y = (logarithm) => ((HEIGHT * (high - logarithm)) / (high - low)).toFixed(1);
  const decades = Array.from({ length: high - low + 1 }, (_, i) => low + i);
  const marks = Array.from({ length: Math.floor(last / 20) + 1 }, (_, i) => 20 * i);
  return [
    ...decades.map((decade) => `<path d="M0 ${y(decade)}H${WIDTH}" stroke="#e0e0e0"/><text x="-6" y="${y(decade)}" text-anchor="end">${10 ** decade} ns</text>`),
    ...marks.map((mark) => `<text x="${x(mark)}" y="${HEIGHT + 16}" text-anchor="middle">${mark}</text>`),
    `<text x="${WIDTH / 2}" y="${HEIGHT + 34}" text-anchor="middle">${title}; time a multiply-add</text>`,
    ...LINES.map(({ key, colour }) => {
      const line = points.map((point) => `${x(point.size)} ${y(Math.log10(point[key] * 1e9))}`).join('L');
      return `<path d="M${line}" fill="none" stroke="${colour}" stroke-width="1.5"/>`;
    }),
  ].join('\n');
}
