import { oids, type Runner, type Sequence, type Table, tableName } from "./inventory.ts";

/** From this many rows, rebuilding an index is faster than updating it row by row. */
const manyRows = 10_000;

/**
 * Removes everything that would block or slow down loading, in this transaction, and returns how to restore it: foreign
 * keys (tables come in any order and may reference each other in cycles), triggers (the rows already contain their
 * effects), and the indexes of large tables. Uses PostgreSQL's own definitions, like pg_dump, and requires only
 * ownership of the tables.
 */
export async function clearTheWay(
  sql: Runner,
  tables: readonly (Table & { rows: number })[],
): Promise<() => Promise<void>> {
  const large = tables.filter(({ rows }) => rows >= manyRows);
  const [keys, triggers] = [await foreignKeys(sql, tables), await userTriggers(sql, tables)];
  const indexes = [...(await keyConstraints(sql, large)), ...(await plainIndexes(sql, large))];
  await runAll(
    sql,
    [...keys, ...triggers, ...indexes].map(({ away }) => away),
  );
  return async () => {
    // Foreign keys come last, because checking them needs the indexes.
    await runAll(
      sql,
      [...indexes, ...keys, ...triggers].flatMap(({ back }) => back),
    );
  };
}

/** A statement that removes something, and those that restore it. */
interface Obstacle {
  away: string;
  back: string[];
}

interface Constraint {
  table: string;
  name: string;
  definition: string;
  comment: string | null;
}

async function foreignKeys(sql: Runner, tables: readonly Table[]): Promise<Obstacle[]> {
  return constraints(sql, tables, "k.contype = 'f' and k.conparentid = 0");
}

/** Primary keys and similar constraints, except those that anything but a foreign key depends on. */
async function keyConstraints(sql: Runner, tables: readonly Table[]): Promise<Obstacle[]> {
  return constraints(
    sql,
    tables,
    `k.contype in ('p', 'u', 'x') and not c.relispartition
      and not exists (select from pg_index i where i.indexrelid = k.conindid and (i.indisclustered or i.indisreplident))
      and not exists (select from pg_depend d where d.refclassid = 'pg_constraint'::regclass and d.refobjid = k.oid
        and d.classid <> 'pg_class'::regclass)`,
  );
}

async function constraints(sql: Runner, tables: readonly Table[], which: string): Promise<Obstacle[]> {
  const rows = (await sql.unsafe(`
    select format('%I.%I', n.nspname, c.relname) as table, quote_ident(k.conname) as name,
      pg_get_constraintdef(k.oid) as definition, quote_literal(obj_description(k.oid, 'pg_constraint')) as comment
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
    where c.oid = any (${oids(tables)}) and ${which}
    order by 1, 2`)) as unknown as Constraint[];
  return rows.map(({ table, name, definition, comment }) => ({
    away: `alter table ${table} drop constraint ${name}`,
    back: [
      `alter table ${table} add constraint ${name} ${definition}`,
      ...(comment ? [`comment on constraint ${name} on ${table} is ${comment}`] : []),
    ],
  }));
}

async function plainIndexes(sql: Runner, tables: readonly Table[]): Promise<Obstacle[]> {
  const rows = await sql.unsafe(`
    select format('%I.%I', n.nspname, x.relname) as name, pg_get_indexdef(i.indexrelid) as definition,
      quote_literal(obj_description(i.indexrelid, 'pg_class')) as comment
    from pg_index i join pg_class x on x.oid = i.indexrelid join pg_namespace n on n.oid = x.relnamespace
    where i.indrelid = any (${oids(tables)}) and not i.indisclustered and not i.indisreplident and not x.relispartition
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
      and not exists (select from pg_depend d where d.refclassid = 'pg_class'::regclass and d.refobjid = i.indexrelid)
    order by 1`);
  return rows.map(({ name, definition, comment }) => ({
    away: `drop index ${name}`,
    back: [definition, ...(comment ? [`comment on index ${name} is ${comment}`] : [])],
  }));
}

async function userTriggers(sql: Runner, tables: readonly Table[]): Promise<Obstacle[]> {
  const rows = await sql.unsafe(`
    select format('%I.%I', n.nspname, c.relname) as table, quote_ident(t.tgname) as name, t.tgenabled::text as state
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
    where c.oid = any (${oids(tables)}) and not t.tgisinternal and t.tgparentid = 0 and t.tgenabled <> 'D'
    order by 1, 2`);
  const how: Record<string, string> = { O: "enable", A: "enable always", R: "enable replica" };
  return rows.map(({ table, name, state }) => ({
    away: `alter table ${table} disable trigger ${name}`,
    back: [`alter table ${table} ${how[state]} trigger ${name}`],
  }));
}

async function runAll(sql: Runner, statements: readonly string[]): Promise<void> {
  if (statements.length > 0) await sql.unsafe(statements.join(";\n"));
}

/** Sets every sequence to its recorded position, except for those of columns that were added by hand. */
export async function setSequences(sql: Runner, sequences: readonly Sequence[]): Promise<void> {
  for (const sequence of sequences) {
    const { last_value, is_called } = sequence;
    await sql.unsafe("select setval(to_regclass($1::text), $2::text::bigint, $3)", [
      tableName(sequence),
      last_value,
      is_called,
    ]);
  }
}

/** Refreshes the materialised views of this transaction, whose content is not part of a backup. */
export async function refreshViews(sql: Runner): Promise<void> {
  const views = await sql.unsafe(`
    select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'm' and c.xmin = pg_current_xact_id()::xid order by c.oid`);
  await runAll(
    sql,
    views.map(({ name }) => `refresh materialized view ${name}`),
  );
}
