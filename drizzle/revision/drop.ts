import { Conflict } from "../../platform/errors.ts";
import { placeOf } from "../connection/address.ts";
import type { Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { literal } from "../sql_text.ts";
import { type LockOptions, withLock } from "./lock.ts";
import { ask } from "./session.ts";
import { whenFree } from "./step.ts";

/** Describes a database to a person who has to confirm that it is the right one. */
export interface DatabaseDescription {
  name: string;
  /** Host and port. */
  where: string;
  /** Tables that would be removed; a partition goes with its table. */
  tables: number;
  /** Tables, and everything else that would be removed. */
  objects: number;
  /** Other sessions connected now. */
  sessions: number;
}

/** @throws Unavailable when PostgreSQL does not answer or refuses us */
export async function describeDatabase(
  url: string,
  what?: (sql: Sql) => Promise<ToDrop>,
): Promise<DatabaseDescription> {
  return ask(url, async (sql) => {
    const [row] = await sql`
      select current_database() as name,
        (select count(*)::int from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend') as sessions`;
    const objects = await objectsIn(sql, await what?.(sql));
    const place = placeOf(url);
    return {
      name: String(row?.name),
      where: place === undefined ? "this machine" : `${place.host}:${place.port}`,
      tables: objects.filter(({ kind }) => kind === "table").length,
      objects: objects.length,
      sessions: Number(row?.sessions),
    };
  });
}

/** Drops everything in our schemas except what extensions own. @returns the number of tables dropped */
export async function dropAll(options: Pick<LockOptions, "url" | "patience" | "notice">): Promise<number> {
  return withLock({ ...options, purpose: "svc database drop" }, async (sql) => {
    let tables = 0;
    await whenFree("drop", options.notice, () =>
      sql.begin(async (transaction) => {
        tables = await dropEverything(transaction);
      }),
    );
    return tables;
  });
}

/** An object of a database: its kind as PostgreSQL calls it, and its bare name. */
export interface DatabaseObject {
  kind: string;
  schema: string;
  name: string;
}

/** What is dropped: in these schemas (`public`), what belongs to svc (everything). */
export interface ToDrop {
  schemas?: readonly string[];
  isOwn?: (object: DatabaseObject) => boolean;
}

interface Droppable extends DatabaseObject {
  /** For SQL. */
  identity: string;
  description: string;
}

/**
 * The objects of every kind in these schemas, except those that go with another one (partitions, sequences of a column)
 * or belong to an extension; and the schemas themselves, except `public` and those that contain an extension.
 */
async function objectsIn(
  sql: Pick<Sql, "unsafe">,
  { schemas = ["public"], isOwn = () => true }: ToDrop = {},
): Promise<Droppable[]> {
  const rows = await sql.unsafe(`
  with space as (
    select oid, nspname from pg_namespace where nspname in (${schemas.map(literal).join(", ")})
  ), own as (
    select nspname, d.classid, d.objid from space join pg_depend d
      on d.refclassid = 'pg_namespace'::regclass and d.refobjid = space.oid and d.deptype = 'n'
    where d.classid <> 'pg_extension'::regclass
    union all
    select nspname, 'pg_namespace'::regclass, oid from space where nspname <> 'public'
      and not exists (select from pg_extension where extnamespace = space.oid)
  )
  select type as kind, own.nspname as schema, identity, pg_describe_object(classid, objid, 0) as description,
    coalesce(proname, relname, typname, n.nspname, name) as name
  from own cross join lateral pg_identify_object(classid, objid, 0)
  left join pg_proc p on classid = 'pg_proc'::regclass and p.oid = objid
  left join pg_class c on classid = 'pg_class'::regclass and c.oid = objid
  left join pg_type t on classid = 'pg_type'::regclass and t.oid = objid
  left join pg_namespace n on classid = 'pg_namespace'::regclass and n.oid = objid
  where not exists (select from pg_depend d
    where d.classid = own.classid and d.objid = own.objid and d.objsubid = 0 and d.deptype in ('e', 'i', 'a'))
  order by type not like '%view'`);
  return (rows as unknown as Droppable[]).filter(isOwn);
}

/**
 * Drops object by object, since the schema itself may belong to another user, and never with CASCADE: if an object in
 * another schema depends on one of ours, the error names it and nothing is dropped. Tables are dropped together, as
 * they may reference one another, or else one by one, as a function between them may; the rest in as many rounds as
 * necessary.
 *
 * @throws Conflict naming the dependent object
 */
export async function dropEverything(sql: Pick<Sql, "unsafe">, what: ToDrop = {}): Promise<number> {
  const rows = await objectsIn(sql, what);
  const tables = rows.filter(({ kind }) => kind === "table").map(({ identity }) => identity);
  const each = rows.map(({ kind, identity }) => `${kind} if exists ${identity}`);
  const all = [...(tables.length > 0 ? [`table if exists ${tables.join(", ")}`] : []), ...each];
  if (all.length === 0) return 0;
  const descriptions = rows.map(({ description }) => description);
  try {
    await sql.unsafe(dropInRounds(all, descriptions));
  } catch (error) {
    if (errorCode(error) !== stillNeeded) throw error;
    const [reason] = (error as Error).message.split("\n");
    throw new Conflict(`Nothing was dropped: ${reason}`, { cause: error });
  }
  return tables.length;
}

/** dependent_objects_still_exist */
const stillNeeded = "2BP01";

/**
 * Runs on the server, where an expected error does not abort the transaction. Of the reasons why the last round dropped
 * nothing, it reports the first that is not about an object to be dropped as well. Tables and views come first, because
 * the reasons of the others are often the triggers and columns of a table that could not be dropped.
 */
function dropInRounds(all: readonly string[], descriptions: readonly string[]): string {
  return `do $svc_drop$
declare
  remaining text[] := array[${all.map(literal).join(", ")}];
  own text[] := array[${descriptions.map(literal).join(", ")}];
  kept text[];
  what text;
  reason text;
  reasons text[];
begin
  while cardinality(remaining) > 0 loop
    kept := '{}';
    reasons := '{}';
    foreach what in array remaining loop
      begin
        execute 'drop ' || what;
      exception when dependent_objects_still_exist then
        get stacked diagnostics reason = pg_exception_detail;
        kept := kept || what;
        reasons := reasons || string_to_array(reason, E'\\n');
      end;
    end loop;
    if cardinality(kept) = cardinality(remaining) then
      select line into reason from unnest(reasons) with ordinality as r (line, position)
        order by exists (select from unnest(own) as o where starts_with(line, o || ' ')), position limit 1;
      raise exception '%', reason using errcode = 'dependent_objects_still_exist';
    end if;
    remaining := kept;
  end loop;
end $svc_drop$`;
}
