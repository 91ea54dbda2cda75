import type { Clock } from "./clock.ts";

/**
 * A token bucket for each key, in the memory of this process: `perMinute` attempts a minute, `burst` of them at once.
 *
 * Keys are names that we know to be real (an address, a stored challenge), never something that a client makes up.
 * At most `capacity` keys are kept; the one that was idle longest is forgotten first, and is by then full again or
 * belongs to an attacker with that many addresses, for whom the loss of one bucket is no gain.
 */
export class RateLimit {
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly perMinute: number,
    private readonly burst: number,
    private readonly capacity = 100_000,
  ) {}

  /** Takes one attempt. @returns 0 when it was free, else the whole seconds until the next one is */
  take(key: string): number {
    const now = this.clock.now().getTime();
    const perMillisecond = this.perMinute / 60_000;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.capacity)
        this.#buckets.delete(this.#buckets.keys().next().value as string);
      bucket = { tokens: this.burst, at: now };
    } else {
      this.#buckets.delete(key); // set again below, as the youngest
      bucket.tokens = Math.min(this.burst, bucket.tokens + Math.max(0, now - bucket.at) * perMillisecond);
      bucket.at = now;
    }
    this.#buckets.set(key, bucket);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return 0;
    }
    return Math.max(1, Math.ceil((1 - bucket.tokens) / perMillisecond / 1000));
  }
}
