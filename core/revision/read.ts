import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** A step of the schema: a folder in drizzle/revisions (database.md). */
export interface Revision {
  /** The folder's name: sorts by time, unique. */
  id: string;
  parents: string[];
  up: string;
  down: string;
  /** SHA-256 of up.sql and down.sql, hex. */
  checksum: string;
}

/** What the program knows of the schema: the graph of revisions, and SQL that is repeated after each change. */
export interface Revisions {
  revisions: Revision[];
  /** Idempotent SQL, by file name. */
  triggers: { name: string; sql: string }[];
}

interface Manifest {
  parents: string[];
}

/** Written into the single executable by scripts/build.ts, which has no source tree to read. */
declare const SVC_REVISIONS: Revisions | undefined;

const root = join(import.meta.dir, "../../drizzle");

/** Reads drizzle/revisions and drizzle/triggers, or what the executable was built with. */
export async function readRevisions(): Promise<Revisions> {
  return typeof SVC_REVISIONS === "undefined" ? readRevisionsFrom(root) : SVC_REVISIONS;
}

/** @throws when a folder lacks up.sql, down.sql or manifest.json */
export async function readRevisionsFrom(directory: string): Promise<Revisions> {
  const folders = await readdir(join(directory, "revisions"), { withFileTypes: true });
  const ids = folders.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const revisions = await Promise.all(
    ids.sort().map(async (id): Promise<Revision> => {
      const text = (file: string) => readFile(join(directory, "revisions", id, file), "utf8");
      const [up, down, manifest] = await Promise.all([
        text("up.sql"),
        text("down.sql"),
        text("manifest.json"),
      ]);
      const { parents } = JSON.parse(manifest) as Manifest;
      return { id, parents, up, down, checksum: checksumOf(up, down) };
    }),
  );
  const files = (await readdir(join(directory, "triggers"))).filter((name) => name.endsWith(".sql"));
  const triggers = await Promise.all(
    files
      .sort()
      .map(async (name) => ({ name, sql: await readFile(join(directory, "triggers", name), "utf8") })),
  );
  return { revisions, triggers };
}

function checksumOf(up: string, down: string): string {
  return new Bun.CryptoHasher("sha256").update(up).update("\0").update(down).digest("hex");
}
