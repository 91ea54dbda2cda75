/** An error from Bun's parser or bundler, with its position. */
interface BuildFault {
  message: string;
  position?: { file?: string; line?: number; column?: number } | null;
}

/**
 * One line per error in a program's text: file, line, column and message. Empty for any other error.
 *
 * @param name replaces the file name, if the text was not in a file
 */
export function sourceFaults(error: unknown, name?: string): string[] {
  const all = error instanceof AggregateError ? error.errors : [error];
  return all.filter(isBuildFault).map(({ message, position }) => {
    const { file = "", line = 0, column = 0 } = position ?? {};
    return position ? `${name ?? file}:${line}:${column}: ${message}` : message;
  });
}

/** Where an error was thrown: file, line and column of the first stack frame that has them. */
export function placeThrown(error: unknown): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  return /^\s+at (?:.*\()?([^()\s]+:\d+:\d+)\)?$/m.exec(stack)?.[1];
}

function isBuildFault(error: unknown): error is BuildFault {
  return error instanceof BuildMessage || error instanceof ResolveMessage;
}
