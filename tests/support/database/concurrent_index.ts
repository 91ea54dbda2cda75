import { openSql, type Sql } from "../../../drizzle/client.ts";
import { testRevision } from "./revision.ts";

// A table, and a revision without a transaction, which creates an index of it.

export const table = testRevision("1", [], "create table a (id int)", "drop table a;");
export const concurrent = testRevision(
  "2",
  ["1"],
  "-- svc: no-transaction\ncreate index concurrently a_idx on a (id);",
  "-- svc: no-transaction\ndrop index concurrently a_idx;",
);
export const known = [table, concurrent];

/** Undefined if there is no such index. */
export const isValid = async (sql: Sql, name: string) =>
  (await sql`select indisvalid as valid from pg_index where indexrelid = to_regclass(${name})`)[0]?.valid;

/** A connection that is closed at the end of its block. */
export function closing(url: string) {
  const client = openSql(url, { max: 1 });
  return { client, [Symbol.asyncDispose]: () => client.end() };
}
