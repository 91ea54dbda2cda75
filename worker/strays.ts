import type { Log } from "../core/log.ts";
import { framesOf, kindOfFault } from "../core/plugin/mask.ts";

/** From then on they are only counted, and told of once a second. */
const mostKinds = 10;
const tellMilliseconds = 1000;

/**
 * Plugins run in this process. What one of them throws when nobody waits for it any more ends no worker: it is logged,
 * without its words, which might hold a secret. Whose it is nobody knows, nor therefore what to mask. A plugin that ends
 * the process does it as a failure, whatever it says.
 *
 * @returns what ends that
 */
export function outliveStrays(log: Log): () => void {
  const told = new Set<string>();
  let repeats = 0;
  let timer: NodeJS.Timeout | undefined;
  const tellRepeats = () => {
    if (repeats > 0) log.error({ repeats }, "something went on to throw that nobody waits for");
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
    log.error({ frames: framesOf(error) }, `something threw that nobody waits for: ${kind}`);
  };
  const fail = () => {
    // Whoever read our output has left: then the program ends by itself, and all is well.
    if (!isPipeBroken(process.stdout.errored)) process.exitCode = 1;
  };
  const events = ["uncaughtException", "unhandledRejection"] as const;
  for (const event of events) process.on(event, tell);
  process.on("exit", fail);
  return () => {
    for (const event of events) process.removeListener(event, tell);
    process.removeListener("exit", fail);
    tellRepeats();
    clearInterval(timer);
  };
}

function isPipeBroken(error: NodeJS.ErrnoException | null): boolean {
  return error?.code === "EPIPE";
}
