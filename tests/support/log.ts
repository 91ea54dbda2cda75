import { createLog } from "../../platform/log.ts";

/** A log at every level, and its lines. */
export function recordingLog() {
  const logged: string[] = [];
  return { logged, log: createLog("trace", { write: (line: string) => void logged.push(line) }) };
}
