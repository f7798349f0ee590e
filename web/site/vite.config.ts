import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8').trim();

/** One plain text beside the page with the notices of all that is built into it, for people and without scripts. */
const notices: Plugin = {
  name: 'notices',
  apply: 'build',
  generateBundle() {
    const parts = [
      read('../../NOTICE.md'),
      read('data/NOTICE.md'),
      `# Apache License 2.0, for the word vectors\n\n${read('data/LICENSE')}`,
    ];
    this.emitFile({ type: 'asset', fileName: 'notices.txt', source: `${parts.join(`\n\n${'-'.repeat(78)}\n\n`)}\n` });
  },
};

export default defineConfig({
  // Relative addresses: the built page runs from any folder of any host.
  base: './',
  plugins: [notices],
  worker: { format: 'es' },
  build: {
    outDir: '../../build/site',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
