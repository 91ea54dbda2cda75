import { closeSync, openSync } from "node:fs";

/** A parent that forwards a signal sent to the whole process group makes us receive it twice. */
const echoMilliseconds = 500;

/**
 * Resolves at SIGINT or SIGTERM, when this process should shut down cleanly. A second signal of the same kind ends it
 * immediately, unless it comes so soon that it is an echo of the first.
 */
export function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const stop = () => {
      resolve();
      setTimeout(() => process.removeListener(signal, stop), echoMilliseconds).unref();
    };
    process.on(signal, stop);
  }
  return promise;
}

/**
 * Calls `reload` at SIGHUP. If this process was started from a terminal that is gone, SIGHUP has its original meaning
 * (termio(7)), so it calls `stop`.
 */
export function onHangUp(reload: () => void, stop: () => void): void {
  const startedOnTerminal = hasTerminal();
  process.on("SIGHUP", () => (startedOnTerminal && !hasTerminal() ? stop() : reload()));
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
