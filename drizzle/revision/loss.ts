import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { literal, nameParts, quoted, shownName } from "../sql_text.ts";
import { triggers } from "../triggers/index.ts";
import { type Loss, marksIn, readMarks } from "./marks.ts";
import { actionsIn, afterNoise, nameAt, type Statement, splitStatements, wordsOf } from "./statements.ts";

/** A statement, and what it might lose. */
interface Losing {
  statement: Statement;
  losses: Loss[];
}

/**
 * The statements of a revision's SQL that may lose rows or values: those with a mark, and those that need one by their
 * kind (DROP TABLE, DROP COLUMN, TRUNCATE, anything with CASCADE) and have none.
 */
export function losingStatements(sql: string): Losing[] {
  const marks = marksIn(sql);
  let next = 0;
  return splitStatements(sql).flatMap((statement) => {
    const end = statement.offset + statement.text.length;
    const from = next;
    while (next < marks.length && marks[next]!.at < end) next += 1;
    const own = marks.slice(from, next);
    const isJudged = own.some(({ word }) => word === "data-loss" || word === "no-data-loss");
    const marked = own.flatMap(({ at }) => readMarks(sql.slice(at).split("\n", 1)[0]!).losses);
    const losses = isJudged ? marked : impliedLosses(sql.slice(statement.start, end));
    return losses.length === 0 ? [] : [{ statement, losses }];
  });
}

function impliedLosses(text: string): Loss[] {
  // A cheap check that excludes most statements.
  if (!/\b(drop|truncate)\b/i.test(text)) return [];
  const words = wordsOf(text);
  const [first, second = ""] = words;
  const hasCascade = words.at(-1) === "CASCADE";
  if (first === "DROP" && (hasCascade || ["EXTENSION", "OWNED"].includes(second)))
    return [{ kind: "removal", removal: text }];
  if (first === "TRUNCATE" && hasCascade) return [{ kind: "removal", removal: text }];
  if (first === "TRUNCATE") return namesFrom(words, second === "TABLE" ? 2 : 1).map(lossOfTable);
  if (first === "DROP" && second === "TABLE") return namesFrom(words, 2).map(lossOfTable);
  if (first !== "ALTER") return [];
  const { name, end } = nameAt(words, afterNoise(words, 2));
  const from = words[end] === "*" ? end + 1 : end;
  const drops = actionsIn(words.slice(from)).filter(([verb]) => verb === "DROP");
  if (!drops.some((action) => action.at(-1) === "CASCADE"))
    return second === "TABLE" ? droppedColumns(name, drops) : [];
  const actions = drops.map((action) => action.join(" ")).join(", ");
  return [{ kind: "removal", removal: `${words.slice(0, from).join(" ")} ${actions}` }];
}

const lossOfTable = (table: string): Loss => ({ kind: "table", table });

/** `IF EXISTS ONLY a, b.c *` */
function namesFrom(words: readonly string[], from: number): string[] {
  const names: string[] = [];
  let at = afterNoise(words, from);
  for (;;) {
    const { name, end } = nameAt(words, at);
    if (name !== '""') names.push(name);
    at = words[end] === "*" ? end + 1 : end;
    if (words[at] !== ",") return names;
    at = afterNoise(words, at + 1);
  }
}

/** The actions `DROP COLUMN IF EXISTS c`, `DROP d`. */
function droppedColumns(table: string, drops: readonly string[][]): Loss[] {
  return drops
    .filter(([, what]) => what !== "CONSTRAINT")
    .map((action) => nameAt(action, afterNoise(action, action[1] === "COLUMN" ? 2 : 1)).name)
    .filter((column) => !isDerived(table, column))
    .map((column) => ({ kind: "column", table, column }));
}

/** Whether one of our triggers derives the column from others, and so can restore it. */
function isDerived(table: string, column: string): boolean {
  return triggers.some(
    ({ table: own, fill }) => quoted(own) === table && fill && quoted(fill.column) === column,
  );
}

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
 * only its default. Objects that a step of the plan creates or renames cannot be checked yet; see `lossGuard`.
 *
 * @throws Conflict naming what would be lost
 */
export async function refuseLosses(
  sql: Pick<Sql, "unsafe">,
  scripts: readonly string[],
  command: string,
): Promise<void> {
  const losses = scripts.flatMap((script) => losingStatements(script).flatMap((losing) => losing.losses));
  if (losses.length === 0) return;
  try {
    await sql.unsafe(guardBlock(losses, "plan"));
  } catch (error) {
    throw lossRefusal(error, command) ?? error;
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
 * The statement to run directly before one that may lose data, in the same transaction: it locks the tables, so that no
 * rows can be added meanwhile, and fails if there is data to lose. Empty for losses that are only described in words;
 * those are checked with the plan.
 */
export function lossGuard(losses: readonly Loss[]): string {
  const real = losses.filter(({ kind }) => kind !== "other");
  return real.length === 0 ? "" : guardBlock(real, "step");
}

/** A revision's SQL including the guards, for a script. */
export function withGuards(text: string): string {
  let sql = "";
  let copied = 0;
  for (const { statement, losses } of losingStatements(text)) {
    const guard = lossGuard(losses);
    sql += text.slice(copied, statement.offset) + (guard && `${guard}\n\n`);
    copied = statement.offset;
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

/** Tables (`attribute` is null) and their stored columns. TRUNCATE gives a table another file. */
const places = `select c.oid as relation, a.attname as attribute, c.relispartition as partition,
        concat_ws(' ', c.oid, a.attnum, case when a.attnum is null then c.relfilenode end) as place
      from pg_class c, lateral (select null::name, null union all
        select attname, attnum from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') a (attname, attnum)
      where c.relkind in ('r', 'p') and c.relpersistence <> 't' and c.oid >= 16384`;

/**
 * What a statement removes beyond what it names depends on everything in the database, so it is tried and rolled back.
 * A statement that fails here removes nothing, or fails again when it runs. A partition counts only if its table stays.
 */
function checkRemoval(removal: string, stage: "plan" | "step"): string {
  const onError = stage === "plan" ? "" : "when lock_not_available or deadlock_detected then raise;\n      ";
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
      ${onError}when others then gone := '{}';
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
