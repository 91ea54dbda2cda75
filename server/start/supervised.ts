/** What a process that serves says to its supervisor. */
export type Message = "ready" | "replace" | { metrics: string; question: number };

/**
 * What it is told: that the process whose place it took has gone, that all of them will, how much it is to log; and what it
 * is asked for.
 */
export type Order = "taken over" | "leave" | "log verbosely" | "log as configured" | { question: number };

/** Says something to the supervisor, if there is one. */
export function tell(message: Message): void {
  process.send?.(message);
}

/** Hears what the supervisor says, if there is one. */
export function obey(on: (order: Order) => void): void {
  if (process.send) process.on("message", on);
}

/**
 * Resolves when this process shall stop: at SIGTERM, or when its supervisor has gone. Without one, at Ctrl-C, too; with
 * one, the terminal sends that to both, and the supervisor stops us in order.
 */
export function stopRequested(supervised: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once("SIGTERM", () => resolve());
  if (supervised) {
    process.on("SIGINT", () => {});
    process.on("SIGHUP", () => {});
    process.on("SIGUSR2", () => {});
    process.once("disconnect", () => resolve());
  } else {
    process.once("SIGINT", () => resolve());
  }
  return promise;
}
