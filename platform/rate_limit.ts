import type { Clock } from "./clock.ts";

export interface Bucket {
  tokens: number;
  /** The time at which `tokens` was computed, in milliseconds of the clock. */
  at: number;
}

/**
 * A token bucket per key, in this process's memory: `perMinute` attempts per minute, with bursts of up to `burst`.
 *
 * Keys are known to be real (an address, a stored challenge), never invented by a client. At most `capacity` keys are
 * kept, and at least the most recently used half. A forgotten bucket is full again by then, or belongs to an attacker
 * with that many addresses, who gains nothing from it.
 */
export class RateLimit {
  /** Keys used since the last change of generations, and in the one before; cheaper than keeping all keys in order. */
  #young = new Map<string, Bucket>();
  #old = new Map<string, Bucket>();

  constructor(
    private readonly clock: Clock,
    private readonly perMinute: number,
    private readonly burst: number,
    private readonly capacity = 200_000,
  ) {}

  /** Takes one attempt. @returns 0 if it was free, else the whole seconds until the next free one */
  take(key: string, time = this.clock.now()): number {
    return this.takeFrom(this.bucket(key, time), time);
  }

  /** The bucket of a key, for a caller that stores it alongside the key's object and so avoids looking it up. */
  bucket(key: string, time = this.clock.now()): Bucket {
    return this.#young.get(key) ?? this.#renew(key, time.getTime());
  }

  takeFrom(bucket: Bucket, time: Date): number {
    const seconds = this.wait(bucket, time);
    if (seconds === 0) bucket.tokens -= 1;
    return seconds;
  }

  /** Like `takeFrom`, but takes nothing. */
  wait(bucket: Bucket, time: Date): number {
    const now = time.getTime();
    const perMillisecond = this.perMinute / 60_000;
    bucket.tokens = Math.min(this.burst, bucket.tokens + Math.max(0, now - bucket.at) * perMillisecond);
    bucket.at = now;
    return bucket.tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / perMillisecond / 1000));
  }

  /** Moves a bucket to the young generation, or creates it there. */
  #renew(key: string, now: number): Bucket {
    const bucket = this.#old.get(key) ?? { tokens: this.burst, at: now };
    if (this.#young.size >= this.capacity / 2) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, bucket);
    return bucket;
  }
}
