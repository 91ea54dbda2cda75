import * as fs from "node:fs";
import { UsageError } from "../errors.ts";
import { storing, writePrivately } from "./private_file.ts";

/** The arguments of a command that writes to a file, or to standard output. */
export const outputArgs = {
  output: {
    type: "string",
    short: "o",
    metavar: "FILE",
    description: "File to write to (default: stdout)",
  },
  force: { type: "boolean", description: "Replace FILE if it exists" },
} as const;

/**
 * The file of `--output`, for one text; undefined for standard output.
 * @throws UsageError when it exists, unless `force` is given, also if it appears before it is written
 */
export function outputFile(
  path: string | undefined,
  force: boolean | undefined,
): { write(text: string): void } | undefined {
  if (path === undefined || path === "-") return undefined;
  if (!force) refuseExisting(path);
  return {
    write: (text) => {
      if (!force) refuseExisting(path);
      storing(path, () => {
        if (isStream(path)) fs.writeFileSync(path, text);
        // Whole or not at all, and for its owner only, because incidents may be Restricted.
        else writePrivately(fs.existsSync(path) ? fs.realpathSync(path) : path, text);
      });
    },
  };
}

/** A device or a pipe, such as /dev/stdout, which no file must replace. */
function isStream(path: string): boolean {
  const found = fs.statSync(path, { throwIfNoEntry: false });
  return found !== undefined && !found.isFile() && !found.isDirectory();
}

function refuseExisting(path: string): void {
  if (fs.lstatSync(path, { throwIfNoEntry: false }) === undefined || isStream(path)) return;
  throw new UsageError(`${path} exists: use --force to replace it`);
}
