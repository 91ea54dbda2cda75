import pino from "pino";
import { GatheredLines, standardError } from "./log_lines.ts";

/** Where an operator reads what happened: JSON lines, one object a line. */
export type Log = pino.Logger;

/**
 * A logger that writes JSON lines to `destination` (standard error unless told).
 *
 * Secrets are kept out by what callers pass: identifiers and hashes, never a header, a query or a database error
 * (its message holds the parameters). `err` is reduced to class, message and stack by `describeError`.
 */
export function createLog(
  level: string,
  destination: pino.DestinationStream = new GatheredLines(standardError()),
): Log {
  return pino(
    { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: describeError } },
    destination,
  );
}

/** For what a process that serves says of itself, whatever level is configured: where it listens, which worker has ended. */
export function createLifecycleLog(): Log {
  return createLog("info");
}

/** Lowers the level of a log to `debug` and back, while the program goes on. */
export class Verbosity {
  readonly #configured: string;

  constructor(private readonly log: Log) {
    this.#configured = log.level;
  }

  get verbose(): boolean {
    return this.log.level !== this.#configured;
  }

  set verbose(on: boolean) {
    // Where `trace` is configured there is nothing to be lowered.
    const level = on && !this.log.isLevelEnabled("debug") ? "debug" : this.#configured;
    if (on === this.verbose || level === this.log.level) return;
    if (on) this.log.level = level;
    this.log.info({ log_level: level }, "the log level has changed");
    this.log.level = level;
  }

  /** What SIGUSR2 asks for. */
  toggle(): void {
    this.verbose = !this.verbose;
  }
}

/** What may be logged of an error: a database error's message and parameters may hold a secret, its SQLSTATE cannot. */
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

/** drizzle's: its message is the SQL with all parameters, and it is called like any other error. */
function holdsQuery(error: Error): boolean {
  return "query" in error && "params" in error;
}

/** Elysia's: its message repeats the value that failed, which may be a whole answer with a token in it. */
function isValidation(error: Error): boolean {
  return "code" in error && error.code === "VALIDATION";
}
