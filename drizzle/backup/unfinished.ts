import { randomBytes } from "node:crypto";
import { lstat, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Unavailable } from "../../platform/errors.ts";
import { fileError } from "./file_error.ts";

/** A dump writes all the time; what nobody has written to for this long was left by one that was killed. */
const deadAfterMilliseconds = 24 * 60 * 60 * 1000;

/**
 * Writes a file so that at every moment its name stands for a whole one, the old or the new: into
 * `.<name>.<random>.unfinished` beside it (only ours to read), to the disk, and then renamed. Whatever fails takes the
 * unfinished file with it.
 *
 * @throws SvcError naming the path for what the file system refuses; whatever `write` throws
 */
export async function writeWhole<T>(path: string, write: (unfinished: string) => Promise<T>): Promise<T> {
  const directory = dirname(path);
  const unfinished = join(directory, `.${basename(path)}.${randomBytes(6).toString("hex")}.unfinished`);
  try {
    await refuseDirectory(path);
    await removeDead(path);
    await (await open(unfinished, "wx", 0o600)).close();
  } catch (error) {
    throw fileError(error, path);
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

/** The rename would say so too, but only after all the work. */
async function refuseDirectory(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isDirectory()) throw new Unavailable(`${path} is a directory`);
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
