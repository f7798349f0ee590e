/** The Emscripten glue of the builds without threads; build-scripts/package.mjs puts it in place. */
import type { ModuleFactory } from '../module.js';
declare const createModule: ModuleFactory;
export default createModule;
