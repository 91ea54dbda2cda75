import type { Args, ArgValues } from "gunshi/bone";
import type { Io } from "./io.ts";

/**
 * One command: its help, its arguments, and its implementation.
 *
 * Import heavy modules (the server, the database, a browser opener) inside `run`: `svc --help` also loads this file.
 */
export interface CommandDefinition<A extends Args = Args> {
  /** One line in the imperative, without a full stop: the help of the group shows it, too. */
  summary: string;
  /**
   * gunshi's argument schemas. Names are camelCase here and kebab-case on the command line. A positional is required
   * unless it says `required: false`; `metavar` is the placeholder of the value in the help.
   */
  args: A;
  /** The placeholder of a command line that follows `--`, which `run` gets as `rest`. */
  rest?: string;
  /** Options that people know from other programs, as typed, with the command line to use instead. */
  instead?: Readonly<Record<string, string>>;
  /** Whole command lines, shown at the end of the help. */
  examples?: readonly string[];
  /** Paragraphs shown after the options: variables, files, what happens at Ctrl-C. */
  notes?: readonly string[];
  /**
   * Runs the command. Data goes to `io.stdout`, messages to `io.stderr`. It returns on success and throws otherwise
   * (`SvcError`, or `UsageError` for a bad argument); it never chooses an exit code.
   */
  run(options: ArgValues<A>, io: Io, rest: readonly string[]): Promise<void>;
}

/** Types `options` of `run` from `args`; the default export of every command file. */
export function defineCommand<const A extends Args>(definition: CommandDefinition<A>): CommandDefinition {
  // The frame parses exactly these arguments before it calls `run`.
  return definition as unknown as CommandDefinition;
}
