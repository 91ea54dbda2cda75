import type { Clock } from "../platform/clock.ts";

/** Timers of the runtime end at most this late by themselves, and long ones are looked at in between. */
const longestTimerMilliseconds = 5000;

const longestSleepMilliseconds = 30_000;

/** From then on the time is looked at again and again: a timer of the runtime alone is a millisecond late, or several. */
const nearMilliseconds = 3;

/**
 * The database's time between two looks at it: what it said last, plus what has passed here since by a clock that nobody
 * sets. This machine's own time of day plays no part.
 */
export class DatabaseTime implements Clock {
  #offset: number | undefined;
  #error = Number.POSITIVE_INFINITY;
  /** How often somebody has set the database's clock. */
  #jumps = 0;

  /**
   * Takes a time that the database said between two instants of `performance.now()`. A better one replaces a worse one;
   * so does one that contradicts it: somebody has set the database's clock.
   */
  observe(said: Date, sent: number, received: number): void {
    const error = (received - sent) / 2;
    const offset = said.getTime() - (sent + received) / 2;
    const contradicts = Math.abs(offset - (this.#offset ?? 0)) > error + this.#error + 2;
    if (this.#offset !== undefined && error > this.#error && !contradicts) {
      // The two clocks run apart, a little.
      this.#error += 0.5;
      return;
    }
    if (this.#offset !== undefined && contradicts) this.#jumps += 1;
    this.#offset = offset;
    this.#error = error;
  }

  /** @throws Error before the first observation */
  now(): Date {
    if (this.#offset === undefined) throw new Error("the database's time is not known yet");
    return new Date(performance.now() + this.#offset);
  }

  /**
   * Settles a moment after that time, so that the database agrees that it has come; when `signal` aborts; when somebody has
   * set the database's clock; or after half a minute, since an operator may have changed what is due.
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

/** Settles after that time, or when `signal` aborts. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  const abort = () => resolve();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}

/** Nobody has answered in time. */
export class NoAnswer extends Error {
  constructor() {
    super("no answer");
  }
}

/** In so many parts a time is waited for. */
const parts = 10;

/**
 * The value of a promise that has to settle in time, of which the time does not count in which this process stood still:
 * then the answer may be there, and nobody has read it.
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
