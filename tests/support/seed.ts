import fc from "fast-check";

// Random tests use a fixed seed, so that failures are caused by changes and can be reproduced. Set SVC_TEST_SEED to
// another number, or to "random" to find new failures.

const wanted = process.env.SVC_TEST_SEED ?? "1";

/** The seed of every random test. */
export const seed = wanted === "random" ? Math.floor(Math.random() * 1_000_000) : Number(wanted);
if (!Number.isInteger(seed)) throw new Error('SVC_TEST_SEED: a whole number, or "random"');

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
