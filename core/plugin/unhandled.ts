import type { PluginLog } from "./define.ts";
import { framesOf, kindOfFault } from "./mask.ts";

/** Further kinds are only counted, and logged once a second. */
const mostKinds = 10;
const tellMilliseconds = 1000;

/**
 * Logs errors that nothing awaits, instead of ending the process. Only an error's kind and frames are logged: its
 * message might hold a secret, and it is unknown which plugin's secrets to mask.
 *
 * @returns a function that removes the handlers
 */
export function installUnhandledErrorHandlers(log: Pick<PluginLog, "error">): () => void {
  const told = new Set<string>();
  let repeats = 0;
  let timer: NodeJS.Timeout | undefined;
  const tellRepeats = () => {
    if (repeats > 0) log.error({ repeats }, "more unhandled exceptions");
    else {
      clearInterval(timer);
      timer = undefined;
      told.clear();
    }
    repeats = 0;
  };
  const tell = (error: unknown) => {
    timer ??= setInterval(tellRepeats, tellMilliseconds).unref();
    const kind = kindOfFault(error);
    if (told.has(kind) || told.size === mostKinds) {
      repeats += 1;
      return;
    }
    told.add(kind);
    log.error({ frames: framesOf(error) }, `unhandled exception: ${kind}`);
  };
  const events = ["uncaughtException", "unhandledRejection"] as const;
  for (const event of events) process.on(event, tell);
  return () => {
    for (const event of events) process.removeListener(event, tell);
    tellRepeats();
    clearInterval(timer);
  };
}
