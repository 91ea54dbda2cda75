import { reasonOf } from "../drizzle/database_error.ts";
import type { Log } from "../platform/log.ts";
import { pause } from "./time.ts";

const firstPauseMilliseconds = 100;
const longestPauseMilliseconds = 5000;

/** A time without the database, told once when it begins and once when it ends, however many wait for it. */
export class Outage {
  #lasting = false;
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
    const lasting = err !== undefined;
    if (lasting === this.#lasting || asked < this.#changed) return;
    this.#lasting = lasting;
    this.#changed = performance.now();
    if (lasting)
      this.log.warn(
        { err, ...reasonOf(err) },
        "the database does not answer as it should: trying again until it does",
      );
    else this.log.info("the database answers again");
  }
}
