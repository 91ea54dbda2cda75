import { readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./until.ts";

// Runs the commands of documentation pages.

const root = join(import.meta.dir, "../../..");

/** A fenced block of a page. */
interface Block {
  page: string;
  /** The line of its fence. */
  line: number;
  language: string;
  section: string;
  lines: string;
}

/** The fenced blocks of a page in order. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/^( *)```([^\n]*)\n(.*?)^\1```$/gms)].map(
    ({ index, 2: language = "", 3: lines = "" }) => {
      const before = text.slice(0, index);
      const section = before.split(/^## /m).at(-1)!.split("\n", 1)[0]!;
      return { page, line: before.split("\n").length, language, section, lines };
    },
  );
}

/** The shell blocks of a page in order, with their sections. */
export const shellBlocks = (page: string): Block[] =>
  blocksOf(page).filter(({ language }) => language === "sh");

/** The output of the second terminal while the commands run in the first. */
export interface Walk {
  code: number;
  stdout: string;
  stderr: string;
  /** The output of the second terminal until Ctrl-C, without control sequences. */
  watched: string;
}

/**
 * Runs the commands of a page. `svc incident watch` runs on a second pseudo-terminal, until that shows `seen` after the other
 * commands have finished.
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
    cwd: root,
    env: shellEnvironment(environment),
    terminal: {
      cols: 120,
      rows: 40,
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

/** Runs lines in a shell in the root of the repository. Stops at the first command that fails. */
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
    PATH: process.env.PATH,
    TERM: "xterm-256color",
    npm_config_update_notifier: "false",
    ...environment,
  };
}
