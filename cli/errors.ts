/** The command line itself is wrong. `usage` is the usage line of the command that was meant. */
export class UsageError extends Error {
  override name = "UsageError";
  constructor(
    message: string,
    /** Path of the command, e.g. `["server", "start"]`; filled in by the frame when a command throws without it. */
    public path?: readonly string[],
  ) {
    super(message);
  }
}

/** The person pressed Ctrl-C. Nothing is printed: they know. */
export class Interrupted extends Error {
  override name = "Interrupted";
  constructor() {
    super("Interrupted");
  }
}
