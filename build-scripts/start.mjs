// `npm start`: sets up and builds what is missing, serves the page and prints its address.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildSite } from './build.mjs';
import { serve } from './serve.mjs';
import { ensureBrowsers, ensureNodeModules, ensureToolchain, findBrowsers } from './setup.mjs';
import { Failure, main, project } from './steps.mjs';
import { commandPath } from './system.mjs';

main(async () => {
  const options = readOptions();
  await ensureToolchain();
  await ensureNodeModules();
  await buildSite();
  const { url } = await serve(join(project, 'build/site'), { port: options.port, isolated: !options['no-isolation'] });
  console.log(`The page is at ${url} (Ctrl-C ends the server).`);
  process.removeAllListeners('SIGINT').on('SIGINT', () => process.exit());
  if (options.open) await openBrowser(url);
});

function readOptions() {
  const usage = 'npm start takes "-- --port N", "-- --open" (in a browser) and "-- --no-isolation" (as on a host without isolation headers).';
  try {
    const { values } = parseArgs({
      options: { port: { type: 'string', default: '0' }, open: { type: 'boolean' }, 'no-isolation': { type: 'boolean' } },
    });
    if (/^\d{1,5}$/.test(values.port) && values.port < 65536) return { ...values, port: Number(values.port) };
  } catch {
    // An option that it does not have.
  }
  throw new Failure(usage);
}

async function openBrowser(url) {
  if (process.platform === 'linux' && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) {
    console.log('There is no display here for a browser: open the address from a machine that has one.');
    return;
  }
  const { firefox, chromium } = findBrowsers();
  const opener = process.platform === 'darwin' ? 'open' : commandPath('xdg-open');
  const command = opener ?? firefox ?? chromium ?? (await ensureBrowsers()).firefox;
  spawn(command, [url], { stdio: 'ignore', detached: true })
    .on('error', () => console.log('The browser could not be started: open the address yourself.'))
    .unref();
}
