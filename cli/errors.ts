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

/** The user pressed Ctrl-C. Nothing is printed. */
export class Interrupted extends Error {
  override name = "Interrupted";
  constructor() {
    super("Interrupted");
  }
}
