import { readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./until.ts";

// Pages whose commands are run by a test.

const root = join(import.meta.dir, "../../..");

/** The shell commands of a page, one text for each block, in the order of its sections. */
export function shellBlocks(page: string): { section: string; lines: string }[] {
  const text = readFileSync(join(root, page), "utf8");
  return text.split(/^## /m).flatMap((part) => {
    const [section = ""] = part.split("\n", 1);
    return [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, lines = ""]) => ({ section, lines }));
  });
}

/** What the page shows in a second terminal while the commands of the first go on. */
export interface Walk {
  code: number;
  stdout: string;
  stderr: string;
  /** What the second terminal showed, without control sequences, until Ctrl-C at the end. */
  watched: string;
}

/**
 * Runs the commands of a page. A block of `svc incident watch` runs on a pseudo-terminal, until `seen` is on it after the
 * other commands are done.
 */
export async function walk(
  blocks: readonly string[],
  environment: Readonly<Record<string, string>>,
  seen: RegExp,
): Promise<Walk> {
  const at = blocks.findIndex((lines) => lines.startsWith("npx svc incident watch"));
  const before = await typeLines(blocks.slice(0, at).join(""), environment);
  if (before.code !== 0) return { ...before, watched: "" };
  let watched = "";
  const decoder = new TextDecoder();
  const second = Bun.spawn(["sh", "-eu", "-c", blocks[at]!], {
    ...{ cwd: root, env: shellEnvironment(environment) },
    terminal: {
      ...{ cols: 120, rows: 40 },
      data: (_terminal, data) => {
        watched += decoder.decode(data, { stream: true });
      },
    },
  });
  const shows = (pattern: RegExp) =>
    until(`the second terminal to show ${pattern}`, () => pattern.test(Bun.stripANSI(watched))).catch(
      (cause: Error) => {
        throw new Error(`${cause.message}\n${watched}`, { cause });
      },
    );
  try {
    await shows(/ · Active/);
    const after = await typeLines(blocks.slice(at + 1).join(""), environment);
    if (after.code === 0) await shows(seen);
    const [stdout, stderr] = [before.stdout + after.stdout, before.stderr + after.stderr];
    return { code: after.code, stdout, stderr, watched: Bun.stripANSI(watched) };
  } finally {
    second.terminal!.write("\x03");
    await second.exited;
  }
}

/** Runs lines in a shell in the root of the repository. It stops at the first command that fails. */
export async function typeLines(lines: string, environment: Readonly<Record<string, string>>) {
  const shell = Bun.spawn({
    cmd: ["sh", "-eu", "-c", lines],
    cwd: root,
    env: shellEnvironment(environment),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
  ]);
  return { code: await shell.exited, stdout, stderr };
}

function shellEnvironment(environment: Readonly<Record<string, string>>) {
  return {
    ...{ PATH: process.env.PATH, TERM: "xterm-256color", npm_config_update_notifier: "false" },
    ...environment,
  };
}
