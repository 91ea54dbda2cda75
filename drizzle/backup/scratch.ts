import { Conflict } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import type { Sql } from "../client.ts";
import { errorCode } from "../database_error.ts";
import { canonicalSchema } from "../revision/canonical.ts";
import type { Revision } from "../revision/history.ts";
import { ask } from "../revision/session.ts";
import { installTriggers } from "../revision/triggers.ts";
import { literal, quoted } from "../sql_text.ts";
import type { Runner } from "./inventory.ts";
import { makeTables } from "./restore_portable.ts";

/** A temporary database next to the live one, for trying a backup. */
interface Scratch {
  url: string;
  drop(): Promise<void>;
}

/**
 * Creates the database on the server of `sql`, with the same encoding and collation. A killed restore leaves it behind,
 * and the next restore of the same database drops it: the caller holds the schema change lock.
 *
 * @returns undefined when this user may not create a database
 * @throws Conflict when a database of that name is not ours, and not empty
 */
export async function createScratch(sql: Sql, url: string): Promise<Scratch | undefined> {
  const [live] = await sql.unsafe(`
    select datname as name, pg_encoding_to_char(encoding) as encoding, datcollate as collate, datctype as ctype
    from pg_database where datname = current_database()`);
  const name = `svc_restore_${sha256Hex(live!.name).slice(0, 16)}`;
  const mark = `svc database restore tries a backup of ${live!.name} here`;
  const [left] = await sql.unsafe(
    "select shobj_description(oid, 'pg_database') as mark from pg_database where datname = $1",
    [name],
  );
  const scratchUrl = Object.assign(new URL(url), { pathname: `/${name}` }).href;
  // A process that is killed while creating the database leaves one without a mark.
  if (left && left.mark !== mark && !(await isEmpty(scratchUrl))) {
    throw new Conflict(
      `The database ${name} is in the way: svc database restore needs that name, so drop or rename it`,
    );
  }
  // Uses a separate connection, because the caller's is cut when the restore is stopped.
  const drop = async () => {
    await ask(url, (own) => own.unsafe(`drop database if exists ${quoted(name)} with (force)`));
  };
  if (left) await drop();
  try {
    await sql.unsafe(
      `create database ${quoted(name)} template template0 encoding ${literal(live!.encoding)} lc_collate ${literal(live!.collate)} lc_ctype ${literal(live!.ctype)}`,
    );
  } catch (error) {
    if (errorCode(error) === "42501") return undefined;
    throw error;
  }
  await sql.unsafe(`comment on database ${quoted(name)} is ${literal(mark)}`);
  return { url: scratchUrl, drop };
}

/** Whether a database contains only what PostgreSQL creates by default. */
async function isEmpty(url: string): Promise<boolean> {
  return ask(url, async (sql) => {
    const firstOwnOid = 16_384;
    const [row] = await sql.unsafe(`
      select not exists (select from pg_class where oid >= ${firstOwnOid})
        and not exists (select from pg_proc where oid >= ${firstOwnOid})
        and not exists (select from pg_type where oid >= ${firstOwnOid})
        and not exists (select from pg_namespace where oid >= ${firstOwnOid}) as yes`);
    return row!.yes;
  });
}

/** The schema that all revisions create in an empty database, which stays empty. */
export async function schemaOf(sql: Sql, known: readonly Revision[]): Promise<Set<string>> {
  let lines = new Set<string>();
  const undo = new Error("rolled back on purpose");
  const make = async (transaction: Runner) => {
    await makeTables(transaction, known, known);
    await installTriggers(transaction);
    lines = await linesOf(transaction);
    throw undo;
  };
  await sql.begin(make).catch((error) => {
    if (error !== undo) throw error;
  });
  return lines;
}

/** The schema of a database, one line per object. */
export async function linesOf(sql: Runner): Promise<Set<string>> {
  return new Set((await canonicalSchema(sql as Sql)).split("\n").filter(Boolean));
}
