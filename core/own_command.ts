import { join } from "node:path";
import { hasSourceTree } from "./source_tree.ts";

/**
 * How `svc` is started again, by itself. From the source tree it is Bun with the settings that bin/svc.mjs gives it, and
 * it ends when we end, whatever ends us.
 */
export function ownCommand(): string[] {
  return hasSourceTree ? bunProgram("cli/main.ts") : [process.execPath];
}

/** How a program of the source tree is started, so that it ends when we end. */
export function bunProgram(path: string): string[] {
  const root = join(import.meta.dir, "..");
  const flags = ["--no-orphans", "--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`];
  return [process.execPath, ...flags, join(root, path)];
}
