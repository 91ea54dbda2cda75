import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Database } from "../../../drizzle/client.ts";

const at = new Date("2026-11-20T12:00:00Z");

type Table = PgTable & { id: PgColumn };
type Written<T extends Table> = Omit<T["$inferInsert"], "createdAt" | "updatedAt">;

/** Inserts a row without the API, and returns its id. */
export async function insertRow<T extends Table>(
  db: Database,
  table: T,
  values: Written<T>,
): Promise<number> {
  const [row] = await db
    .insert<Table>(table)
    .values({ ...values, createdAt: at, updatedAt: at })
    .returning({ id: table.id });
  return (row as { id: number }).id;
}
