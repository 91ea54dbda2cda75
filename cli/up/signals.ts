import { readFileSync } from "node:fs";
import type { Environment } from "../../platform/variable.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type Stop = (typeof signals)[number] | "starter gone";

const checkMilliseconds = 500;

/**
 * Settles with the first reason to stop: Ctrl-C, `kill`, a closed terminal, or the end of a process that started us (npm, or
 * the wrapper of bin/svc.mjs, which sets SVC_END_WITH). Later signals are ignored, because stopping has its own deadlines.
 */
export function awaitStop(environment: Environment): Disposable & { reason: Promise<Stop> } {
  const { promise, resolve } = Promise.withResolvers<Stop>();
  const handlers = signals.map((signal) => ({ signal, handle: () => resolve(signal) }));
  for (const { signal, handle } of handlers) process.on(signal, handle);
  const starters = (environment.SVC_END_WITH ?? "")
    .split(",")
    .map(Number)
    .filter((pid) => pid > 1);
  const timer = setInterval(() => {
    if (starters.some(isGone)) resolve("starter gone");
  }, checkMilliseconds);
  timer.unref();
  return {
    reason: promise,
    [Symbol.dispose]() {
      clearInterval(timer);
      for (const { signal, handle } of handlers) process.removeListener(signal, handle);
    },
  };
}

/** A killed process is a zombie until its parent reads its exit status; it counts as gone. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  if (process.platform !== "linux") return false;
  try {
    return /\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
