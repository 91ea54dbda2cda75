import { closeSync, openSync } from "node:fs";

/** Whoever passes on a signal that the whole process group got has us hear it twice. */
const echoMilliseconds = 500;

/**
 * Resolves at SIGINT or SIGTERM, when this process shall stop in order. The same signal once more ends it at once, unless
 * it follows so soon that it is the first one's echo.
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
 * Calls `reload` at SIGHUP. Where this process was started from a terminal, and that is gone, SIGHUP has its first
 * meaning (termio(7)): then it calls `stop`.
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
