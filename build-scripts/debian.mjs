// Debian packages on this machine: which are missing, installing them, and the mirror they come from.
import { existsSync, readFileSync } from 'node:fs';
import { Failure, installerCauses, run, runAny, step } from './steps.mjs';
import { debian, isRoot, requireSpace } from './system.mjs';

const env = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' };

/** Those of `names` that are not installed; read from dpkg's own list, since asking dpkg takes longer. */
export function missingPackages(names) {
  const database = '/var/lib/dpkg/status';
  const entries = existsSync(database) ? readFileSync(database, 'utf8').split('\n\n') : [];
  const installed = new Set(entries.filter((entry) => /^Status: .* installed$/m.test(entry))
    .map((entry) => entry.match(/^Package: (.*)$/m)?.[1]));
  return names.filter((name) => !installed.has(name));
}

/** Installs those of `names` that are missing, which take about `gigabytes` with all that they depend on. */
export async function installPackages(names, gigabytes) {
  const missing = missingPackages(names);
  if (missing.length === 0) return;
  const list = missing.join(' ');
  if (!isRoot) throw new Failure(`Debian packages are missing: as root run "apt-get install ${list}", then the same command again.`);
  requireSpace('/', gigabytes, `Installing ${list}`);
  await step(`Installing Debian packages ${list}`, async (progress) => {
    // A run that was stopped may have left packages unpacked and not configured.
    await runAny('dpkg', ['--configure', '-a'], { env, gently: true });
    try {
      await aptInstall(missing, progress);
    } catch (error) {
      // The package lists are missing or older than the mirror.
      if (!/Unable to locate|no installation candidate|404 +Not Found/.test(error.output)) throw error;
      const updateFailure = await updateLists(progress);
      await aptInstall(missing, progress).catch((failure) => { throw updateFailure ?? failure; });
    }
  });
}

/** The address of the Debian mirror that this machine's apt uses. */
export async function mirror() {
  const address = await knownMirror();
  if (address) return address;
  const updateFailure = await step('Reading the package lists', updateLists);
  const none = new Failure('apt knows no Debian mirror: add one to /etc/apt/sources.list and run the same command again.');
  return await knownMirror() ?? Promise.reject(updateFailure ?? none);
}

async function knownMirror() {
  const format = '$(REPO_URI)|$(ORIGIN)|$(CODENAME)|$(COMPONENT)';
  const targets = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], { env });
  const end = `|Debian|${debian().codename}|main`;
  const address = targets.split('\n').find((line) => line.endsWith(end))?.slice(0, -end.length);
  // Cloud images name a file that lists mirrors.
  const list = address?.match(/^mirror\+file:(.*?)\/?$/)?.[1];
  return list ? readFileSync(list, 'utf8').match(/^[a-z]+:\S+/m)?.[0] : address;
}

// Resolves to what went wrong, since one broken source of several need not matter.
const updateLists = (progress) =>
  apt(['update', '--error-on=any'], progress).then(() => undefined, (failure) => failure);

const aptInstall = (names, progress) =>
  apt(['install', '--yes', '--no-install-recommends', '--fix-broken', ...names], progress);

// `gently`: apt-get itself ends dpkg at a point from which it can go on; a signal to dpkg would not.
function apt(args, progress) {
  const options = ['-o', 'APT::Status-Fd=3', '-o', 'DPkg::Lock::Timeout=300', '-o', 'DPkg::Use-Pty=0'];
  const onLine = (line) => {
    const [, kind, percent] = line.match(/^(dl|pm)status:[^:]*:([\d.]+)/) ?? [];
    if (kind) progress(`${kind === 'dl' ? 'downloading' : 'installing'} ${Math.round(percent)} %`);
  };
  return run('apt-get', [...options, ...args], { env, gently: true, onLine, third: 'pipe', causes: installerCauses });
}
