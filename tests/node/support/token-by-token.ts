import type { CacheAttentionOptions, Engine } from 'qkv';

import { argumentsOf, type AttentionCase, swapAxes } from './attention-case.js';
import { partOf } from './gather.js';

/** What a cache gives where tokens come one by one, each query alone: (heads, length, valueDim). */
export function tokenByToken(engine: Engine, one: AttentionCase, options: CacheAttentionOptions = {}): Float32Array {
  const { heads, kvHeads, queryLen, dim, valueDim } = one.sizes;
  const cache = engine.kvCache({ numKvHeads: kvHeads, headDim: dim, valueDim, capacity: queryLen });
  const rows = Array.from({ length: queryLen }, (_, t) => {
    const [query] = argumentsOf({ ...partOf(one, 'query', [t]), form: 'rank 3' });
    const [, key, value] = argumentsOf({ ...partOf(one, 'key', [t]), form: 'rank 3' });
    cache.append(key, value);
    return [...cache.attend(query, options).output.data];
  });
  cache.dispose();
  return swapAxes(Float32Array.from(rows.flat()), 1, queryLen, heads, valueDim);
}
