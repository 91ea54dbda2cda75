import { cli } from "gunshi/bone";
import { release } from "../platform/build.ts";
import { ConfigurationError, SvcError } from "../platform/errors.ts";
import { forParser } from "./command_line.ts";
import type { Group } from "./command_tree.ts";
import { completeCommand } from "./completion/scripts.ts";
import { ExitCode, ExplainedConflict, Interrupted, MissingCommand, UsageError } from "./errors.ts";
import { entry, frame, helpOf, subCommands, usageOf } from "./frame.ts";
import type { Io } from "./io.ts";
import { printable } from "./text.ts";
import { root } from "./tree.ts";

const OK = 0;
const FAILURE = 1;
const USAGE = 2;
const NOT_SIGNED_IN = 4;
/** 128 + SIGINT, as in a shell. */
const INTERRUPTED = 130;

/**
 * Runs one command line and returns the exit code; nothing else in `cli/` knows exit codes. An error is one line on stderr
 * (one for each fault of a configuration), without a stack unless `SVC_DEBUG=1`. With `--json` it is JSON.
 */
export async function run(argv: readonly string[], given: Io, tree: Group = root): Promise<number> {
  if (argv[0] === completeCommand) return await answerShell(argv.slice(1), given, tree);
  let asked: string | undefined;
  const io: Io = {
    ...given,
    fetch: (url, init) => {
      asked = new URL(url).origin;
      return given.fetch(url, init);
    },
  };
  try {
    // What follows `--` may be the command line of another program.
    const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
    const own = argv.slice(0, end);
    // `svc --certificate whoami`: the option belongs to the commands, for their help and their checks.
    if (own[0] === "--certificate" && own.length > 1) own.push(own.shift()!);
    const words = [...(await forParser(own, tree)), ...argv.slice(end)];
    await cli(words, entry(io, tree), {
      name: "svc",
      strict: true,
      subCommands: subCommands(io, tree),
      plugins: [frame(io, tree)],
    });
    return OK;
  } catch (error) {
    if (error instanceof ExitCode) return error.code;
    return await report(error, io, tree, asksForJson(argv), asked);
  }
}

/** Whether `--json` is among the options, even if the command or another option is invalid. */
function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes("--json");
}

/** Answers a completion script. It prints no errors: they would appear in the middle of a command line. */
async function answerShell(words: readonly string[], io: Io, tree: Group): Promise<number> {
  const { complete } = await import("./completion/complete.ts");
  try {
    const { candidates, places = "words" } = await complete(words, tree, async (asked) => {
      const { namesFor } = await import("./completion/names.ts");
      return namesFor(asked, words[0] === "--certificate" ? { ...io, certificate: true } : io);
    });
    const lines = candidates.map(({ word, about }) => (about ? `${word}\t${about}` : word));
    io.stdout.write([places, ...lines, ""].join("\n"));
    return OK;
  } catch {
    return FAILURE;
  }
}

/** Prefers the cause of a configuration error: Bun shows the excerpt of a syntax error only if it is the error itself. */
function inspect(error: unknown): string {
  const cause = error instanceof ConfigurationError ? error.cause : undefined;
  return Bun.inspect(cause ?? error);
}

/**
 * As JSON, an error is one line such as `{"error":{"code":"unauthenticated","message":"...","exit_code":4}}`. The code is
 * one of the server's, or `usage` or `interrupted`.
 */
async function report(
  error: unknown,
  io: Io,
  tree: Group,
  asJson: boolean,
  asked: string | undefined,
): Promise<number> {
  const { code, message, exit_code } = describe(error, asked);
  const isOfUser = error instanceof Interrupted || error instanceof UsageError;
  if (io.env.SVC_DEBUG === "1" && !isOfUser) io.stderr.write(`${inspect(error)}\n`);
  const lines = message.split("\n").map((line) => printable(line));
  const { differences = [], next } = error instanceof ExplainedConflict ? error : {};
  if (asJson) {
    if (next !== undefined) lines.push(next);
    io.stderr.write(`${JSON.stringify({ error: { code, message: lines.join("\n"), exit_code } })}\n`);
  } else if (!(error instanceof Interrupted)) {
    for (const line of differences) io.stderr.write(`${line}\n`);
    for (const line of lines) io.stderr.write(`svc: ${line}\n`);
    if (next !== undefined) io.stderr.write(`${next}\n`);
    if (error instanceof MissingCommand) io.stderr.write(`\n${await helpOf(error.path ?? [], tree)}`);
    else if (error instanceof UsageError) io.stderr.write(await usageOf(error.path ?? [], tree));
  }
  return exit_code;
}

function describe(
  error: unknown,
  asked: string | undefined,
): { code: string; message: string; exit_code: number } {
  if (error instanceof Interrupted)
    return { code: "interrupted", message: "interrupted", exit_code: INTERRUPTED };
  if (error instanceof UsageError) return { code: "usage", message: error.message, exit_code: USAGE };
  if (!(error instanceof SvcError))
    return { code: "internal", message: unexpected(error, asked), exit_code: FAILURE };
  const { code, detail: message } = error;
  return { code, message, exit_code: code === "unauthenticated" ? NOT_SIGNED_IN : FAILURE };
}

/**
 * Names the kind of an unknown error but not its message, which may contain a secret (SQL parameters, a URL).
 *
 * @param asked the server of the last request, whose answer may be the cause
 */
function unexpected(error: unknown, asked: string | undefined): string {
  const { name, code } =
    error instanceof Error ? (error as Error & { code?: unknown }) : { name: typeof error, code: undefined };
  const isCoded = typeof code === "string";
  const kind = isCoded ? `${name}, ${code}` : name;
  // An error with a code is one of the system or a library, such as a full disk.
  const hint =
    asked === undefined || isCoded
      ? ""
      : `; perhaps ${asked} runs another release than this svc (${release})`;
  return `unexpected error (${kind})${hint}; run it again with SVC_DEBUG=1 to see where`;
}
