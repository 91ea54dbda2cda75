import type { Clock } from "../../platform/clock.ts";
import { SvcError } from "../../platform/errors.ts";
import type { Io } from "../io.ts";
import type { Server } from "./server.ts";

// The clock of this machine may be wrong, and expiries, due times and relative times are the server's. Each answer has the
// server's time (`Date`), and from the first one on, `io.clock` is the server's clock. It replaces that of the machine in
// place, so that everything in a command goes by the same time.

class ServerClock implements Clock {
  /** Milliseconds by which the clock of this machine is ahead, negative if it is behind. */
  ahead = 0;

  constructor(readonly machine: Clock) {}

  now(): Date {
    return new Date(this.machine.now().getTime() - this.ahead);
  }

  /**
   * Keeps `ahead` if the answer agrees with it: its `Date` is rounded down to a second, and was written at some time since
   * the request was sent.
   */
  adjust(date: number, sent: number): void {
    const received = this.machine.now().getTime();
    const most = received - date;
    const least = most - 1000 - Math.max(0, received - sent);
    if (this.ahead < least || this.ahead > most) this.ahead = most;
  }
}

/** Reads the server's time from an answer to a request that was sent at `sent`, by the clock of this machine. */
export function readServerTime(io: Io, headers: Headers, sent: number): void {
  const date = Date.parse(headers.get("date") ?? "");
  if (Number.isNaN(date)) return;
  const clock = io.clock instanceof ServerClock ? io.clock : new ServerClock(io.clock);
  clock.adjust(date, sent);
  io.clock = clock;
}

/** The clock of this machine, for what only this machine compares. */
export const machineClock = ({ clock }: Pick<Io, "clock">): Clock =>
  clock instanceof ServerClock ? clock.machine : clock;

/** Milliseconds by which the clock of this machine is known to be ahead of the server's. */
export const clockAhead = ({ clock }: Pick<Io, "clock">): number =>
  clock instanceof ServerClock ? clock.ahead : 0;

/** `70 minutes ahead of`, for a sentence about the clock of this machine. */
export function offsetText(milliseconds: number): string {
  const minutes = Math.round(Math.abs(milliseconds) / 60_000);
  return `${minutes} ${minutes === 1 ? "minute" : "minutes"} ${milliseconds > 0 ? "ahead of" : "behind"}`;
}

/**
 * Asks the server for its time, unless it is known. Call it before refusing something because of the time. Without an
 * answer, the clock of this machine stays.
 */
export async function askServerClock(io: Io, server: Server): Promise<void> {
  if (io.clock instanceof ServerClock) return;
  const { request } = await import("./request.ts");
  try {
    await io.interruptible((signal) =>
      request(io, server, `${server.base}/healthcheck`, { signal, timeout: 5 }),
    );
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
  }
}
