import { sha256Hex } from "../../platform/secret.ts";
import { inOrder, readRevisions } from "./history.ts";
import { ask } from "./session.ts";
import { compareRevisions, type SchemaStatus } from "./status.ts";
import { type Applied, readApplied } from "./store.ts";

/** Compares a database's schema with this release. @throws Unavailable when PostgreSQL does not answer or refuses us */
export async function inspectDatabase(url: string): Promise<SchemaStatus> {
  const [known, applied] = await Promise.all([readRevisions(), appliedOf(url)]);
  return compareRevisions(known, applied);
}

/** One revision in the history. */
export interface HistoryEntry {
  id: string;
  parents: string[];
  message: string;
  /** null: not applied. undefined: no database was queried. */
  appliedAt?: Date | null;
  state?: Applied["state"];
  /** Known only to the database. */
  unknown: boolean;
  createdAt: string;
  compatible: boolean;
  transactional: boolean;
  irreversible: boolean;
  /** Whether a person has edited the SQL since it was generated. */
  edited: boolean;
}

/** All revisions of the release and those known only to the database, newest first. */
export async function history(url?: string): Promise<HistoryEntry[]> {
  const known = inOrder(await readRevisions()).reverse();
  const applied = url === undefined ? undefined : await appliedOf(url);
  const entries = known.map((revision) => {
    const { up, down, manifest } = revision;
    const row = applied?.find(({ id }) => id === revision.id);
    const edited = manifest.checksums.up !== sha256Hex(up) || manifest.checksums.down !== sha256Hex(down);
    const when = applied ? { appliedAt: row?.appliedAt ?? null, state: row?.state } : {};
    return entryOf(revision, { ...when, unknown: false, edited });
  });
  const foreign = (applied ?? [])
    .filter(({ id }) => !known.some((revision) => revision.id === id))
    .map((row) => {
      const { appliedAt, state } = row;
      return entryOf(row, { appliedAt, state, unknown: true, edited: false });
    });
  return [...foreign.reverse(), ...entries];
}

function entryOf(
  { id, parents, manifest }: Pick<Applied, "id" | "parents" | "manifest">,
  { unknown, edited, ...when }: Pick<HistoryEntry, "appliedAt" | "state" | "unknown" | "edited">,
): HistoryEntry {
  return {
    id,
    parents,
    message: manifest.message ?? "",
    ...when,
    unknown,
    createdAt: manifest.created_at ?? "",
    compatible: manifest.compatible === true,
    transactional: manifest.transactional !== false,
    irreversible: manifest.irreversible === true,
    edited,
  };
}

async function appliedOf(url: string): Promise<Applied[]> {
  return ask(url, async (sql) => (await readApplied(sql)) ?? []);
}
