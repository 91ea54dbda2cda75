import type { Args, ArgValues } from "gunshi/bone";
import type { Io } from "./io.ts";

/**
 * One command: its arguments, and what it does with them once they are parsed and checked.
 *
 * A command file holds nothing else at its top level: what is heavy (the server, the database, a browser opener) is
 * imported inside `run`, because `svc <command> --help` loads the file too.
 */
export interface CommandDefinition<A extends Args = Args> {
  /**
   * gunshi's argument schemas. Names are camelCase here and kebab-case on the command line. A positional is required
   * unless it says `required: false`; `metavar` is the word that stands for the value in the help.
   */
  args: A;
  /** For options that people know from elsewhere, as they are typed: the command line to type instead. */
  instead?: Readonly<Record<string, string>>;
  /** Whole command lines, shown at the end of the help. */
  examples?: readonly string[];
  /** Paragraphs shown after the options: variables, files, what happens at Ctrl-C. */
  notes?: readonly string[];
  /**
   * Does the work. What it was asked for goes to `io.stdout`, everything else to `io.stderr`. It returns on success
   * and throws otherwise (`SvcError`, or `UsageError` for a bad argument); it never picks an exit code.
   */
  run(options: ArgValues<A>, io: Io): Promise<void>;
}

/** Types `options` of `run` from `args`. Every command file's default export is made with it. */
export function defineCommand<const A extends Args>(definition: CommandDefinition<A>): CommandDefinition {
  // Whoever runs it has parsed the very arguments that it says.
  return definition as unknown as CommandDefinition;
}
