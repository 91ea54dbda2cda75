import { sql } from "drizzle-orm";
import type { Database } from "../../drizzle/client.ts";
import { headsOf } from "./graph.ts";
import { readRevisions } from "./read.ts";

export interface SchemaStatus {
  /** Heads of what is applied; empty for a database without our schema. */
  current: string[];
  /** Heads of what this program knows. */
  head: string[];
  atHead: boolean;
}

/** Compares the applied revisions with those this program was built for. @throws when the database does not answer */
export async function schemaStatus(db: Database): Promise<SchemaStatus> {
  const { revisions } = await readRevisions();
  const [exists] = await db.execute(sql`select to_regclass('revision') is not null as yes`);
  const rows = exists?.yes ? await db.execute<{ id: string }>(sql`select id from revision order by id`) : [];
  const applied = new Set(rows.map((row) => row.id));
  const current = headsOf(revisions.filter(({ id }) => applied.has(id)));
  const unknown = [...applied].filter((id) => !revisions.some((revision) => revision.id === id));
  const head = headsOf(revisions);
  return {
    current: [...current, ...unknown],
    head,
    atHead: unknown.length === 0 && revisions.every(({ id }) => applied.has(id)),
  };
}
