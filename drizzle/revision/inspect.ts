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
}

/** All revisions of the release and those known only to the database, newest first. */
export async function history(url?: string): Promise<HistoryEntry[]> {
  const known = inOrder(await readRevisions());
  const applied = url === undefined ? undefined : await appliedOf(url);
  const ours = new Set(known.map(({ id }) => id));
  const foreign = (applied ?? []).filter(({ id }) => !ours.has(id));
  return [...known, ...foreign].reverse().map(({ id, parents, manifest }) => {
    const row = applied?.find((one) => one.id === id);
    return {
      id,
      parents,
      message: manifest.message ?? "",
      ...(applied ? { appliedAt: row?.appliedAt ?? null, state: row?.state } : {}),
      unknown: !ours.has(id),
      createdAt: manifest.created_at ?? "",
      compatible: manifest.compatible === true,
      transactional: manifest.transactional !== false,
      irreversible: manifest.irreversible === true,
    };
  });
}

async function appliedOf(url: string): Promise<Applied[]> {
  return ask(url, async (sql) => (await readApplied(sql)) ?? []);
}
