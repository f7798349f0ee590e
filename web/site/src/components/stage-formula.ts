// The formula of one cell, with the words and numbers of that cell in it.
import { html, mathml, type TemplateResult } from 'lit';
import type { MatrixName, Role } from '../stages.js';

type Math = TemplateResult<3>;

const symbol = (name: string, role?: Role): Math => mathml`<mi class=${role ? `role-${role}` : ''}>${name}</mi>`;

const indexed = (base: Math, ...indices: string[]): Math =>
  mathml`<msub>${base}<mrow>${indices.map((index, i) => mathml`${i > 0 ? mathml`<mo>,</mo>` : ''}${index === 'j' ? mathml`<mi>j</mi>` : mathml`<mtext>${index}</mtext>`}`)}</mrow></msub>`;

const sum = (variable: string, last: number): Math =>
  mathml`<munderover><mo>∑</mo><mrow><mi>${variable}</mi><mo>=</mo><mn>1</mn></mrow><mn>${last}</mn></munderover>`;

const times = mathml`<mo>·</mo>`;

/** `n` is the number of words that the row sees. */
export function stageFormula(matrix: MatrixName, row: string, column: string, n: number, d: number): TemplateResult {
  return html`<div class="formula"><math displaystyle="true"><mrow>${body(matrix, row, column, n, d)}</mrow></math></div>`;
}

function body(matrix: MatrixName, row: string, column: string, n: number, d: number): Math {
  const [s, z] = [symbol('s'), symbol('z')];
  const roles = { q: symbol('q', 'query'), k: symbol('k', 'key'), v: symbol('v', 'value'), a: symbol('a', 'weights'), o: symbol('o', 'output') };
  switch (matrix) {
    case 'query':
    case 'key':
    case 'value': {
      const letter = matrix[0] as 'q' | 'k' | 'v';
      return mathml`${indexed(roles[letter], row, column)}<mo>=</mo>${sum('j', d)}${indexed(symbol('x'), row, 'j')}${times}${indexed(mathml`<msub>${symbol('w')}${roles[letter]}</msub>`, 'j', column)}`;
    }
    case 'scores':
      return mathml`${indexed(s, row, column)}<mo>=</mo>${sum('j', d)}${indexed(roles.q, row, 'j')}${times}${indexed(roles.k, column, 'j')}`;
    case 'scaled':
      return mathml`${indexed(z, row, column)}<mo>=</mo><mfrac>${indexed(s, row, column)}<msqrt><mn>${d}</mn></msqrt></mfrac>`;
    case 'weights':
      return mathml`${indexed(roles.a, row, column)}<mo>=</mo><mfrac>
        <mrow><mi>exp</mi><mo>(</mo>${indexed(z, row, column)}<mo>−</mo><mi>m</mi><mo>)</mo></mrow>
        <mrow>${sum('j', n)}<mi>exp</mi><mo>(</mo>${indexed(z, row, 'j')}<mo>−</mo><mi>m</mi><mo>)</mo></mrow></mfrac>`;
    case 'output':
      return mathml`${indexed(roles.o, row, column)}<mo>=</mo>${sum('j', n)}${indexed(roles.a, row, 'j')}${times}${indexed(roles.v, 'j', column)}`;
  }
}
