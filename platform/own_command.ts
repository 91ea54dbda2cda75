import { existsSync } from "node:fs";
import { join } from "node:path";

/** Written into the single executable by scripts/build.ts: its revisions, since it has no folders to read. */
declare const SVC_REVISIONS: unknown;

/** Its own path, written by scripts/build_for_tests.ts into an executable that has the source tree as well. */
declare const SVC_EXECUTABLE: string | undefined;

/** Whether there are folders to read and to write, or only what the executable was built with. */
export const hasSourceTree = typeof SVC_REVISIONS === "undefined";

/** Whether this is a clone of the source: an image has the folders that run, and not what npm starts. */
export function isClone(root = join(import.meta.dir, "..")): boolean {
  return hasSourceTree && existsSync(join(root, "bin/svc.mjs"));
}

/**
 * How `svc` is started again, by itself. From the source tree it is Bun with the settings that bin/svc.mjs gives it, and
 * it ends when we end, whatever ends us.
 */
export function ownCommand(): string[] {
  if (typeof SVC_EXECUTABLE !== "undefined") return [SVC_EXECUTABLE];
  return hasSourceTree ? bunProgram("cli/main.ts") : [process.execPath];
}

/** How a program of the source tree is started, so that it ends when we end. */
export function bunProgram(path: string): string[] {
  const root = join(import.meta.dir, "..");
  const flags = ["--no-orphans", "--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`];
  return [process.execPath, ...flags, join(root, path)];
}
