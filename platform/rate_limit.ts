import type { Clock } from "./clock.ts";

export interface Bucket {
  tokens: number;
  /** Milliseconds, as the clock has them, at which `tokens` was right. */
  at: number;
}

/**
 * A token bucket for each key, in the memory of this process: `perMinute` attempts a minute, `burst` of them at once.
 *
 * Keys are names that we know to be real (an address, a stored challenge), never something that a client makes up.
 * At most `capacity` keys are kept, and at least the half that was used last. What is forgotten is full again by then
 * or belongs to an attacker with that many addresses, for whom the loss of one bucket is no gain.
 */
export class RateLimit {
  /** Used since the last change of generations, and in the one before: cheaper than to keep all keys in order. */
  #young = new Map<string, Bucket>();
  #old = new Map<string, Bucket>();

  constructor(
    private readonly clock: Clock,
    private readonly perMinute: number,
    private readonly burst: number,
    private readonly capacity = 200_000,
  ) {}

  /** Takes one attempt. @returns 0 when it was free, else the whole seconds until the next one is */
  take(key: string, time = this.clock.now()): number {
    return this.takeFrom(this.bucket(key, time), time);
  }

  /** The bucket of a key, for a caller that keeps it beside what the key names and so need not search for it. */
  bucket(key: string, time = this.clock.now()): Bucket {
    return this.#young.get(key) ?? this.#renew(key, time.getTime());
  }

  takeFrom(bucket: Bucket, time: Date): number {
    const seconds = this.wait(bucket, time);
    if (seconds === 0) bucket.tokens -= 1;
    return seconds;
  }

  /** As `takeFrom`, but takes nothing. */
  wait(bucket: Bucket, time: Date): number {
    const now = time.getTime();
    const perMillisecond = this.perMinute / 60_000;
    bucket.tokens = Math.min(this.burst, bucket.tokens + Math.max(0, now - bucket.at) * perMillisecond);
    bucket.at = now;
    return bucket.tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / perMillisecond / 1000));
  }

  /** Brings a bucket, old or new, into the young generation. */
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
