import { type SQL, sql } from "drizzle-orm";
import {
  bigint,
  type ExtraConfigColumn,
  foreignKey,
  index,
  integer,
  type PgColumn,
} from "drizzle-orm/pg-core";
import { instant } from "./types.ts";

// Shared by the tables of the incident domain. Rules for these tables:
// - A record's parts are deleted with it (cascade); a record that is merely referenced cannot be deleted (restrict).
// - States are text with a check instead of an enum type: adding a value is one revision that older releases tolerate.
// - No check compares two times: they come from the clocks of several machines, and a few milliseconds of difference
//   must not prevent an incident from being closed.
// - No default is now(): it has microseconds, which a page's cursor (milliseconds, as in JavaScript) would skip over.

export const id = () => bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity();

/** A column that holds the `id` of another record. */
export const idOf = (name: string) => bigint(name, { mode: "number" });

/** The same for the record that this one is a part of, and is deleted with. */
export const partOf = (name: string, whole: () => PgColumn) =>
  idOf(name).notNull().references(whole, { onDelete: "cascade" });

/** The same for a record that cannot be deleted while this one refers to it. */
export const referenceTo = (name: string, other: () => PgColumn) =>
  idOf(name).notNull().references(other, { onDelete: "restrict" });

/** The foreign key of such a record, where the name that drizzle gives would exceed 63 bytes. */
export const namedReference = (name: string, column: PgColumn, other: PgColumn) =>
  foreignKey({ name, columns: [column], foreignColumns: [other] }).onDelete("restrict");

/** The number of ids in a block, as a power of two. */
export const blockBits = 12;

/**
 * The block of ids that contains a record, for a GIN index. Together with words, it lets the index return only the
 * matches in some blocks: listing all matches of a common word takes longer the more there are.
 */
export const blockOf = (ofRecord: PgColumn | ExtraConfigColumn): SQL =>
  sql`(array[${ofRecord} >> ${sql.raw(String(blockBits))}])`;

/**
 * The index of the words in a table that grows large. Otherwise, PostgreSQL collects up to 4 MB of new entries in a list
 * (`fastupdate`) that each search reads completely, once for each word and block.
 */
export const wordIndex = (name: string, { search, id }: Record<"search" | "id", ExtraConfigColumn>) =>
  index(name).using("gin", search, blockOf(id)).with({ fastupdate: false });

/** A word that no text contains, among those of a Restricted incident's records (drizzle/triggers). */
export const restrictedMark = "~restricted";

/** Whether a record's words are without that mark, for an index of the words that everybody may find. */
export const isUnmarked = (search: PgColumn | ExtraConfigColumn): SQL =>
  sql`not (${search} @@ ${sql.raw(`'''${restrictedMark}'''::tsquery`)})`;

/** For records that a PUT replaces: it names the version it is based on, and each change increments it. */
export const editable = () => ({
  version: integer("version").notNull().default(1),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

/**
 * A check that allows only times with which JavaScript can compute: of the years 100 to 9999, like `parseInstant`. For
 * times with which work begins, so that a row written by hand cannot stop it.
 */
export function withinYears(...columns: string[]): SQL {
  const years = columns.map((name) => `extract(year from ${name} at time zone 'UTC')`);
  // Not BETWEEN: PostgreSQL prints several of them otherwise once they were dumped and restored, which looks like drift.
  return sql.raw(years.flatMap((year) => [`${year} >= 100`, `${year} <= 9999`]).join(" and "));
}

/** A check that allows only these values; null passes, as always in SQL. */
export function oneOf(column: string, values: readonly string[]): SQL {
  return sql.raw(`${column} in (${values.map((value) => `'${value}'`).join(", ")})`);
}
