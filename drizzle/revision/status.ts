import { sql } from "drizzle-orm";
import { Conflict } from "../../platform/errors.ts";
import type { Database } from "../client.ts";
import { headsOf, type Revision, readRevisions } from "./history.ts";
import { withParents } from "./plan.ts";
import { type Applied, toApplied } from "./store.ts";

/**
 * How the database's schema compares with this release. Good: `ok`; `ahead` (a newer release has upgraded, with
 * compatible revisions). Bad: `behind`; `newer` (with incompatible revisions); `heads` (several unmerged lines of
 * revisions).
 */
type SchemaState = "ok" | "ahead" | "behind" | "newer" | "heads";

export interface SchemaStatus {
  state: SchemaState;
  /** Heads of the applied revisions; empty for a database without our schema. */
  current: string[];
  /** Heads of the revisions that this program knows. */
  head: string[];
  /** Non-transactional steps that have started but not ended: running, or interrupted. */
  interrupted: { id: string; state: "applying" | "reverting" }[];
}

/** Compares the applied revisions with those this program was built for. @throws when the database does not answer */
export async function schemaStatus(db: Database): Promise<SchemaStatus> {
  const [known, applied] = await Promise.all([thisRelease(), readAppliedBy(db)]);
  return compareRevisions(known, applied);
}

let release: Promise<Revision[]> | undefined;

/** Cached: a process never changes its release, and load balancers check its health every second. */
function thisRelease(): Promise<Revision[]> {
  release ??= readRevisions();
  return release;
}

/**
 * A non-transactional revision counts only once it has ended. Servers of the previous release keep working while an
 * index is built concurrently, which is the point of doing so.
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
 * Checks that a process which is about to serve knows all tables.
 * @throws Conflict naming the command that fixes it
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
    // Without the down SQL, which is most of the row and not needed here.
    sql`select (to_jsonb(r) || '{"down_sql": ""}')::text as row from public.revision r`,
  );
  return rows.map(({ row }) => toApplied(JSON.parse(row)));
}
