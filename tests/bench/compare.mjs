// Whether contestants computed the same thing.
import { reference } from './reference.mjs';

/**
 * Of the largest number. A float sum of n terms may be off by n * 2^-24 of it, 1e-3 for the 16,384 of the longest
 * here, whatever its order; a wrong mask, layout or gate is off by far more.
 */
const TOLERANCE = 1e-3;

/** Compares results as they come, each { output, weights? } as Float32Arrays. */
export class Comparison {
  #shapes;
  #expected;
  #lowest = {};
  #highest = {};

  constructor(workload, inputs) {
    this.#shapes = workload.outputs;
    this.#expected = reference(workload, inputs);
  }

  /** { error }, the largest difference from double precision, and `wrong`: a sentence, where it is too large. */
  add(results) {
    const judged = Object.keys(this.#shapes).map((name) => this.#judge(name, results[name]));
    const wrong = judged.find((one) => one.wrong)?.wrong;
    if (!wrong) for (const name of Object.keys(this.#shapes)) this.#widen(name, results[name]);
    return { error: Math.max(...judged.map(({ error }) => error)), ...(wrong && { wrong }) };
  }

  /** Between any two of the results that are not wrong. */
  get largestDifference() {
    let largest = 0;
    for (const name of Object.keys(this.#lowest)) {
      const [low, high] = [this.#lowest[name], this.#highest[name]];
      for (let i = 0; i < low.length; i++) largest = Math.max(largest, high[i] - low[i]);
    }
    return largest;
  }

  #judge(name, data) {
    const columns = this.#shapes[name].at(-1);
    let [error, largest] = [0, 0];
    for (const [row, numbers] of this.#expected[name]) {
      numbers.forEach((number, c) => {
        const difference = Math.abs(data[row * columns + c] - number);
        // Not a number is the largest error of all.
        error = Number.isNaN(difference) ? Infinity : Math.max(error, difference);
        largest = Math.max(largest, Math.abs(number));
      });
    }
    if (error <= TOLERANCE * largest) return { error };
    return { error, wrong: `${name} is off by ${error.toPrecision(2)}, where the largest number is ${largest.toPrecision(2)}` };
  }

  #widen(name, data) {
    this.#lowest[name] ??= Float32Array.from(data);
    this.#highest[name] ??= Float32Array.from(data);
    const [low, high] = [this.#lowest[name], this.#highest[name]];
    for (let i = 0; i < data.length; i++) {
      if (data[i] < low[i]) low[i] = data[i];
      if (data[i] > high[i]) high[i] = data[i];
    }
  }
}
