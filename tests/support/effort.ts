// How much of what is random, or takes long, is tried. An ordinary run is a sample, so that it ends while one waits for
// it; SVC_TEST_EFFORT=5 tries five times as much.

const factor = Number(process.env.SVC_TEST_EFFORT ?? 1);
if (!(factor > 0)) throw new Error("SVC_TEST_EFFORT: a number above 0");

/** So many in an ordinary run. */
export const effort = (usual: number) => Math.ceil(usual * factor);
