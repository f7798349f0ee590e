import { QkvError } from './errors.js';
import { nodeModule } from './features.js';
import { classOf, describe } from './tensor.js';
import { type Variant, VARIANTS } from './variants.js';

/**
 * Where the WebAssembly comes from: a URL as a string or an object (in Node a string may be a path), its
 * bytes (ArrayBuffer, SharedArrayBuffer or a view), a Response, or a compiled WebAssembly.Module.
 */
export type WasmSource = string | object;

/** A module that is there but not yet compiled. */
export interface Wasm {
  /** "version variant", which the build appends to each file; undefined in a foreign one. */
  stamp: string | undefined;
  compile(): Promise<WebAssembly.Module>;
}

/** The package's own files, as literals that bundlers follow. */
export function packagedWasm(variant: Variant): URL {
  switch (variant) {
    case 'simd': return new URL('./qkv-simd.wasm', import.meta.url);
    case 'simd-mt': return new URL('./qkv-simd-mt.wasm', import.meta.url);
    case 'relaxed': return new URL('./qkv-relaxed.wasm', import.meta.url);
    case 'relaxed-mt': return new URL('./qkv-relaxed-mt.wasm', import.meta.url);
  }
}

const loadFailed = (message: string, cause?: unknown): never => {
  throw new QkvError('LOAD_FAILED', message, cause === undefined ? undefined : { cause });
};

const reason = (error: unknown): string =>
  ((error as Error | undefined)?.message ?? String(error)).replace(/\.?\s*$/, '');

async function readFile(path: string | URL): Promise<Uint8Array> {
  const fs = nodeModule<{ promises: { readFile(path: string | URL): Promise<Uint8Array> } }>('node:fs');
  if (!fs) return loadFailed(`wasm: ${path} is a file, which this host cannot read; Node can from 20.16 on, or give load({ wasm }) the bytes.`);
  try {
    return await fs.promises.readFile(path);
  } catch (error) {
    return loadFailed(`wasm: ${path} could not be read: ${reason(error)}.`, error);
  }
}

async function fetchBytes(answer: Response | Promise<Response>, name: string): Promise<Uint8Array> {
  try {
    const response = await answer;
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (response.ok && isWasm(bytes)) return bytes;
    const type = response.headers.get('content-type') ?? 'none';
    const isHtml = /^\s*</.test(new TextDecoder().decode(bytes.slice(0, 64)));
    return loadFailed(
      `wasm: ${response.url || name} answered with status ${response.status} and content type ${type}, ${isHtml ? 'an HTML page' : 'which is not WebAssembly'}; check that the file is served there, or give load({ wasm }) its address.`,
    );
  } catch (error) {
    if (error instanceof QkvError) throw error;
    return loadFailed(`wasm: ${name} could not be fetched: ${reason(error)}.`, error);
  }
}

const isWasm = (bytes: Uint8Array): boolean =>
  bytes[0] === 0 && bytes[1] === 0x61 && bytes[2] === 0x73 && bytes[3] === 0x6d;

function bytesOf(source: WasmSource): Promise<Uint8Array> | Uint8Array {
  // Of a buffer that was transferred away no view can be made.
  if ((source as ArrayBuffer).byteLength === 0) return new Uint8Array();
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const kind = classOf(source);
  if (kind.endsWith('ArrayBuffer')) return new Uint8Array(source as ArrayBuffer);
  if (kind === 'Response') return fetchBytes(source as Response, 'the response');
  if (typeof source !== 'string' && kind !== 'URL') {
    throw new QkvError(
      'INVALID_ARGUMENT',
      `wasm is ${describe(source)}, expected a URL, bytes, a Response or a WebAssembly.Module.`,
    );
  }
  const url = String(source);
  if (url.startsWith('file:')) return readFile(asUrl(url));
  // In Node a string without a scheme is a path; in a page it is relative to the page.
  const isPath = typeof source === 'string' && !/^[a-z][a-z\d+.-]+:/i.test(url) && nodeModule('node:fs') !== undefined;
  return isPath ? readFile(url) : fetchBytes(fetch(source as string | URL), url);
}

/** The sections that say what the module is; undefined of anything else than a module. */
function sectionsOf(source: WasmSource): ArrayBuffer[] | undefined {
  try {
    return WebAssembly.Module.customSections(source as WebAssembly.Module, SECTION);
  } catch {
    return undefined;
  }
}

function asUrl(text: string): URL {
  try {
    return new URL(text);
  } catch (error) {
    throw new QkvError('INVALID_ARGUMENT', `wasm is ${describe(text)}, expected a valid URL.`, { cause: error });
  }
}

/** @throws QkvError LOAD_FAILED, INVALID_ARGUMENT */
export async function openWasm(source: WasmSource): Promise<Wasm> {
  const sections = sectionsOf(source);
  if (sections) {
    const stamp = sections[0] && new TextDecoder().decode(sections[0]);
    return { stamp, compile: async () => source as WebAssembly.Module };
  }
  const bytes = await bytesOf(source);
  if (!isWasm(bytes)) return loadFailed(`wasm: ${bytes.length} bytes came that are not WebAssembly.`);
  // The section is the last one, so it can be read before the host is asked to compile the rest.
  const end = new TextDecoder().decode(bytes.slice(-64));
  const stamp = end.slice(end.lastIndexOf(SECTION) + SECTION.length);
  return { stamp: end.includes(SECTION) ? stamp : undefined, compile: () => compile(bytes) };
}

const SECTION = 'qkv';

async function compile(bytes: Uint8Array): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
  } catch (error) {
    const isPolicy = /unsafe-eval|security policy/i.test(reason(error));
    return loadFailed(
      `wasm: the module could not be compiled: ${reason(error)}${isPolicy ? " (the page's content security policy needs 'wasm-unsafe-eval' in script-src)" : ''}.`,
      error,
    );
  }
}

/** The variant of a module, which has to be of this package's version. */
export function variantOf({ stamp }: Wasm, version: string): Variant {
  if (stamp === undefined) return loadFailed('wasm: this module is not one of qkv.');
  const [built = '', variant] = stamp.split(' ');
  if (built !== version) {
    return loadFailed(`wasm: this module is of qkv ${built}, but the package is ${version}; serve both from one release.`);
  }
  return VARIANTS.find((known) => known === variant) ?? loadFailed(`wasm: unknown variant ${variant}.`);
}
