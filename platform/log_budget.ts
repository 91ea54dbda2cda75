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
 * Keeps strangers from filling the log: of lines that anybody can cause, so many of each kind are written one by one in
 * a minute. The others are counted, and a line a minute says how many there were.
 *
 * Kinds are few and ours (a route and a status, the name of an error), never what a client sends.
 */
export class LogBudget {
  readonly #limit: RateLimit;
  #leftOut = new Map<string, LeftOut>();
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly log: Pick<Log, "warn">,
    private readonly clock: Clock,
    /** What the lines are, in the plural. */
    private readonly what: string,
    perMinute: number,
  ) {
    this.#limit = new RateLimit(clock, perMinute, perMinute);
  }

  /** Whether a line of this kind may be written. If not it is counted, under `fields`. */
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

  /** Writes what was counted. */
  report(): void {
    for (const { fields, count, since } of this.#leftOut.values()) {
      this.log.warn({ ...fields, count, since }, `${this.what} left out of the log`);
    }
    this.#leftOut = new Map();
    this.#reportedAt = this.clock.now().getTime();
  }
}
