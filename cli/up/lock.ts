import { Database } from "bun:sqlite";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Conflict, SvcError } from "../../core/errors.ts";

interface Running {
  pid: number;
  url: string;
}

/**
 * Makes sure that this is the only `svc up` of a data directory. SQLite's exclusive lock is one of the operating
 * system: two starts at once cannot both have it, and it is gone with the process, however that ends.
 *
 * @throws Conflict that names process and address of the one that runs, SvcError for a directory that is not ours to write
 */
export function lockDirectory(directory: string, url: string): Disposable {
  const file = join(directory, "up.json");
  const database = openIn(directory);
  try {
    database.run("pragma busy_timeout = 0");
    database.run("begin exclusive");
  } catch (cause) {
    database.close();
    if (!(cause as { code?: string }).code?.startsWith("SQLITE_BUSY")) throw cause;
    throw new Conflict(describe(file), { cause });
  }
  writeFileSync(`${file}.new`, `${JSON.stringify({ pid: process.pid, url } satisfies Running)}\n`);
  renameSync(`${file}.new`, file);
  return {
    [Symbol.dispose]() {
      rmSync(file, { force: true });
      database.close();
    },
  };
}

function openIn(directory: string): Database {
  try {
    mkdirSync(directory, { recursive: true });
    return new Database(join(directory, "lock.db"));
  } catch (cause) {
    const reason = `${directory} cannot be written (${(cause as { code?: string }).code})`;
    throw new SvcError("configuration", `${reason}: choose another folder with --data-dir`, { cause });
  }
}

function describe(file: string): string {
  try {
    const { pid, url } = JSON.parse(readFileSync(file, "utf8")) as Running;
    return `svc is already running here: pid ${pid}, ${url}. Nothing was changed; stop it with Ctrl-C in its terminal, or kill ${pid}`;
  } catch {
    return "Another svc up is just starting or stopping here. Nothing was changed; try again in a moment";
  }
}
