import type { PluginLog } from "./define.ts";
import { framesOf, kindOfFault } from "./mask.ts";

/** Further kinds are only counted, and logged once a second. */
const mostKinds = 10;
const reportMilliseconds = 1000;

/**
 * Logs errors that nothing awaits, instead of ending the process. Only an error's kind and frames are logged: its
 * message might hold a secret, and it is unknown which plugin's secrets to mask.
 *
 * @returns a function that removes the handlers
 */
export function installUnhandledErrorHandlers(log: Pick<PluginLog, "error">): () => void {
  const reported = new Set<string>();
  let repeats = 0;
  let timer: NodeJS.Timeout | undefined;
  const reportRepeats = () => {
    if (repeats > 0) log.error({ repeats }, "more unhandled exceptions");
    else {
      clearInterval(timer);
      timer = undefined;
      reported.clear();
    }
    repeats = 0;
  };
  const report = (error: unknown) => {
    timer ??= setInterval(reportRepeats, reportMilliseconds).unref();
    const kind = kindOfFault(error);
    if (reported.has(kind) || reported.size === mostKinds) {
      repeats += 1;
      return;
    }
    reported.add(kind);
    log.error({ frames: framesOf(error) }, `unhandled exception: ${kind}`);
  };
  const events = ["uncaughtException", "unhandledRejection"] as const;
  for (const event of events) process.on(event, report);
  return () => {
    for (const event of events) process.removeListener(event, report);
    reportRepeats();
    clearInterval(timer);
  };
}
