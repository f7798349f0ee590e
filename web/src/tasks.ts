/**
 * Things to learn, with as many examples as are asked for: the tasks that show what attention and recurrent networks
 * can do and what not.
 *
 * @module qkv/tasks
 */
export { associativeRecall, type AssociativeRecallOptions } from './tasks/associative-recall.js';
export { directedRelation, type DirectedRelationOptions } from './tasks/directed-relation.js';
export { parity, type ParityOptions } from './tasks/parity.js';
export { pronoun, type PronounExamples, type PronounOptions } from './tasks/pronoun.js';
export { recall, type RecallOptions } from './tasks/recall.js';
export { reorder, type ReorderExamples, type ReorderOptions } from './tasks/reorder.js';
export type { Readout } from './sequence-options.js';
export type { ExampleOptions, Examples, Integers, Task, TaskModel } from './tasks/task.js';
export { twoQuestions, type TwoQuestionsOptions } from './tasks/two-questions.js';
