import type { Sql } from "../connection/sql.ts";

/**
 * Returns the schema of a database as text for comparison: one sorted line per object, without details that do not
 * affect behaviour (oids, column order, names of NOT NULL constraints). Leaves out objects that belong to an extension
 * or to no schema, those that neither drizzle-kit nor svc creates (such as rules, aggregates, collations), and the engine's own
 * table `revision`.
 */
export async function canonicalSchema(sql: Sql): Promise<string> {
  const rows = await sql<{ line: string }[]>`
    with space as (
      select oid, case nspname when 'public' then '' else quote_ident(nspname) || '.' end as prefix, nspname
      from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
    ), of_extension as (
      select classid, objid from pg_depend where deptype = 'e'
    ), relation as (
      select c.*, s.prefix || quote_ident(c.relname) as name
      from pg_class c join space s on s.oid = c.relnamespace
      where not (c.relname = 'revision' and s.nspname = 'public')
        and ('pg_class'::regclass, c.oid) not in (select * from of_extension)
    ), type as (
      select t.*, s.prefix || quote_ident(t.typname) as name from pg_type t join space s on s.oid = t.typnamespace
      where ('pg_type'::regclass, t.oid) not in (select * from of_extension)
    ), routine as (
      select p.* from pg_proc p join space s on s.oid = p.pronamespace
      where ('pg_proc'::regclass, p.oid) not in (select * from of_extension)
    )
    select 'schema ' || nspname as line from space where nspname <> 'public'
    union all
    select case relkind when 'c' then 'composite type ' else 'table ' end || name
      || case relpersistence when 'u' then ' unlogged' else '' end
      || coalesce(' partition by ' || pg_get_partkeydef(oid), '')
      || coalesce(' inherits ' || (select string_agg(inhparent::regclass::text, ', ' order by inhseqno)
        from pg_inherits where inhrelid = relation.oid), '')
      || coalesce(' ' || pg_get_expr(relpartbound, oid), '')
      || case when relrowsecurity then ' row level security' else '' end
      || case when relforcerowsecurity then ' force row level security' else '' end
    from relation where relkind in ('r', 'p', 'c')
    union all
    select 'column ' || r.name || '.' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
      || case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation else '' end
      || case when a.attnotnull then ' not null' else '' end
      || case a.attidentity when 'a' then ' identity always' when 'd' then ' identity by default' else '' end
      || coalesce(case a.attgenerated when 's' then ' stored ' when 'v' then ' virtual ' else ' default ' end
        || pg_get_expr(d.adbin, d.adrelid), '')
    from pg_attribute a join relation r on r.oid = a.attrelid join pg_type t on t.oid = a.atttypid left join pg_attrdef d
      on d.adrelid = a.attrelid and d.adnum = a.attnum
    where r.relkind in ('r', 'p', 'c') and a.attnum > 0 and not a.attisdropped
    union all
    select 'constraint ' || r.name || ' ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
    from pg_constraint k join relation r on r.oid = k.conrelid where k.contype <> 'n'
    union all
    select 'index ' || pg_get_indexdef(i.indexrelid) || case when i.indisvalid then '' else ' invalid' end
    from pg_index i join relation r on r.oid = i.indrelid where r.relkind in ('r', 'p', 'm')
    union all
    select 'trigger ' || r.name || ' ' || pg_get_triggerdef(t.oid) || case t.tgenabled
      when 'D' then ' disabled' when 'R' then ' for replicas' when 'A' then ' always' else '' end
    from pg_trigger t join relation r on r.oid = t.tgrelid where not t.tgisinternal
    union all
    select 'policy ' || r.name || ' ' || quote_ident(p.polname) || ' ' || p.polcmd::text || ' ' || p.polpermissive::text
      || ' to ' || (select string_agg(coalesce(o.rolname, 'public'), ', ' order by o.rolname)
        from unnest(p.polroles) role left join pg_roles o on o.oid = role)
      || ' using ' || coalesce(pg_get_expr(p.polqual, p.polrelid), '-')
      || ' check ' || coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '-')
    from pg_policy p join relation r on r.oid = p.polrelid
    union all
    select case relkind when 'm' then 'materialized view ' else 'view ' end || name || ' '
      || coalesce(array_to_string(reloptions, ', ') || ' ', '') || pg_get_viewdef(oid)
    from relation where relkind in ('v', 'm')
    union all
    select 'sequence ' || r.name || ' ' || format_type(q.seqtypid, null) || ' start ' || q.seqstart || ' by '
      || q.seqincrement || ' from ' || q.seqmin || ' to ' || q.seqmax || ' cache ' || q.seqcache
      || case when q.seqcycle then ' cycle' else '' end || coalesce(' of ' || o.name || '.' || quote_ident(a.attname), '')
    from pg_sequence q join relation r on r.oid = q.seqrelid
      left join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = r.oid and d.deptype in ('a', 'i')
        and d.refclassid = 'pg_class'::regclass
      left join relation o on o.oid = d.refobjid
      left join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    union all
    select 'enum ' || name || ' ' || (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder)
      from pg_enum e where e.enumtypid = type.oid)
    from type where typtype = 'e'
    union all
    select 'domain ' || t.name || ' ' || format_type(t.typbasetype, t.typtypmod)
      || case when t.typcollation <> b.typcollation then ' collate ' || t.typcollation::regcollation else '' end
      || case when t.typnotnull then ' not null' else '' end || coalesce(' default ' || t.typdefault, '')
      || coalesce((select string_agg(' ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid), '' order by conname)
        from pg_constraint where contypid = t.oid and contype <> 'n'), '')
    from type t join pg_type b on b.oid = t.typbasetype where t.typtype = 'd'
    union all
    select 'function ' || pg_get_functiondef(oid) from routine where prokind in ('f', 'p')`;
  return rows
    .map(({ line }) => line.replaceAll("\n", "\\n"))
    .sort()
    .join("\n");
}

/** Compares two such texts: `-` marks lines only in the first, `+` lines only in the second. */
export function difference(expected: string, actual: string): string[] {
  const [want, have] = [expected, actual].map((text) => new Set(text.split("\n").filter(Boolean))) as [
    Set<string>,
    Set<string>,
  ];
  return [
    ...[...want.difference(have)].map((line) => `- ${line}`),
    ...[...have.difference(want)].map((line) => `+ ${line}`),
  ].sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1));
}
