// Training to a goal, the same for every model and task.

/** Examples of a step. */
export const BATCH = 32;
export const EMBED_DIM = 32;
export const OPTIMIZER = { lr: 3e-3 };
/** Learned: so much of the last steps' examples were right. */
const GOAL = 0.95;
const WINDOW = 20;

/** What `use` makes of a model for a task; `options` are those that differ. */
export function withModel(engine, task, seed, options, use) {
  const model = engine.sequenceModel({ ...task.model, embedDim: EMBED_DIM, optimizer: OPTIMIZER, seed, ...options });
  try {
    return use(model);
  } finally {
    model.dispose();
  }
}

/**
 * Makes at most `cap` steps, and no more than `more` after it has learned. Resolves to { steps, made }: the step at which it
 * had learned, or null, and how many were made.
 */
export function train(model, task, { cap, more = 0 }) {
  const last = [];
  let steps = null;
  let made = 0;
  while (made < cap && (steps === null || made < steps + more)) {
    const { tokens, targets, options } = task.batch(BATCH);
    last.push(model.trainStep(tokens, targets, options).accuracy);
    made++;
    if (last.length > WINDOW) last.shift();
    if (steps === null && last.length === WINDOW && mean(last) >= GOAL) steps = made;
  }
  return { steps, made };
}

export const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** The share of held-out examples that are answered right; of tasks of which there are many. */
export const heldOutAccuracy = (model, task, count = 512) => accuracyOf(model, task.heldOut(count));

/** The share of these examples that are answered right. */
export const accuracyOf = (model, { tokens, targets, options }) => model.evaluate(tokens, targets, options).accuracy;
