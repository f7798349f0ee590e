// Numbers as the page prints them: a true minus sign, and as many digits as the eye needs.
const minus = (text: string): string => text.replaceAll('-', '−');

/** About `digits` significant digits, without an exponent where that is readable. */
export function short(value: number, digits = 4): string {
  if (value === 0 || !Number.isFinite(value)) return minus(String(value));
  const size = Math.abs(value);
  return size < 1e-3 || size >= 1e5 ? scientific(value) : minus(value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size)))));
}

/** A fixed number of decimals, for columns. */
export const fixed = (value: number, decimals: number): string =>
  minus(Number.isFinite(value) ? value.toFixed(decimals).replace(/^-(0(\.0+)?)$/, '$1') : String(value));

/** As in 6.0 × 10⁻⁸. */
export function scientific(value: number): string {
  if (value === 0) return '0';
  const [mantissa, exponent] = value.toExponential(1).split('e') as [string, string];
  const raised = [...exponent.replace('+', '')].map((char) => (char === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(char)])).join('');
  return `${minus(mantissa)} × 10${raised}`;
}

export const thousands = (value: number): string => value.toLocaleString('en');

export const plural = (count: number, one: string, many = `${one}s`): string => `${thousands(count)} ${count === 1 ? one : many}`;
