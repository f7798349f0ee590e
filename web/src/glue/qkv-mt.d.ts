/** The Emscripten glue of the threaded builds; build-scripts/package.mjs puts it in place. */
import type { ModuleFactory } from '../module.js';
declare const createModule: ModuleFactory;
export default createModule;
