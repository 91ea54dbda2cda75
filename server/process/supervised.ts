import { stopSignal } from "../../platform/stop_signal.ts";

/** Beside the grace time of a process: it waits for quiet before, and sends what telemetry is left behind it. */
export const killMilliseconds = 6000;

/** What a process that serves says to its supervisor. */
export type Message = "ready" | "replace" | { metrics: string; question: number };

/**
 * What it is told: that the process whose place it took has gone, that all of them will, that it shall stop, how much it is
 * to log; and what it is asked for.
 */
export type Order =
  ("taken over" | "leave" | "stop" | "log verbosely" | "log as configured") | { question: number };

const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"] as const;

/** Says something to the supervisor, if there is one. */
export function sendToSupervisor(message: Message): void {
  process.send?.(message);
}

/** Hears what the supervisor says, if there is one. */
export function onOrder(on: (order: Order) => void): void {
  if (process.send) process.on("message", on);
}

/**
 * Resolves when this process shall stop: when its supervisor says so, or has gone. A signal is none of its business: a
 * terminal, systemd and `docker stop` send it to the supervisor as well, which stops us in order. Where nobody supervises
 * us, there is nothing but the signal.
 */
export function stopOrdered(graceSeconds: number): Promise<void> {
  if (!process.send) return stopSignal();
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of signals) process.on(signal, () => {});
  onOrder((order) => order === "stop" && resolve());
  process.once("disconnect", () => {
    resolve();
    // Nobody is left who would end a process that hangs.
    setTimeout(() => process.exit(1), graceSeconds * 1000 + killMilliseconds).unref();
  });
  return promise;
}
