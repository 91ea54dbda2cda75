import { waitingTests } from "./waiting_tests.ts";

/**
 * Processes that run test files concurrently: more than CI has processors, because a third of their time is spent waiting.
 * On a fast machine, a fourth saves a tenth of the time; on a slow one, programs under test then miss their own time limits.
 */
const busyWorkers = { fast: 4, slow: 3 };
/** A machine that builds `svc` in less time is fast. CI's took 3 s on one day, and 8 s on another. */
const fastBuildMilliseconds = 5000;
/** Of files that mostly wait: together they need less than one processor. */
const waitingWorkers = 2;
/** Of the tests of the containers: each runs several servers under load. */
const containerWorkers = 2;

/** One run of `bun test`. */
export interface TestRun {
  /** Processes that run files concurrently. */
  workers: number;
  /** The files, and patterns of files that it leaves out. */
  args: string[];
}

/**
 * The concurrent runs that together run each file once. Files that mostly wait have a run of their own if all files run;
 * chosen ones are one run, in whose output they are next to each other.
 *
 * @param containers the folder of the tests that run only if they are chosen
 * @param buildMilliseconds how long the machine took to build `svc`
 */
export function testRunsOf(chosen: string[], containers: string, buildMilliseconds: number): TestRun[] {
  const busy = buildMilliseconds < fastBuildMilliseconds ? busyWorkers.fast : busyWorkers.slow;
  if (chosen.length > 0) {
    const workers = chosen.every((path) => path.startsWith(containers)) ? containerWorkers : busy;
    return [{ workers, args: chosen }];
  }
  const ignored = [`${containers}/**`, ...waitingTests].map((path) => `--path-ignore-patterns=${path}`);
  return [
    { workers: busy, args: ignored },
    { workers: waitingWorkers, args: waitingTests.map((path) => `./${path}`) },
  ];
}
