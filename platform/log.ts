import pino from "pino";
import { GatheredLines, standardError } from "./log_lines.ts";

/** The log for operators: JSON, one object per line. */
export type Log = pino.Logger;

/** Levels of `logLevels` that pino does not know. Defined only where used: they rename pino's of the same number. */
const others = { warning: 40, critical: 60 };

/**
 * Creates a logger that writes JSON lines to `destination` (default: standard error).
 *
 * Callers keep secrets out: they pass identifiers and hashes, never a header, a query or a database error, whose
 * message contains the parameters. `describeError` reduces `err` to class, message and stack.
 */
export function createLog(
  level: string,
  destination: pino.DestinationStream = new GatheredLines(standardError()),
): Log {
  return pino<never>(
    {
      level,
      customLevels: level in others ? others : {},
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
    },
    destination,
  );
}

/**
 * The log for a serving process's lifecycle, independent of the configured level: its address, or a worker that ended.
 */
export function createLifecycleLog(): Log {
  return createLog("info");
}

/** Lowers the level of a log to `debug` and back at run time. */
export class Verbosity {
  readonly #configured: string;

  constructor(private readonly log: Log) {
    this.#configured = log.level;
  }

  get verbose(): boolean {
    return this.log.level !== this.#configured;
  }

  set verbose(on: boolean) {
    // If `trace` is configured, there is nothing to lower.
    const level = on && !this.log.isLevelEnabled("debug") ? "debug" : this.#configured;
    if (on === this.verbose || level === this.log.level) return;
    if (on) this.log.level = level;
    this.log.info({ log_level: level }, "the log level has changed");
    this.log.level = level;
  }

  /** Handles SIGUSR2. */
  toggle(): void {
    this.verbose = !this.verbose;
  }
}

/**
 * The loggable part of an error: a database error's message and parameters may contain a secret, its SQLSTATE cannot.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const cause = error.cause instanceof Error ? { cause: describeError(error.cause) } : {};
  const code = "code" in error ? { code: error.code } : {};
  if (holdsQuery(error) || error.name === "PostgresError" || isValidation(error)) {
    const frames = error.stack?.split("\n").filter((line) => line.startsWith("    at "));
    return { type: error.name, ...code, ...cause, stack: frames?.join("\n") };
  }
  return { type: error.name, message: error.message, ...code, ...cause, stack: error.stack };
}

/** drizzle's error: its message is the SQL with all parameters, and its name is generic. */
function holdsQuery(error: Error): boolean {
  return "query" in error && "params" in error;
}

/** Elysia's error: its message repeats the invalid value, which may be a response with a token. */
function isValidation(error: Error): boolean {
  return "code" in error && error.code === "VALIDATION";
}
