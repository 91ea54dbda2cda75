import { readFileSync } from "node:fs";
import { join } from "node:path";

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

/** Runs lines in a shell in the root of the repository. It stops at the first command that fails. */
export async function typeLines(lines: string, environment: Readonly<Record<string, string>>) {
  const shell = Bun.spawn({
    cmd: ["sh", "-eu", "-c", lines],
    cwd: root,
    env: { PATH: process.env.PATH, npm_config_update_notifier: "false", ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
  ]);
  return { code: await shell.exited, stdout, stderr };
}
