/** What a process that serves says to its supervisor. */
export type Message = "ready" | "replace";

/** Says something to the supervisor, if there is one. */
export function tell(message: Message): void {
  process.send?.(message);
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
    process.once("disconnect", () => resolve());
  } else {
    process.once("SIGINT", () => resolve());
  }
  return promise;
}
