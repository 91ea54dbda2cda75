import { type SQL, sql } from "drizzle-orm";
import { bigint, integer, type PgColumn } from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

// What the tables of the incident domain have in common. How rows hold together there:
// - What a record consists of goes with it (cascade); what it merely names stands in the way of being deleted (restrict).
// - States are text with a check and no enum type: a further value is one revision that older releases live with.
// - No check compares two times: they come from the clocks of several machines, and a few milliseconds between those
//   must not make an incident impossible to close.
// - No default is now(): it has microseconds, which a page's cursor (milliseconds, as in JavaScript) would step over.

export const id = () => bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity();

/** A column that holds the `id` of another record. */
export const idOf = (name: string) => bigint(name, { mode: "number" });

/** A block has so many ids, as a power of two. */
export const blockBits = 12;

/**
 * The block of ids that a record is in, as a GIN index takes it. Beside words it lets the index give the matches of some
 * blocks alone: to list all that have a common word takes longer the more there are.
 */
export const blockOf = (ofRecord: PgColumn): SQL =>
  sql`(array[${ofRecord} >> ${sql.raw(String(blockBits))}])`;

/** For records that a PUT replaces: it names the version that it has seen, and each change counts it up. */
export const editable = () => ({
  version: integer("version").notNull().default(1),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

/** The condition of a check: null passes, as everywhere in SQL. */
export function oneOf(column: string, values: readonly string[]): SQL {
  return sql.raw(`${column} in (${values.map((value) => `'${value}'`).join(", ")})`);
}
