import { stopSignal } from "../../platform/stop_signal.ts";

/** Added to a process's grace time: it waits for quiet before, and sends remaining telemetry afterwards. */
export const killMilliseconds = 6000;

/** Messages from a serving process to its supervisor. */
export type Message = "ready" | { metrics: string; question: number };

/**
 * Orders to a serving process: the process it replaces is gone, all workers will stop, stop now, how much to log, and
 * questions.
 */
export type Order =
  ("taken over" | "leave" | "stop" | "log verbosely" | "log as configured") | { question: number };

const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"] as const;

/** Sends a message to the supervisor, if there is one. */
export function sendToSupervisor(message: Message): void {
  process.send?.(message);
}

/** Calls `on` for orders of the supervisor, if there is one. */
export function onOrder(on: (order: Order) => void): void {
  if (process.send) process.on("message", on);
}

/**
 * Resolves when this process must stop: when its supervisor says so or is gone. It ignores signals: a terminal, systemd
 * and `docker stop` also send them to the supervisor, which stops us cleanly. Without a supervisor, the signal counts.
 */
export function stopOrdered(graceSeconds: number): Promise<void> {
  if (!process.send) return stopSignal();
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of signals) process.on(signal, () => {});
  onOrder((order) => order === "stop" && resolve());
  process.once("disconnect", () => {
    resolve();
    // With the supervisor gone, nobody else would end a process that hangs.
    setTimeout(() => process.exit(1), graceSeconds * 1000 + killMilliseconds).unref();
  });
  return promise;
}
