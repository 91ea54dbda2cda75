import { connected, literal, readHandle, type Sql, type Target } from "./target.ts";

// What may outlive a lease although its role is gone: what its user did as a parent, after SET ROLE or as a member of the
// owner. PostgreSQL records only that the parent did it, so the user may not be its author.

/** The objects that are listed at most. */
const mostObjects = 20;

/**
 * Lists what changed under the parents, and the roles that they are members of, since the lease was issued: new objects,
 * functions, triggers, rules and policies; altered tables and views; and their prepared transactions and replication slots,
 * whenever they began. Only an event trigger, which needs a superuser, could tell what was dropped.
 *
 * @param handle of an earlier release: nothing is known
 */
export async function listLeft(
  sql: Sql,
  target: Target,
  handle: string | undefined,
  signal: AbortSignal,
): Promise<string[]> {
  const { xid } = readHandle(handle);
  const theirs = rolesOf(target.parents);
  const others = await sql.unsafe<{ what: string }[]>(`
    with theirs as (${theirs})
    select format('prepared transaction %L of %s in %s', gid, owner, database) as what from pg_prepared_xacts
    where owner in (select rolname from theirs)
    union all select format('replication slot %I', slot_name) from pg_replication_slots
    where exists (select from theirs where rolreplication)
    order by what limit ${mostObjects}`);
  const left = others.map(({ what }) => what);
  if (xid === undefined) return left;
  const since = `age(${literal(xid)}::xid8::xid)`;
  const databases = await sql.unsafe<{ name: string }[]>(`
    with theirs as (${theirs})
    select datname as name from pg_database where datname = current_database() or datallowconn and oid in (
      select dbid from pg_shdepend where refclassid = 'pg_authid'::regclass and deptype = 'o'
        and refobjid in (select oid from theirs) and age(xmin) <= ${since})`);
  for (const { name } of databases) {
    const list = async (there: Sql) => {
      const rows = await there.unsafe<{ what: string }[]>(`
        with theirs as materialized (${theirs}), changed as (
          select classid, objid, refobjid as owner from pg_shdepend where refclassid = 'pg_authid'::regclass
            and deptype = 'o' and dbid = (select oid from pg_database where datname = current_database())
            and refobjid in (select oid from theirs) and age(xmin) <= ${since}
          union select 'pg_proc'::regclass, oid, proowner from pg_proc where age(xmin) <= ${since}
          union select 'pg_trigger'::regclass, t.oid, relowner from pg_trigger t join pg_class c on c.oid = tgrelid
            where age(t.xmin) <= ${since} and not tgisinternal
          union select 'pg_rewrite'::regclass, r.oid, relowner from pg_rewrite r join pg_class c on c.oid = ev_class
            where age(r.xmin) <= ${since} and rulename <> '_RETURN'
          union select 'pg_policy'::regclass, p.oid, relowner from pg_policy p join pg_class c on c.oid = polrelid
            where age(p.xmin) <= ${since}
        ), altered as (
          -- VACUUM, ANALYZE and CREATE INDEX do not change xmin here, but TRUNCATE does.
          select 'pg_class'::regclass::oid, oid, relowner from pg_class c
          where relowner in (select oid from theirs) and relkind in ('r', 'p', 'v', 'm', 'f') and (age(xmin) <= ${since}
            or exists (select from pg_attribute where attrelid = c.oid and age(xmin) <= ${since})
            or exists (select from pg_attrdef where adrelid = c.oid and age(xmin) <= ${since})
            or exists (select from pg_constraint where conrelid = c.oid and age(xmin) <= ${since})
            or exists (select from pg_rewrite where ev_class = c.oid and age(xmin) <= ${since})))
        select format('%s of %s in %s', pg_describe_object(classid, objid, 0), rolname, current_database()) as what
        from (select *, 1 as rank from changed union all (select *, 2 from altered except select *, 2 from changed)) as all_of_them
        join theirs on theirs.oid = owner order by rank, what limit ${mostObjects}`);
      left.push(...rows.map(({ what }) => what));
    };
    await (name === target.database ? list(sql) : connected(target, signal, list, name));
  }
  return left.map((what) => what.slice(0, 300)).slice(0, mostObjects);
}

/** A query for the roles that a member of the parents can become by SET ROLE. */
export const rolesOf = (parents: string[]) => `
  select r.* from pg_roles r where exists (
    select from pg_roles p where p.rolname in (${parents.map(literal).join(", ")}) and pg_has_role(p.oid, r.oid, 'member')
      -- A superuser is a member of all roles.
      and (not p.rolsuper or p.oid = r.oid))`;
