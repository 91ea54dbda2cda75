import { randomBytes } from "node:crypto";
import { open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Unavailable } from "../../platform/errors.ts";
import { fileError } from "./file_error.ts";

/** A dump writes continuously; a file without writes for this long was left by a killed one. */
const deadAfterMilliseconds = 24 * 60 * 60 * 1000;

/**
 * Writes a file atomically: into `.<name>.<random>.unfinished` in the same directory (readable only by us), synced to
 * disk, then renamed. A failure removes the unfinished file.
 *
 * @throws SvcError naming the path for a file system error; whatever `write` throws
 */
export async function writeWhole<T>(path: string, write: (unfinished: string) => Promise<T>): Promise<T> {
  const directory = dirname(path);
  const unfinished = join(directory, `.${basename(path)}.${randomBytes(6).toString("hex")}.unfinished`);
  try {
    await refuseSpecial(path);
    await removeDead(path);
    await (await open(unfinished, "wx", 0o600)).close();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw fileError(error, isMissing ? directory : path);
  }
  try {
    const result = await write(unfinished);
    await sync(unfinished);
    await rename(unfinished, path);
    await sync(directory);
    return result;
  } catch (error) {
    await rm(unfinished, { force: true });
    throw fileError(error, path);
  }
}

/** Refuses a pipe, a device, a directory, and a link to one of them, which the rename would replace. */
async function refuseSpecial(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found && !found.isFile())
    throw new Unavailable(
      `${path} is ${found.isDirectory() ? "a directory" : "not a regular file"}: move it away`,
    );
}

async function removeDead(path: string): Promise<void> {
  const directory = dirname(path);
  for (const name of await readdir(directory)) {
    if (!name.startsWith(`.${basename(path)}.`) || !name.endsWith(".unfinished")) continue;
    const file = join(directory, name);
    const age = Date.now() - ((await stat(file).catch(() => undefined))?.mtimeMs ?? Number.POSITIVE_INFINITY);
    if (age > deadAfterMilliseconds) await rm(file, { force: true });
  }
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
