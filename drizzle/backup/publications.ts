import { literal } from "../sql_text.ts";
import type { Runner } from "./inventory.ts";

/** The tables and schemas that publications name. */
const members = `
  select p.pubname as name, format('alter publication %I add table only %I.%I', p.pubname, n.nspname, c.relname)
      || coalesce(' (' || (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum = any(r.prattrs)) || ')', '')
      || coalesce(' where (' || pg_get_expr(r.prqual, r.prrelid) || ')', '') as statement
    from pg_publication_rel r join pg_publication p on p.oid = r.prpubid
      join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace
  union all
  select p.pubname, format('alter publication %I add tables in schema %I', p.pubname, n.nspname)
    from pg_publication_namespace r join pg_publication p on p.oid = r.pnpubid join pg_namespace n on n.oid = r.pnnspid`;

/**
 * Publications, which no backup contains, lose each table that is replaced.
 * @returns adds the new tables of the same names, after their rows have been loaded
 */
export async function rememberPublications(
  sql: Runner,
  notice?: (message: string) => void,
): Promise<() => Promise<void>> {
  const before = await sql.unsafe(members);
  return async () => {
    const there = new Set((await sql.unsafe(members)).map(({ statement }) => statement));
    const lost = before.filter(({ statement }) => !there.has(statement));
    for (const { name, statement } of lost) {
      const error = await tryStatement(sql, statement);
      if (error) notice?.(`the publication ${name} has lost a table: ${error}: ${statement}`);
    }
    for (const name of new Set(lost.map((one) => one.name)))
      notice?.(
        `the subscribers of the publication ${name} still have the rows from before: subscribe them again`,
      );
  };
}

/**
 * Runs a statement on the server, where an error does not abort the transaction. (postgres.js fails a transaction of
 * which a query has failed, even if a savepoint was rolled back.)
 *
 * @returns PostgreSQL's message if it failed
 */
async function tryStatement(sql: Runner, statement: string): Promise<string> {
  await sql.unsafe(`do $svc_try$ begin
    perform set_config('svc.error', '', true);
    execute ${literal(statement)};
  exception when others then perform set_config('svc.error', sqlerrm, true);
  end $svc_try$`);
  const [row] = await sql.unsafe("select current_setting('svc.error') as error");
  return row!.error;
}
