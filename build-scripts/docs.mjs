// `npm run docs`: the API page, in build/docs, made from the comments of all that the package's entries export.
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ensureNodeModules } from './setup.mjs';
import { Failure, main, project, step } from './steps.mjs';

export const docsFolder = join(project, 'build/docs');

const options = {
  entryPoints: ['index', 'worker', 'tasks'].map((entry) => join(project, `web/src/${entry}.ts`)),
  tsconfig: join(project, 'web/src/tsconfig.json'),
  name: 'qkv',
  readme: join(project, 'README.md'),
  sort: ['kind', 'source-order'],
  kindSortOrder: ['Function', 'Class', 'Interface', 'TypeAlias', 'Variable', 'Constructor', 'Property', 'Accessor', 'Method'],
  highlightLanguages: ['js', 'sh'],
  excludeInternal: true,
  excludeExternals: true,
  excludePrivate: true,
  disableSources: true,
  hideGenerator: true,
  githubPages: false,
  // tsc checks the types.
  skipErrorChecking: true,
  validation: { notDocumented: true, notExported: true, invalidLink: true, invalidPath: true, rewrittenLink: true },
  requiredToBeDocumented: [
    'Accessor', 'CallSignature', 'Class', 'Function', 'Interface', 'Method', 'Parameter', 'Property', 'TypeAlias', 'Variable',
  ],
  // They only say which of a result's properties are there, and which methods there are.
  intentionallyNotExported: ['web/src/attention.ts:Wanted', 'web/src/worker-types.ts:Method', 'web/src/worker-types.ts:Operand'],
};

/** Makes the page and resolves to what is wrong with the comments: a sentence each, none where all is well. */
export async function makeDocs() {
  const { Application, Logger, LogLevel, TSConfigReader } = await import('typedoc');
  const problems = [];
  // No options but these: not those of a file that lies about.
  const application = await Application.bootstrap(options, [new TSConfigReader()]);
  application.logger = new class extends Logger {
    log(message, level) {
      super.log(message, level);
      if (level >= LogLevel.Warn) problems.push(message);
    }
  }();
  const reflections = await application.convert();
  if (reflections) {
    application.validate(reflections);
    await application.generateDocs(reflections, docsFolder);
  }
  return problems;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(async () => {
    await ensureNodeModules();
    const problems = await step('Making the API page', makeDocs);
    if (problems.length > 0) throw new Failure('The comments in web/src are not complete: see above.', problems.join('\n'));
    console.log(pathToFileURL(join(docsFolder, 'index.html')).href);
  });
}
