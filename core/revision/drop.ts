import { openSql, type Sql } from "../../drizzle/sql.ts";
import { operatorsError } from "../database_error.ts";
import { whenFree } from "./apply.ts";
import { withLock } from "./lock.ts";

/** A database, for a person who is asked whether it is the right one. */
export interface DatabaseDescription {
  name: string;
  /** Host and port. */
  where: string;
  /** Tables of the schema `public`. */
  tables: number;
  /** Other sessions that use it now. */
  sessions: number;
}

/** @throws Unavailable when PostgreSQL does not answer or refuses us */
export async function describeDatabase(url: string): Promise<DatabaseDescription> {
  const sql = openSql(url, { max: 1, fetch_types: false });
  try {
    const [row] = await sql`
      select current_database() as name,
        (select count(*)::int from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')) as tables,
        (select count(*)::int from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend') as sessions`;
    const { hostname, port } = new URL(url);
    return {
      name: String(row?.name),
      where: `${hostname || "this machine"}${port ? `:${port}` : ""}`,
      tables: Number(row?.tables),
      sessions: Number(row?.sessions),
    };
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Drops everything in the schema `public` but what extensions own. @returns how many tables there were */
export async function dropAll(url: string): Promise<number> {
  return withLock({ url, purpose: "svc database drop" }, async (sql) => {
    let tables = 0;
    await whenFree("drop", undefined, () =>
      sql.begin(async (transaction) => {
        tables = await dropEverything(transaction);
      }),
    );
    return tables;
  });
}

/**
 * Object by object, since the schema itself may belong to somebody else. Tables first: what belongs to them goes with
 * them, and could not go before.
 */
export async function dropEverything(sql: Pick<Sql, "unsafe">): Promise<number> {
  const rows = await sql.unsafe(`
    with own as (
      select c.oid, 'pg_class'::regclass as catalog, c.relkind::text as kind, quote_ident(c.relname) as name
        from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      union all
      select p.oid, 'pg_proc'::regclass, 'function',
        quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')'
        from pg_proc p where p.pronamespace = 'public'::regnamespace
      union all
      select t.oid, 'pg_type'::regclass, case t.typtype when 'd' then 'domain' else 'type' end, quote_ident(t.typname)
        from pg_type t where t.typnamespace = 'public'::regnamespace and t.typtype in ('e', 'd', 'r')
    )
    select kind, name from own
    where not exists (select from pg_depend d where d.classid = own.catalog and d.objid = own.oid and d.deptype = 'e')
    order by array_position(array['r', 'p', 'f', 'v', 'm', 'S', 'function'], kind), name`);
  const words: Record<string, string> = {
    ...{ r: "table", p: "table", v: "view", m: "materialized view", S: "sequence", f: "foreign table" },
    ...{ function: "routine", domain: "domain", type: "type" },
  };
  // What goes with something before it is no longer there when its turn comes.
  const script = rows.map(
    ({ kind, name }) => `drop ${words[kind as string]} if exists public.${name} cascade`,
  );
  if (script.length > 0) await sql.unsafe(script.join(";\n"));
  return rows.filter(({ kind }) => kind === "r" || kind === "p").length;
}
