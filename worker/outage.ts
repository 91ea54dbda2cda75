import { reasonOf } from "../drizzle/database_error.ts";
import type { Log } from "../platform/log.ts";
import { pause } from "./time.ts";

const firstPauseMilliseconds = 100;
const longestPauseMilliseconds = 5000;

/**
 * A time without the database, logged once when it begins and once when it ends, however many wait for it. Each further
 * reason is logged once too: the first error is often only that of a connection that was cut, and the next one says why
 * none is opened.
 */
export class Outage {
  /** What this outage was said to be for; undefined while there is none. */
  #reasons: Set<string | undefined> | undefined;
  /** When it last began or ended; what was asked before that says nothing about now. */
  #changed = 0;

  constructor(private readonly log: Log) {}

  /** Does something with the database, again and again until it is done; undefined when `stop` aborts before. */
  async outlast<T>(work: () => Promise<T>, stop: AbortSignal): Promise<T | undefined> {
    let longest = firstPauseMilliseconds;
    let failed = false;
    while (!stop.aborted) {
      const asked = performance.now();
      try {
        const value = await work();
        this.#heard(asked);
        return value;
      } catch (error) {
        // Once may be a connection that was cut before; twice is an outage.
        if (failed) this.#heard(asked, error);
        failed = true;
        // Not all workers at once.
        await pause(longest * (0.5 + Math.random() / 2), stop);
        longest = Math.min(longest * 2, longestPauseMilliseconds);
      }
    }
    return undefined;
  }

  #heard(asked: number, err?: unknown): void {
    if (asked < this.#changed) return;
    if (err === undefined) {
      if (this.#reasons === undefined) return;
      this.#reasons = undefined;
      this.#changed = performance.now();
      this.log.info("the database answers again");
      return;
    }
    const why = reasonOf(err);
    if (this.#reasons === undefined) {
      this.#reasons = new Set([why.reason]);
      this.#changed = performance.now();
      this.log.warn({ err, ...why }, "the database is unavailable: retrying until it answers");
    } else if (!this.#reasons.has(why.reason)) {
      this.#reasons.add(why.reason);
      this.log.warn({ err, ...why }, "the database is still unavailable, for another reason");
    }
  }
}
