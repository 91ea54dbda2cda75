import { readFileSync } from "node:fs";
import { whyUnreadable } from "./unreadable.ts";

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The beginning of a PostgreSQL address. */
export const databaseUrlPattern = "^postgres(ql)?://";

/** The values of SVC_LOG_LEVEL: pino's names, and those of uvicorn and Python that differ. */
export const logLevels = ["trace", "debug", "info", "warn", "warning", "error", "fatal", "critical"] as const;

/**
 * Reads one variable; an empty one counts as not set. A secret may be in a file named by `<name>_FILE`. Separate from
 * config.ts, so that a command that needs one variable does not load all of them.
 */
export function readVariable(
  environment: Environment,
  name: string,
  secret: boolean,
): { text?: string; fault?: string } {
  const text = environment[name]?.trim() || undefined;
  const file = secret ? environment[`${name}_FILE`]?.trim() : undefined;
  if (!file) return { text };
  if (text !== undefined) return { fault: `${name} and ${name}_FILE are both set: remove one of them` };
  try {
    const content = readFileSync(file, "utf8").trim();
    return content === "" ? { fault: `${name}_FILE: ${file} is empty` } : { text: content };
  } catch (cause) {
    return { fault: `${name}_FILE: cannot read ${file}: ${whyUnreadable(cause)}` };
  }
}
