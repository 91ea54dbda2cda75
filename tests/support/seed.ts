import fc from "fast-check";

// What is random in the tests is the same each time, so that a run that fails does so for a change's sake, and fails
// again. SVC_TEST_SEED is another number, or "random" to look for what no run has met yet.

const wanted = process.env.SVC_TEST_SEED ?? "1";

/** Of every property, and of whatever else is random in a test. */
export const seed = wanted === "random" ? Math.floor(Math.random() * 1_000_000) : Number(wanted);
if (!Number.isInteger(seed)) throw new Error('SVC_TEST_SEED: a whole number, or "random"');

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
