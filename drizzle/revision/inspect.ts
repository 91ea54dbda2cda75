import { InvalidInput } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import { descendantsOf, findRevision, headsOf, inOrder, readRevisions, withAncestors } from "./history.ts";
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

/**
 * The entries of an inclusive range `FROM:TO`. Either end may be omitted, and each may be `base`, `current`,
 * `current-N`, `-N` as a short form of that, or anything that `findRevision` accepts.
 * @throws InvalidInput `range`
 */
export function entriesIn(entries: readonly HistoryEntry[], range: string): HistoryEntry[] {
  const [from = "", to = "", ...more] = range.split(":");
  if (!range.includes(":") || more.length > 0) {
    throw new InvalidInput("range", `"${range}" is not a range: write FROM:TO, as ${range || "base"}:head`);
  }
  const after = from === "" || from === "base" ? [] : endsOf(entries, from);
  const before = to === "" ? [] : endsOf(entries, to);
  const isAfter = (id: string) =>
    after.length === 0 || after.some((end) => end === id || descendantsOf(entries, end).has(id));
  const isBefore = (id: string) => to === "" || before.some((end) => withAncestors(entries, end).has(id));
  return entries.filter(({ id }) => isAfter(id) && isBefore(id));
}

function endsOf(entries: readonly HistoryEntry[], name: string): string[] {
  if (name === "base") return [];
  // Like Alembic: `-2` means `current-2`.
  const [asked, steps = ""] = /^(?=.)(?:current)?([+-]\d+)?$/.exec(name) ?? [];
  if (asked === undefined) return [findRevision(entries, name).id];
  const heads = currentOf(entries);
  return steps === "" ? heads : heads.map((id) => findRevision(entries, id + steps).id);
}

/** The revisions that the database is at. @throws InvalidInput if no database was queried */
export function currentOf(entries: readonly HistoryEntry[]): string[] {
  if (entries.some(({ appliedAt }) => appliedAt === undefined)) {
    throw new InvalidInput("range", "Only a database knows what is current: set SVC_DATABASE_URL");
  }
  return headsOf(entries.filter(({ appliedAt }) => appliedAt !== null));
}

async function appliedOf(url: string): Promise<Applied[]> {
  return ask(url, async (sql) => (await readApplied(sql)) ?? []);
}
