// One operator of a case. It remembers what was read of it, so that an attribute or input the adapter does not
// know fails the case instead of being ignored.
import { type Floats, floatsOf, integersOf, type Value } from './values.js';

export interface Attribute {
  readonly type: string;
  readonly value: number | string | readonly string[];
}

/**
 * One way of getting the operator's outputs from the library, in the operator's order. The first route has
 * them all; a further one has null for those it does not make.
 */
export interface Route {
  readonly name: string;
  readonly outputs: readonly (Floats | null)[];
  /** Why an output of the first route is null, where the library does not return it. */
  readonly notReturned?: string;
}

interface Parts {
  op: string;
  domain: string;
  opset: number;
  attributes: Readonly<Record<string, Attribute>>;
  inputs: readonly (Value | null)[];
  /** Which outputs are asked for. */
  wanted: readonly boolean[];
}

export class OperatorNode {
  readonly op: string;
  readonly domain: string;
  readonly opset: number;
  readonly #attributes: Parts['attributes'];
  readonly #inputs: Parts['inputs'];
  readonly #wanted: Parts['wanted'];
  readonly #read = new Set<string | number>();

  constructor({ op, domain, opset, attributes, inputs, wanted }: Parts) {
    [this.op, this.domain, this.opset] = [op, domain, opset];
    [this.#attributes, this.#inputs, this.#wanted] = [attributes, inputs, wanted];
  }

  wants(output: number): boolean {
    return this.#wanted[output] ?? false;
  }

  has(input: number): boolean {
    return (this.#inputs[input] ?? null) !== null;
  }

  /** An input that may be left out. */
  optional(input: number): Value | undefined {
    this.#read.add(input);
    return this.#inputs[input] ?? undefined;
  }

  input(input: number, name: string): Value {
    const value = this.optional(input);
    if (!value) throw new Error(`${this.op} has no input ${input}, ${name}, which the adapter needs`);
    return value;
  }

  floats(input: number, name: string): Floats {
    return floatsOf(this.input(input, name));
  }

  optionalFloats(input: number): Floats | undefined {
    const value = this.optional(input);
    return value && floatsOf(value);
  }

  optionalIntegers(input: number): number[] | undefined {
    const value = this.optional(input);
    return value && integersOf(value);
  }

  number(name: string): number | undefined {
    const value = this.#attribute(name, 'int', 'float');
    return value === undefined ? undefined : Number(value);
  }

  integer(name: string): number | undefined {
    const value = this.#attribute(name, 'int');
    return value === undefined ? undefined : Number(value);
  }

  /** 0 or 1, by default 0. */
  flag(name: string): boolean {
    const value = this.integer(name) ?? 0;
    if (value !== 0 && value !== 1) throw new Error(`${this.op}: ${name} is ${value}, expected 0 or 1`);
    return value === 1;
  }

  text(name: string): string | undefined {
    const value = this.#attribute(name, 'string');
    return value === undefined ? undefined : String(value);
  }

  texts(name: string): readonly string[] | undefined {
    return this.#attribute(name, 'strings') as readonly string[] | undefined;
  }

  /** Throws where the node says something that nobody has read. */
  expectAllRead(): void {
    for (const name of Object.keys(this.#attributes)) {
      if (!this.#read.has(name)) throw new Error(`${this.op} has the attribute ${name}, which the adapter does not know`);
    }
    this.#inputs.forEach((value, i) => {
      if (value && !this.#read.has(i)) throw new Error(`${this.op} has the input ${i}, ${value.name}, which the adapter does not know`);
    });
  }

  #attribute(name: string, ...types: string[]): Attribute['value'] | undefined {
    this.#read.add(name);
    const attribute = this.#attributes[name];
    if (attribute && !types.includes(attribute.type)) {
      throw new Error(`${this.op}: ${name} is of type ${attribute.type}, expected ${types.join(' or ')}`);
    }
    return attribute?.value;
  }
}
