import type { QkvErrorCode } from './errors.js';

/**
 * What the two sides say to each other. Plain data goes as it is; what structured clone does not know, and what
 * stays on its side, goes as a {@link Special}.
 */

/** An object of the worker by its number. */
export type Target = number;

/** The object whose only member is load(). */
export const ROOT: Target = 0;

/** Calls a method, or reads a property. */
export interface Call {
  readonly id: number;
  readonly target: Target;
  readonly member: string;
  readonly values: readonly unknown[];
}

/** The result of a call, or what it threw: of a QkvError, which structured clone does not know, its parts. */
export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly code?: QkvErrorCode; readonly message: string; readonly cause?: unknown };
}

/** What was made in the worker and stays there. */
export interface Made {
  readonly target: Target;
  readonly methods: readonly string[];
  readonly properties: readonly string[];
}

/** A map, since no argument or result of ours is one. Its one entry is what it stands for, and what is known of it. */
export type Special = ReadonlyMap<string, unknown>;

export const special = (kind: string, content?: unknown): Special => new Map([[kind, content]]);

/**
 * A copy of arrays and objects to any depth, with what `replace` gives in place of what it knows. What is met twice
 * is one in the copy too.
 */
export function rebuild(value: unknown, replace: (value: object) => unknown, known = new Map<unknown, unknown>()): unknown {
  if (value === null || !['object', 'function', 'symbol'].includes(typeof value)) return value;
  if (known.has(value)) return known.get(value);
  const replaced = replace(value as object);
  if (replaced !== undefined) {
    known.set(value, replaced);
    return replaced;
  }
  const copy: unknown[] | Record<string, unknown> = Array.isArray(value) ? [] : {};
  known.set(value, copy);
  if (Array.isArray(copy)) for (const entry of value as unknown[]) copy.push(rebuild(entry, replace, known));
  else for (const [name, entry] of Object.entries(value as object)) copy[name] = rebuild(entry, replace, known);
  return copy;
}
