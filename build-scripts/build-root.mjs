// The C++ build root: a small Debian 13 in a folder of its own, for machines whose own packages are older.
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { installPackages, mirror } from './debian.mjs';
import { withLock } from './lock.mjs';
import { Failure, installerCauses, run, runAny, step } from './steps.mjs';
import { isRoot, requireSpace } from './system.mjs';

// Half of emscripten's size is libraries for dynamic linking, which nothing here does.
const leftOut = [
  '/usr/share/emscripten/cache/sysroot/lib/wasm32-emscripten/*pic/*',
  '/usr/share/doc/*', '/usr/share/locale/*', '/usr/share/man/*',
];

/** Makes the build root `root` with `packages` in it; the folder has that name only once it is complete. */
export async function makeBuildRoot(root, packages) {
  await withLock(`${root}.lock`, async (lock) => {
    if (existsSync(root)) return;
    const tools = ['mmdebstrap', 'bubblewrap', 'debian-archive-keyring', ...(isRoot ? [] : ['uidmap'])];
    await installPackages(tools, 0.2);
    await requireNamespaces();
    requireSpace(dirname(root), 3, 'The C++ build root');
    const source = await mirror();
    await step('Making the C++ build root', (progress) => bootstrap(root, packages, source, lock, progress));
  });
}

async function bootstrap(root, packages, source, lock, progress) {
  const partial = `${root}.partial`;
  const downloads = `${root}.downloads`;
  const archives = join(partial, 'var/cache/apt/archives');
  // What an earlier, interrupted run downloaded is moved out of its root and copied into the new one.
  mkdirSync(downloads, { recursive: true });
  await asOwner('find', archives, '-name', '*.deb', '-exec', 'mv', '-t', downloads, '{}', '+').catch(() => {});
  await asOwner('rm', '-rf', '--one-file-system', partial);
  const copyDownloads = 'mkdir -p "$1/var/cache/apt/archives" && find "$DOWNLOADS" -name "*.deb" -exec cp -t "$1/var/cache/apt/archives" {} +';

  const timer = setInterval(() => progress(progressOf(partial, archives)), 1000);
  try {
    // mmdebstrap holds the lock as well, since it may outlive this process.
    await run('mmdebstrap', [
      '--variant=apt', '--format=directory', `--include=${packages.join(',')}`, `--setup-hook=${copyDownloads}`,
      ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`), 'trixie', partial, source,
    ], { env: { DOWNLOADS: downloads }, third: lock, causes: installerCauses });
  } finally {
    clearInterval(timer);
  }
  renameSync(partial, root);
  await asOwner('rm', '-rf', downloads);
}

// Without root, mmdebstrap's files belong to the user's subordinate ids.
function asOwner(...command) {
  const [program, ...args] = isRoot ? command : ['unshare', '--map-root-user', '--map-auto', ...command];
  return run(program, args);
}

function progressOf(partial, archives) {
  const megabytes = filesIn(archives, '.deb').reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0) / 1e6;
  const unpacked = filesIn(join(partial, 'var/lib/dpkg/info'), '.list').length;
  return `${megabytes.toFixed(0)} MB downloaded, ${unpacked} packages unpacked`;
}

function filesIn(folder, ending) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

async function requireNamespaces() {
  const { code } = await runAny('bwrap', ['--ro-bind', '/', '/', 'true']);
  if (code === 0) return;
  throw new Failure('This container may not make namespaces, which the C++ build root needs: start it with --privileged, use Debian 13, or put emcc 3.1.69 or newer on PATH.');
}
