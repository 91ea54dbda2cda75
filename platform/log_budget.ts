import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import { RateLimit } from "./rate_limit.ts";

const reportMilliseconds = 60_000;

interface LeftOut {
  fields: Record<string, unknown>;
  count: number;
  since: Date;
}

/**
 * Prevents clients from flooding the log: of lines that anyone can cause, only a limited number per kind and minute is
 * written. The rest is counted, and reported in one line per minute.
 *
 * Kinds are few and defined by us (a route and a status, the name of an error), never taken from client input.
 */
export class LogBudget {
  readonly #limit: RateLimit;
  #leftOut = new Map<string, LeftOut>();
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly log: Pick<Log, "warn">,
    private readonly clock: Clock,
    /** A plural noun for the lines. */
    private readonly what: string,
    perMinute: number,
  ) {
    this.#limit = new RateLimit(clock, perMinute, perMinute);
  }

  /** Whether a line of this kind may be written. If not, it is counted under `fields`. */
  admits(kind: string, fields: Record<string, unknown>): boolean {
    const now = this.clock.now();
    if (this.#leftOut.size > 0 && Math.abs(now.getTime() - this.#reportedAt) >= reportMilliseconds)
      this.report();
    if (this.#limit.take(kind, now) === 0) return true;
    if (this.#leftOut.size === 0) this.#reportedAt = now.getTime();
    const leftOut = this.#leftOut.get(kind);
    if (leftOut) leftOut.count += 1;
    else this.#leftOut.set(kind, { fields, count: 1, since: now });
    return false;
  }

  /** Writes the counts. */
  report(): void {
    for (const { fields, count, since } of this.#leftOut.values()) {
      this.log.warn({ ...fields, count, since }, `${this.what} left out of the log`);
    }
    this.#leftOut = new Map();
    this.#reportedAt = this.clock.now().getTime();
  }
}
