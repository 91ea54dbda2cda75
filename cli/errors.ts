import { Conflict } from "../platform/errors.ts";

/** The command line is invalid. */
export class UsageError extends Error {
  override name = "UsageError";
  constructor(
    message: string,
    /** Path of the command, e.g. `["server", "start"]`; set by the frame if a command throws without it. */
    public path?: readonly string[],
  ) {
    super(message);
  }
}

/** A conflict with more to say than its line: what differs is printed before it, and the next command last. */
export class ExplainedConflict extends Conflict {
  constructor(
    detail: string,
    public next: string,
    readonly differences: readonly string[] = [],
    options?: ErrorOptions,
  ) {
    super(detail, options);
  }
}

/** The command line names only a group; its help lists the commands. */
export class MissingCommand extends UsageError {
  constructor(path: readonly string[]) {
    super("missing command", path);
  }
}

/** The user pressed Ctrl-C. Nothing is printed. */
export class Interrupted extends Error {
  override name = "Interrupted";
  constructor() {
    super("Interrupted");
  }
}

/** A command that svc ran exited with this code, and so does svc. Nothing is printed, because the command printed its error. */
export class ExitCode extends Error {
  override name = "ExitCode";
  constructor(readonly code: number) {
    super(`exit code ${code}`);
  }
}
