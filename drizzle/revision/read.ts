import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SvcError } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";

/** Written into the single executable by scripts/build.ts, which has no source tree to read. */
declare const SVC_REVISIONS: Revision[] | undefined;

/** The revisions that the single executable was built with; undefined where there is the source tree. */
const builtInRevisions = typeof SVC_REVISIONS === "undefined" ? undefined : SVC_REVISIONS;

/** What stands in a revision's manifest.json, and beside it in the database once it is applied. */
export interface Manifest {
  /** What it does, in a few words. */
  message: string;
  /** ISO 8601. */
  created_at: string;
  /** The revisions it follows: none for the first, several for a merge. */
  parents: string[];
  /** Whether the release before it works on the schema with it, so that a rolling release need not stop. */
  compatible: boolean;
  /** false: up.sql is one statement that cannot run in a transaction. The mark in the SQL says the same. */
  transactional: boolean;
  /** true: there is no way back. The mark in down.sql says the same, and why. */
  irreversible: boolean;
  /** SHA-256 of the SQL as it was generated, hex: tells whether a person has changed it since. */
  checksums: { up: string; down: string };
}

/** A step of the schema: a folder in drizzle/revisions (database.md). */
export interface Revision {
  /** The folder's name: sorts by time, unique. */
  id: string;
  parents: string[];
  up: string;
  down: string;
  /** SHA-256 of up.sql and down.sql, hex. What is applied must stay what it was. */
  checksum: string;
  manifest: Manifest;
}

/** drizzle/revisions of the source tree. */
export const revisionsDirectory = join(import.meta.dir, "../revisions");

/**
 * The revisions that this release knows, by id.
 * @throws SvcError `configuration` for a folder that lacks a file or has a manifest that is none
 */
export async function readRevisions(): Promise<Revision[]> {
  return builtInRevisions ?? readRevisionsFrom(revisionsDirectory);
}

export async function readRevisionsFrom(directory: string): Promise<Revision[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  // What an editor or a system leaves behind (.DS_Store, .old) is no revision.
  const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
  const ids = folders.map(({ name }) => name).sort();
  return Promise.all(ids.map((id) => readRevision(directory, id)));
}

async function readRevision(directory: string, id: string): Promise<Revision> {
  const text = async (file: string) => {
    const content = await readFile(join(directory, id, file), "utf8").catch((cause: unknown) => {
      throw new SvcError("configuration", `Revision ${id} has no ${file} that can be read`, { cause });
    });
    // git may write other ends of lines, and an editor a mark of byte order; they change nothing.
    return content.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  };
  const [up, down, json] = await Promise.all([text("up.sql"), text("down.sql"), text("manifest.json")]);
  const manifest = parseManifest(id, json, up, down);
  return { id, parents: manifest.parents, up, down, checksum: checksumOf(up, down), manifest };
}

function parseManifest(id: string, json: string, up: string, down: string): Manifest {
  const fail = (what: string) => new SvcError("configuration", `manifest.json of revision ${id} ${what}`);
  let read: Partial<Manifest>;
  try {
    read = JSON.parse(json) as Partial<Manifest>;
  } catch {
    throw fail("is not JSON");
  }
  const { parents } = read ?? {};
  if (!Array.isArray(parents) || parents.some((parent) => typeof parent !== "string")) {
    throw fail("has no list of parents");
  }
  return {
    message: read.message ?? "",
    created_at: read.created_at ?? "",
    parents,
    compatible: read.compatible === true,
    transactional: read.transactional !== false,
    irreversible: read.irreversible === true,
    checksums: read.checksums ?? { up: sha256Hex(up), down: sha256Hex(down) },
  };
}

export function checksumOf(up: string, down: string): string {
  return new Bun.CryptoHasher("sha256").update(up).update("\0").update(down).digest("hex");
}
