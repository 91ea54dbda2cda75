/** A fault that Bun's parser or bundler finds, with where it stands. */
interface BuildFault {
  message: string;
  position?: { file?: string; line?: number; column?: number } | null;
}

/**
 * One line for each fault in the text of a program: file, line, column and what is wrong. None for an error that is not
 * about the text of a program.
 *
 * @param name stands for the file, where the text was in none
 */
export function sourceFaults(error: unknown, name?: string): string[] {
  const all = error instanceof AggregateError ? error.errors : [error];
  return all.filter(isBuildFault).map(({ message, position }) => {
    const { file = "", line = 0, column = 0 } = position ?? {};
    return position ? `${name ?? file}:${line}:${column}: ${message}` : message;
  });
}

/** Where an error was thrown, as its stack has it: file, line and column, from the first frame that has them. */
export function placeThrown(error: unknown): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  return /^\s+at (?:.*\()?([^()\s]+:\d+:\d+)\)?$/m.exec(stack)?.[1];
}

function isBuildFault(error: unknown): error is BuildFault {
  return error instanceof BuildMessage || error instanceof ResolveMessage;
}
