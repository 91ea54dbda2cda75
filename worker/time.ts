import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../platform/clock.ts";

/** The longest single timer. A runtime timer may fire late, so a long wait is split and the time checked in between. */
const longestTimerMilliseconds = 5000;

const longestSleepMilliseconds = 30_000;

const firstObservationMilliseconds = 20;

/** Within this distance, the time is polled: runtime timers fire a millisecond or more late. */
const nearMilliseconds = 3;

/**
 * The database's time between two observations: the last answer plus the time that has passed on a monotonic clock.
 * This machine's wall clock is not used.
 */
export class DatabaseTime implements Clock {
  #offset: number | undefined;
  #error = Number.POSITIVE_INFINITY;
  /** How often the database's clock has been set. */
  #jumps = 0;

  /**
   * Records the database's time, read between two instants of `performance.now()`. A more precise observation replaces
   * a less precise one. So does one that contradicts it, since the database's clock has been set.
   */
  observe(time: Date, sent: number, received: number): void {
    const error = (received - sent) / 2;
    const offset = time.getTime() - (sent + received) / 2;
    const contradicts = Math.abs(offset - (this.#offset ?? 0)) > error + this.#error + 2;
    if (this.#offset !== undefined && error > this.#error && !contradicts) {
      // The two clocks drift slightly.
      this.#error += 0.5;
      return;
    }
    if (this.#offset !== undefined && contradicts) this.#jumps += 1;
    this.#offset = offset;
    this.#error = error;
  }

  /** Resolves after the first observation, or when `signal` aborts. */
  async known(signal: AbortSignal): Promise<void> {
    while (this.#offset === undefined && !signal.aborted) await pause(firstObservationMilliseconds, signal);
  }

  /** @throws Error before the first observation */
  now(): Date {
    if (this.#offset === undefined) throw new Error("the database's time is not known yet");
    return new Date(performance.now() + this.#offset);
  }

  /**
   * Resolves just after `at`, so that the database agrees that it has passed; when `signal` aborts; when the database's
   * clock has been set; or after half a minute, since an operator may have changed what is due.
   */
  async sleepUntil(at: Date, signal: AbortSignal): Promise<void> {
    const [jumps, end] = [this.#jumps, performance.now() + longestSleepMilliseconds];
    while (!signal.aborted && this.#jumps === jumps && performance.now() < end) {
      const left = at.getTime() - (performance.now() + (this.#offset ?? 0));
      if (left < 0) return;
      if (left > nearMilliseconds)
        await pause(Math.min(left - nearMilliseconds, longestTimerMilliseconds), signal);
      else await new Promise(setImmediate);
    }
  }
}

/** Resolves after the given time, or when `signal` aborts. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => {});
}

/** The answer did not arrive in time. */
export class NoAnswer extends Error {
  constructor() {
    super("no answer");
  }
}

/** The number of timers a timeout is split into. */
const parts = 10;

/**
 * Awaits a promise with a timeout that excludes time in which this process was suspended: the answer may have arrived
 * without having been read.
 *
 * @throws NoAnswer
 */
export async function inTime<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout;
  const wait = (left: number): void => {
    const next = () => (left === 1 ? reject(new NoAnswer()) : wait(left - 1));
    timer = setTimeout(next, milliseconds / parts);
  };
  wait(parts);
  promise.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer!);
  }
}
