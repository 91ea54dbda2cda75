import { spawn } from "node:child_process";
import type { TerminalExit } from "./io.ts";

/**
 * Runs a command line of the user's, `code --wait` for instance, with more arguments. It gets the terminal, also where
 * our own input or output is something else. Ctrl-C is for the program: we wait for it.
 */
export async function runOnTerminal(commandLine: string, args: readonly string[]): Promise<TerminalExit> {
  // The shell splits the command line as the user wrote it, and never reads the arguments.
  const [program, ...before] =
    process.platform === "win32"
      ? commandLine.split(/\s+/)
      : ["/bin/sh", "-c", `${commandLine} "$@"`, commandLine];
  const ignore = () => {};
  process.on("SIGINT", ignore);
  process.on("SIGQUIT", ignore);
  try {
    const child = spawn(program!, [...before, ...args], { stdio: ["inherit", 2, "inherit"] });
    return await new Promise<TerminalExit>((resolve) => {
      child.on("error", (error: NodeJS.ErrnoException) => resolve({ failed: error.code ?? error.message }));
      child.on("close", (code, signal) => resolve(signal === null ? { code: code ?? 1 } : { signal }));
    });
  } finally {
    process.removeListener("SIGINT", ignore);
    process.removeListener("SIGQUIT", ignore);
  }
}
