import { sql } from "drizzle-orm";
import { Conflict } from "../../platform/errors.ts";
import type { Database } from "../client.ts";
import { headsOf, type Revision, readRevisions } from "./history.ts";
import { withParents } from "./plan.ts";
import { type Applied, toApplied } from "./store.ts";

/**
 * How the database's schema suits this release. Good: `ok`; `ahead` (a newer release has upgraded, by revisions that
 * leave us working). Bad: `behind`; `newer` (by revisions that do not); `heads` (several lines of revisions that
 * nobody has joined).
 */
export type SchemaState = "ok" | "ahead" | "behind" | "newer" | "heads";

export interface SchemaStatus {
  state: SchemaState;
  /** Heads of what is applied; empty for a database without our schema. */
  current: string[];
  /** Heads of what this program knows. */
  head: string[];
  /** Begun by a statement without a transaction, and not ended: it runs, or was interrupted. */
  interrupted: { id: string; state: "applying" | "reverting" }[];
}

/** Compares the applied revisions with those this program was built for. @throws when the database does not answer */
export async function schemaStatus(db: Database): Promise<SchemaStatus> {
  const [known, applied] = await Promise.all([thisRelease(), readAppliedBy(db)]);
  return compareRevisions(known, applied);
}

let release: Promise<Revision[]> | undefined;

/** Read once: a process does not change its release, and balancers ask for its health every second. */
function thisRelease(): Promise<Revision[]> {
  release ??= readRevisions();
  return release;
}

/**
 * A revision that runs without a transaction counts as soon as it has ended. Servers of the release before go on while
 * an index is built concurrently: that is what it is for.
 */
export function compareRevisions(known: readonly Revision[], rows: readonly Applied[]): SchemaStatus {
  const ours = new Map(known.map((revision) => [revision.id, revision]));
  const applied = rows.filter(({ state }) => state === "applied");
  const there = new Set(applied.map(({ id }) => id));
  const current = headsOf(withParents(known, applied));
  const head = headsOf(known);
  const interrupted = rows.flatMap(({ id, state }) => (state === "applied" ? [] : [{ id, state }]));
  const answer = (state: SchemaState): SchemaStatus => ({ state, current, head, interrupted });
  const unknown = rows.filter(({ id, state }) => !ours.has(id) && state !== "reverting");
  if (unknown.some(({ manifest }) => !manifest.compatible)) return answer("newer");
  if (known.some(({ id }) => !there.has(id))) return answer("behind");
  if (current.length > 1) return answer("heads");
  return answer(unknown.length === 0 ? "ok" : "ahead");
}

/**
 * For a process that is about to serve: it must not meet tables that it does not know.
 * @throws Conflict that names the command which mends it
 */
export function assertServable({ state, current, head }: SchemaStatus): void {
  const at = current.join(", ") || "base";
  switch (state) {
    case "ok":
    case "ahead":
      return;
    case "behind":
      throw new Conflict(
        `The schema is behind: it is at ${at}, this release needs ${head.join(", ")}. Run: svc database upgrade`,
      );
    case "heads":
      throw new Conflict(
        `The schema has several heads: ${at}. Join them (svc database merge), then run: svc database upgrade`,
      );
    case "newer":
      throw new Conflict(
        `The schema is newer than this release: it is at ${at}, this release knows ${head.join(", ")}. Run the newer release, or go back with: svc database downgrade`,
      );
  }
}

async function readAppliedBy(db: Database): Promise<Applied[]> {
  const [table] = await db.execute(sql`select to_regclass('public.revision') is not null as exists`);
  if (!table?.exists) return [];
  const rows = await db.execute<{ row: string }>(
    // Without the way back, which is most of it and says nothing here.
    sql`select (to_jsonb(r) || '{"down_sql": ""}')::text as row from public.revision r`,
  );
  return rows.map(({ row }) => toApplied(JSON.parse(row)));
}
