// The two colour maps as tables of 256 colours, from the stops in tokens.css.
export type MapKind = 'weights' | 'signed';

/** Colours as a canvas stores them, (red, green, blue, alpha) bytes in one number each. */
export type ColourTable = Uint32Array;

const tables = new Map<MapKind, ColourTable>();
const onChange = new Set<() => void>();
const dark = matchMedia('(prefers-color-scheme: dark)');
const forced = matchMedia('(forced-colors: active)');

for (const query of [dark, forced]) {
  query.addEventListener('change', () => {
    tables.clear();
    onChange.forEach((tell) => tell());
  });
}

/** Calls back when the colours are others than before; gives what ends that. */
export function whenColoursChange(tell: () => void): () => void {
  onChange.add(tell);
  return () => onChange.delete(tell);
}

/** True where the user's own few colours replace the page's: show amounts by size instead. */
export const coloursAreForced = (): boolean => forced.matches;

export function colourTable(kind: MapKind): ColourTable {
  const table = tables.get(kind) ?? makeTable(getComputedStyle(document.documentElement).getPropertyValue(`--map-${kind}`));
  tables.set(kind, table);
  return table;
}

function makeTable(stops: string): ColourTable {
  const colours = stops.trim().split(/\s+/).map((hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (colours.length - 1);
    const below = Math.min(Math.floor(place), colours.length - 2);
    const [red, green, blue] = [0, 1, 2].map((channel) => {
      const [from, to] = [colours[below]![channel]!, colours[below + 1]![channel]!];
      return Math.round(from + (to - from) * (place - below));
    }) as [number, number, number];
    return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

/** The place in a table of a value in 0...limit (weights) or -limit...limit (signed). */
export function tableIndex(kind: MapKind, value: number, limit: number): number {
  const part = limit === 0 ? 0 : value / limit;
  return Math.round(255 * Math.min(1, Math.max(0, kind === 'weights' ? part : (part + 1) / 2)));
}

/** Black or white, whichever reads better on the colour. */
export function inkOn(colour: number): string {
  const [red, green, blue] = [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255].map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return luminance > 0.179 ? '#000' : '#fff';
}

/** The largest absolute value: the end of a matrix's scale. */
export const limitOf = (values: Float32Array): number => values.reduce((limit, value) => Math.max(limit, Math.abs(value)), 0);
