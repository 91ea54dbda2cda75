// The number of random or slow cases. An ordinary run is a sample, so that it ends quickly; SVC_TEST_EFFORT=5 runs five
// times as many.

const factor = Number(process.env.SVC_TEST_EFFORT ?? 1);
if (!(factor > 0)) throw new Error("SVC_TEST_EFFORT: a number above 0");

/** Scales the number of an ordinary run. */
export const effort = (usual: number) => Math.ceil(usual * factor);
