import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { errorCode, operatorsError } from "../database_error.ts";
import { literal, nameParts, quoted, shownName } from "../sql_text.ts";
import { triggers } from "../triggers/index.ts";
import { type Loss, losingStatements } from "./marks.ts";
import { type StepOptions, whenFree } from "./step.ts";

/** Describes everything that a revision's SQL may lose. */
export function describeLosses(sql: string): string[] {
  return losingStatements(sql).flatMap(({ losses }) => losses.map(describe));
}

function describe(loss: Loss): string {
  switch (loss.kind) {
    case "table":
      return `the rows of ${displayName(loss.table)}`;
    case "column":
      return `the values of ${displayName(loss.table)}.${displayName(loss.column)}${loss.where ? `: ${loss.words ?? loss.where}` : ""}`;
    case "sequence":
      return `the position of ${displayName(loss.sequence)}`;
    case "removal":
      return `everything that \`${loss.removal.replace(/\s+/g, " ")}\` removes`;
    case "other":
      return loss.text;
  }
}

const displayName = (written: string) => shownName(nameParts(written));

/** SQLSTATE of a guard that found data; PostgreSQL uses no class with this prefix. */
const lossCode = "SVC01";
/** Rolls a statement back that was only tried. */
const undoCode = "SVC02";

/**
 * Checks what a whole plan would lose, before any of it runs. An empty table is no loss, nor is a column that holds
 * only its default. Objects that a step of the plan creates or renames cannot be checked yet; see `guards`.
 *
 * @throws Conflict naming what would be lost
 */
export async function refuseLosses(
  sql: Pick<Sql, "unsafe">,
  scripts: readonly string[],
  command: string,
  onRetry?: StepOptions["onRetry"],
): Promise<void> {
  const losses = scripts.flatMap((script) => losingStatements(script).flatMap((losing) => losing.losses));
  if (losses.length === 0) return;
  try {
    await whenFree("the check for data loss", onRetry, () => sql.unsafe(guardBlock(losses, "plan")));
  } catch (error) {
    throw lossRefusal(error, command) ?? operatorsError(error);
  }
}

/** Converts a guard's error to the command's error; undefined for any other error. */
export function lossRefusal(error: unknown, command: string): Conflict | undefined {
  if (errorCode(error) !== lossCode) return undefined;
  const { message } = error as Error;
  return new Conflict(`${message}. Make a backup (svc database dump), then: ${command} --allow-data-loss`, {
    cause: error,
  });
}

/**
 * For each statement that may lose data, by its offset, the one to run directly before it in the same transaction: it locks the
 * tables, so that no rows can be added meanwhile, and fails if there is data to lose. Losses that are only described in words
 * are checked with the plan.
 */
export function guards(text: string): Map<number, string> {
  return new Map(
    losingStatements(text).flatMap(({ statement, losses }) => {
      const real = losses.filter(({ kind }) => kind !== "other");
      return real.length === 0 ? [] : [[statement.offset, guardBlock(real, "step")] as const];
    }),
  );
}

/** A revision's SQL including the guards, for a script. */
export function withGuards(text: string): string {
  let sql = "";
  let copied = 0;
  for (const [offset, guard] of guards(text)) {
    sql += `${text.slice(copied, offset)}${guard}\n\n`;
    copied = offset;
  }
  return sql + text.slice(copied);
}

function guardBlock(losses: readonly Loss[], stage: "plan" | "step"): string {
  const checks = losses.map((loss) => check(loss, stage)).join("\n");
  let tag = "$svc_loss$";
  while (checks.includes(tag)) tag = tag.replace(/\$$/, "_$");
  return `do ${tag}
declare lost text[] := '{}'; is_lost boolean; usual text; kind "char"; relation regclass; attribute name; gone text[];
begin
${checks}
  if cardinality(lost) > 0 then
    raise exception using errcode = '${lossCode}', message = 'This would lose ' || array_to_string(lost, ', '),
      hint = 'To drop them: --allow-data-loss';
  end if;
end ${tag};`;
}

/** Runs on the server, where missing objects are skipped and a failing condition does not abort the transaction. */
function check(loss: Loss, stage: "plan" | "step"): string {
  const what = `${literal(describe(loss))}::text`;
  if (loss.kind === "other") return `  lost := lost || ${what};`;
  if (loss.kind === "removal") return checkRemoval(loss.removal, stage);
  const add = addLoss(what);
  const name = sqlName(loss.kind === "sequence" ? loss.sequence : loss.table);
  const isThere = `to_regclass(${literal(name)}) is not null`;
  const lock =
    stage === "plan" || loss.kind === "sequence"
      ? ""
      : `
    select relkind into kind from pg_class where oid = to_regclass(${literal(name)});
    if kind in ('r', 'p') then execute ${literal(`lock table ${name} in access exclusive mode`)}; end if;`;
  if (loss.kind !== "column") {
    const rows = loss.kind === "table" ? `select from ${name}` : `select from ${name} where is_called`;
    return `  if ${isThere} then${lock}
${readable(`    execute ${literal(`select exists (${rows})`)} into is_lost;`)}${add}
  end if;`;
  }
  const column = nameParts(loss.column).at(-1)!;
  const attribute = `attrelid = to_regclass(${literal(name)}) and attname = ${literal(column)} and not attisdropped and attgenerated = ''`;
  const search =
    loss.where === undefined
      ? `    relation := to_regclass(${literal(name)}); attribute := ${literal(column)};\n${unusualValue}`
      : matching(name, column, loss.where, stage);
  return `  if exists (select from pg_attribute where ${attribute}) then${lock}
${readable(search)}${add}
  end if;`;
}

