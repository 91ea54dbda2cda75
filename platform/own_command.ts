import { existsSync } from "node:fs";
import { join } from "node:path";

/** Embedded into the single executable by scripts/build.ts: its revisions, since it has no folders to read. */
declare const SVC_REVISIONS: unknown;

/** Its path, embedded by scripts/build_for_tests.ts into an executable that also has the source tree. */
declare const SVC_EXECUTABLE: string | undefined;

/** Whether there are source folders to read and write, or only what was built into the executable. */
export const hasSourceTree = typeof SVC_REVISIONS === "undefined";

/** Whether this is a clone of the source: an image has the runtime folders, but not the npm entry point. */
export function isClone(root = join(import.meta.dir, "..")): boolean {
  return hasSourceTree && existsSync(join(root, "bin/svc.mjs"));
}

/**
 * The command that starts another `svc`. From the source tree, this is Bun with the settings of bin/svc.mjs; the child
 * ends when this process ends for any reason.
 */
export function ownCommand(): string[] {
  if (typeof SVC_EXECUTABLE !== "undefined") return [SVC_EXECUTABLE];
  return hasSourceTree ? bunProgram("cli/main.ts") : [process.execPath];
}

/** The command for a program in the source tree that ends when this process ends. */
export function bunProgram(path: string): string[] {
  const root = join(import.meta.dir, "..");
  const flags = ["--no-orphans", "--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`];
  return [process.execPath, ...flags, join(root, path)];
}
