import { waitingTests } from "./waiting_tests.ts";

/**
 * Processes that run test files concurrently: twice as many as CI has processors, because half of their time is spent
 * waiting. With three, a fifth of the processor time is left unused; with four, a tenth.
 */
const busyWorkers = 4;
/** Of files that mostly wait: together they need less than one processor. */
const waitingWorkers = 2;

/** One run of `bun test`. */
export interface Lane {
  /** Processes that run files concurrently. */
  workers: number;
  /** The files, and patterns of files that it leaves out. */
  args: string[];
}

/**
 * The concurrent runs that together run each file once. Files that mostly wait have a run of their own if all files run;
 * chosen ones are one run, in whose output they are next to each other.
 */
export function lanesOf(chosen: string[], options: { leftOut: string; waiting?: string[] }): Lane[] {
  if (chosen.length > 0) return [{ workers: busyWorkers, args: chosen }];
  const waiting = options.waiting ?? waitingTests;
  const ignored = [`${options.leftOut}**`, ...waiting].map((path) => `--path-ignore-patterns=${path}`);
  return [
    { workers: busyWorkers, args: ignored },
    { workers: waitingWorkers, args: waiting.map((path) => `./${path}`) },
  ];
}
