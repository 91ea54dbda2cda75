import { reasonOf } from "../drizzle/database_error.ts";
import type { Log } from "../platform/log.ts";
import { pause } from "./time.ts";

const firstPauseMilliseconds = 100;
const longestPauseMilliseconds = 5000;

/**
 * A period without the database, logged once when it begins and once when it ends, however many callers wait for it.
 * Each new reason is also logged once: the first error often only says that a connection was closed, and the next one
 * says why none can be opened.
 */
export class Outage {
  /** The reasons logged for this outage; undefined while there is no outage. */
  #reasons: Set<string | undefined> | undefined;
  /** When the last outage began or ended. Results of earlier queries say nothing about the current state. */
  #changed = 0;

  constructor(private readonly log: Log) {}

  /** Retries `work` until it succeeds. Returns undefined when `stop` aborts first. */
  async retryUntilAvailable<T>(work: () => Promise<T>, stop: AbortSignal): Promise<T | undefined> {
    let longest = firstPauseMilliseconds;
    let failed = false;
    while (!stop.aborted) {
      const asked = performance.now();
      try {
        const value = await work();
        this.#heard(asked);
        return value;
      } catch (error) {
        // A single failure may be a connection that was closed earlier; a second one is an outage.
        if (failed) this.#heard(asked, error);
        failed = true;
        // Jitter, so that workers do not retry all at once.
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