/** What may not be read, or is hidden by row-level security, counts as data: then `is_lost` is null. */
function readable(search: string): string {
  return `    begin
${search}
    exception when insufficient_privilege then is_lost := null;
    end;`;
}

function addLoss(what: string): string {
  return `
    if is_lost is not false then
      lost := lost || (${what} || case when is_lost is null then ' (this user cannot read all of them)' else '' end);
    end if;`;
}

/** The columns that our triggers derive from others, and so can restore. */
const derived = triggers
  .flatMap(({ table, fill }) => (fill ? [`(${literal(table)}, ${literal(fill.column)})`] : []))
  .join(", ");

/** Tables (`attribute` is null) and their stored columns. TRUNCATE gives a table another file. */
const places = `select c.oid as relation, a.attname as attribute, c.relispartition as partition,
        concat_ws(' ', c.oid, a.attnum, case when a.attnum is null then c.relfilenode end) as place
      from pg_class c, lateral (select null::name, null union all
        select attname, attnum from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
          and not (c.relnamespace = 'public'::regnamespace and (c.relname, attname) in (${derived}))) a (attname, attnum)
      where c.relkind in ('r', 'p') and c.relpersistence <> 't' and c.oid >= 16384`;

/**
 * Tries a statement without a mark, rolls it back, and compares the tables and columns before and after. One that fails here
 * fails again when it runs, or depends on an earlier step. A partition counts only if its table stays.
 */
function checkRemoval(removal: string, stage: "plan" | "step"): string {
  const lock = "\n    execute format('lock table %s in access exclusive mode', relation);";
  const search = `    if attribute is null then execute format('select exists (select from %s)', relation) into is_lost;
    else
${unusualValue}
    end if;`;
  const what =
    "case when attribute is null then 'the rows of ' || relation else 'the values of ' || relation || '.' || quote_ident(attribute) end";
  return `  begin
    gone := array(select place from (${places}) p);
    execute ${literal(removal)};
    gone := array(select unnest(gone) except select place from (${places}) p);
    raise exception using errcode = '${undoCode}';
  exception when sqlstate '${undoCode}' then null;
      when lock_not_available or deadlock_detected then raise;
      when others then gone := '{}';
  end;
  for relation, attribute in
    with gone as (select * from (${places}) p where place = any(gone))
    select g.relation, g.attribute from gone g where not exists (
      select from gone t left join pg_inherits i on i.inhrelid = g.relation and g.partition
      where t.relation = g.relation and t.attribute is null and g.attribute is not null
        or t.relation = i.inhparent and (t.attribute is null) = (g.attribute is null))
    order by g.relation::regclass::text, g.attribute
  loop${stage === "plan" ? "" : lock}
${readable(search)}${addLoss(what)}
  end loop;`;
}

/**
 * Searches `attribute` of `relation`. A column whose rows all have the default can be restored. A volatile default gives
 * each row another value.
 */
const unusualValue = `    select '(' || pg_get_expr(d.adbin, d.adrelid) || ')::' || format_type(a.atttypid, a.atttypmod) into usual
      from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
      where d.adrelid = relation and a.attname = attribute and not exists (
        select from regexp_matches(d.adbin::text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') as m
          join pg_proc p on p.oid = m[1]::oid where p.provolatile = 'v');
    execute format('select exists (select from %s where %I is not null)', relation, attribute) into is_lost;
    if is_lost and usual is not null then
      execute format('select exists (select from %s where %I::text is distinct from (%s)::text)', relation, attribute, usual)
        into is_lost;
    end if;`;

/** A value that the conversion itself rejects is not lost. */
function matching(table: string, column: string, where: string, stage: "plan" | "step"): string {
  const rows = `select from ${table} where ${quoted(column)} is not null and (${where})`;
  const tolerated =
    stage === "plan" ? "data_exception or syntax_error_or_access_rule_violation" : "data_exception";
  return `    begin
      execute ${literal(`select exists (${rows})`)} into is_lost;
    exception when insufficient_privilege then is_lost := null; when ${tolerated} then is_lost := false;
    end;`;
}

function sqlName(written: string): string {
  return nameParts(written).map(quoted).join(".");
}
