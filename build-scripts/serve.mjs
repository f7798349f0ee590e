// A static server for one folder, on this machine only.
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Failure } from './steps.mjs';

const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};

// With these a page may use shared memory, and so threads.
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Serves `folder` under the path `base`, cutting the line where `refuse(path)` holds; port 0 takes a free one. Resolves to { url, close }. */
export async function serve(folder, { port = 0, isolated = true, base = '/', refuse = () => false } = {}) {
  const root = await realpath(resolve(folder));
  const headers = { 'Cache-Control': 'no-store', ...(isolated && isolation) };
  const server = createServer((request, response) => {
    answer(request, response, { root, base, headers, refuse }).catch(() => response.destroy());
  });
  await new Promise((listening, failed) => {
    server.once('error', (error) => failed(error.code === 'EADDRINUSE' || error.code === 'EACCES'
      ? new Failure(`Port ${port} cannot be used (${error.code}): choose another one.`) : error));
    server.listen(port, '127.0.0.1', listening);
  });
  const close = () => new Promise((closed) => {
    server.close(closed);
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}${base}`, close };
}

async function answer(request, response, { root, base, headers, refuse }) {
  const say = (status, more) => response.writeHead(status, { ...headers, 'Content-Type': types['.txt'], ...more }).end(`${status}\n`);
  if (request.method !== 'GET' && request.method !== 'HEAD') return say(405, { Allow: 'GET, HEAD' });
  const { pathname } = new URL(request.url, 'http://localhost');
  if (refuse(pathname)) return response.destroy();
  if (`${pathname}/` === base) return say(301, { Location: base });
  const file = pathname.startsWith(base) && await fileFor(root, pathname.slice(base.length));
  if (!file) return say(404);
  if (file.isFolder) return say(301, { Location: `${pathname}/` });
  const type = types[extname(file.path)] ?? 'application/octet-stream';
  response.writeHead(200, { ...headers, 'Content-Type': type, 'Content-Length': file.size });
  if (request.method === 'HEAD') return response.end();
  await pipeline(createReadStream(file.path), response);
}

// Undefined unless the path names something inside the folder, links followed.
async function fileFor(root, encoded) {
  try {
    const name = decodeURIComponent(encoded);
    const path = await realpath(join(root, name === '' || name.endsWith('/') ? `${name}index.html` : name));
    if (!path.startsWith(root + sep)) return undefined;
    const status = await stat(path);
    return { path, size: status.size, isFolder: status.isDirectory() };
  } catch {
    return undefined;
  }
}
