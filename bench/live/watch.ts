import { Watchers } from "./watchers.ts";

// Watchers in a process of their own, so that they cost those that write as little as possible.

const { BENCH_ADDRESS = "", BENCH_PATHS = "", BENCH_TOKEN = "" } = process.env;
const watchers = new Watchers();
for (const path of BENCH_PATHS.split(" ")) await watchers.add(BENCH_ADDRESS, path, 1, BENCH_TOKEN);
console.log(`watching ${BENCH_ADDRESS}`);
