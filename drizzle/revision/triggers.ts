import type { Sql } from "../connection/sql.ts";
import { literal, quoted } from "../sql_text.ts";
import { triggers as ourTriggers, type Trigger } from "../triggers/index.ts";
import { type StepOptions, whenFree } from "./step.ts";

export interface SyncResult {
  created: string[];
  /** Altered or disabled by someone, and repaired. */
  repaired: string[];
  /** Created by svc, but no longer defined. */
  removed: string[];
  /** Rows whose derived column was missing or stale, by table. */
  filled: Record<string, number>;
}

/**
 * The comment on a trigger whose table has rows from before it. It survives a crash between creating the trigger and
 * filling the rows.
 */
const unfilled = "rows written before it are not filled yet";
const blocksOfOneFill = 512;
/** The first line of our functions. It tells those that are no longer defined from other people's functions. */
const signature = "-- Created by svc from drizzle/triggers";

/**
 * Brings triggers and their functions in line with their definitions: creates what is missing or altered, drops what
 * svc created but no longer defines, and leaves the rest alone (creating a trigger locks its table). Skips triggers
 * whose table or columns do not exist at this revision.
 *
 * Fills the derived columns: after a change those of the new triggers, with `everything` every row that differs from
 * what its trigger would have written.
 */
export async function syncTriggers(
  sql: Sql,
  options: { everything?: boolean; onRetry?: StepOptions["onRetry"]; triggers?: readonly Trigger[] } = {},
): Promise<SyncResult> {
  const { everything = false, onRetry, triggers = ourTriggers } = options;
  let changes = changesOf(await inspectTriggers(sql, triggers), triggers);
  if (changes.script.length > 0) {
    await whenFree("triggers", onRetry, () =>
      sql.begin(async (transaction) => {
        changes = changesOf(await inspectTriggers(transaction, triggers), triggers);
        if (changes.script.length > 0) await transaction.unsafe(changes.script.join(";\n"));
      }),
    );
  }
  const { created, repaired, removed } = changes;
  const result: SyncResult = { created, repaired, removed, filled: {} };
  const found = await inspectTriggers(sql, triggers);
  for (const trigger of triggers) {
    const there = found.triggers.find(({ name, table }) => name === trigger.name && table === trigger.table);
    if (!trigger.fill || !there || !(everything || there.unfilled)) continue;
    const rows = await fill(sql, trigger, onRetry);
    if (rows > 0) result.filled[trigger.table] = rows;
    if (there.unfilled)
      await sql.unsafe(`comment on trigger ${trigger.name} on public.${trigger.table} is null`);
  }
  return result;
}

/**
 * The part of the synchronisation that belongs in the transaction of a step. `filled`: existing rows were written with
 * the triggers in place, as in a backup, and need no check.
 */
export async function installTriggers(
  sql: Pick<Sql, "unsafe">,
  { filled = false }: { filled?: boolean } = {},
): Promise<void> {
  const { script } = changesOf(await inspectTriggers(sql), ourTriggers);
  const statements = filled ? script.filter((one) => !one.startsWith("comment on trigger ")) : script;
  if (statements.length > 0) await sql.unsafe(statements.join(";\n"));
}

interface Changes extends Omit<SyncResult, "filled"> {
  script: string[];
}

function changesOf(found: Found, triggers: readonly Trigger[]): Changes {
  const changes: Changes = { created: [], repaired: [], removed: [], script: [] };
  const { script } = changes;
  const possible = triggers.filter(({ table, needs }) =>
    needs.every((column) => found.columns.has(`${table}.${column}`)),
  );
  for (const { name, table } of found.triggers) {
    if (possible.some((trigger) => trigger.name === name && (table ?? trigger.table) === trigger.table))
      continue;
    if (table) script.push(`drop trigger ${quoted(name)} on public.${quoted(table)}`);
    script.push(`drop function if exists public.${quoted(name)}()`);
    changes.removed.push(name);
  }
  for (const trigger of possible) {
    const there = found.triggers.find(
      ({ name, table }) => name === trigger.name && (table ?? trigger.table) === trigger.table,
    );
    const isSame = there?.fingerprint === fingerprintOf(trigger);
    const isIntact = there?.plain === true && there.body === sourceOf(trigger);
    if (isSame && isIntact) continue;
    if (!isIntact) script.push(createFunction(trigger));
    if (!isSame) script.push(...createTrigger(trigger));
    else if (trigger.fill) script.push(commentOn(trigger));
    (there?.table ? changes.repaired : changes.created).push(trigger.name);
  }
  changes.removed.sort();
  return changes;
}

function sourceOf({ body }: Trigger): string {
  return `\n${signature}${body}`;
}

/** Replaces the language and all options, too. */
function createFunction(trigger: Trigger): string {
  return `create or replace function public.${trigger.name}() returns trigger language plpgsql as $svc$${sourceOf(trigger)}$svc$`;
}

function createTrigger(trigger: Trigger): string[] {
  const { name, table, timing, events } = trigger;
  return [
    `drop trigger if exists ${name} on public.${table}`,
    `create trigger ${name} ${timing} ${events.join(" or ")} on public.${table} for each row execute function public.${name}()`,
    ...(trigger.fill ? [commentOn(trigger)] : []),
  ];
}

function commentOn({ name, table }: Trigger): string {
  return `comment on trigger ${name} on public.${table} is '${unfilled}'`;
}

const listOf = (texts: readonly string[]) => texts.map(literal).join(", ");

/** For `--sql`: drops all our triggers, so that no step runs into one that refers to a dropped column. */
export const dropTriggersScript = `-- Triggers go first, and come back at the end

${ourTriggers
  .map(
    ({ name, table }) =>
      `drop trigger if exists ${name} on public.${table};\ndrop function if exists public.${name}();`,
  )
  .join("\n")}`;

/** For `--sql`: creates the triggers whose tables exist, and fills what they would have written. */
export function createTriggersScript(triggers: readonly Trigger[] = ourTriggers): string {
  const blocks = triggers.map((trigger) => {
    const { table, needs, fill } = trigger;
    const names = listOf(needs);
    const [create] = createTrigger(trigger).slice(1);
    return `do $svc_make$ begin
  if (select count(*) from pg_attribute where attrelid = to_regclass(${literal(`public.${table}`)})
      and attname in (${names}) and not attisdropped) = ${needs.length} then
    execute ${quote(createFunction(trigger))};
    execute ${quote(create!)};${
      fill
        ? `\n    execute ${quote(`update public.${table} set ${fill.column} = ${fill.value} where ${fill.column} is distinct from ${fill.value}`)};`
        : ""
    }
  end if;
end $svc_make$;`;
  });
  return `-- Triggers\n\n${blocks.join("\n\n")}`;
}

const quote = (text: string) => `$svc_text$${text}$svc_text$`;

/** A trigger's definition in the terms of pg_trigger: type bits, function, columns, condition, arguments. */
function fingerprintOf({ name, timing, events }: Trigger): string {
  const bits = { insert: 4, delete: 8, update: 16 };
  const type = 1 + (timing === "before" ? 2 : 0) + events.reduce((sum, event) => sum + bits[event], 0);
  return [type, name, "O", "", "", 0].join(" ");
}

interface Found {
  /** `table.column` of the schema `public`, of the tables that have triggers by definition. */
  columns: Set<string>;
  /** Our functions, each with its trigger unless that is missing. */
  triggers: {
    name: string;
    body: string;
    plain: boolean;
    table?: string;
    fingerprint?: string;
    unfilled: boolean;
  }[];
}

/**
 * Reads the current state of our triggers in one query: those of the definitions, and those that svc created from earlier ones. A
 * partition's copy of a trigger is not a trigger of its own.
 */
async function inspectTriggers(
  sql: Pick<Sql, "unsafe">,
  triggers: readonly Trigger[] = ourTriggers,
): Promise<Found> {
  const [row] = await sql.unsafe(`
    select
      (select json_agg(c.relname || '.' || a.attname)
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
          and c.relname in (${listOf(triggers.map(({ table }) => table))}) and a.attnum > 0 and not a.attisdropped)::text as columns,
      (select json_agg(json_strip_nulls(json_build_object('name', p.proname, 'body', p.prosrc, 'table', c.relname,
          'plain', l.lanname = 'plpgsql' and p.provolatile = 'v' and not p.prosecdef and p.proconfig is null,
          'fingerprint', concat_ws(' ', t.tgtype, p.proname, t.tgenabled, t.tgattr::text, coalesce(t.tgqual::text, ''), t.tgnargs),
          'unfilled', coalesce(obj_description(t.oid, 'pg_trigger') = '${unfilled}', false))))
        from pg_proc p join pg_language l on l.oid = p.prolang
          left join (pg_trigger t join pg_class c on c.oid = t.tgrelid and c.relnamespace = 'public'::regnamespace)
            on t.tgfoid = p.oid and t.tgname = p.proname and t.tgparentid = 0
        where p.pronamespace = 'public'::regnamespace and p.pronargs = 0 and p.prorettype = 'trigger'::regtype
          and (p.proname in (${listOf(triggers.map(({ name }) => name))}) or starts_with(p.prosrc, ${literal(`\n${signature}\n`)})))::text as triggers`);
  const list = (json: unknown) => (typeof json === "string" ? JSON.parse(json) : []);
  return { columns: new Set(list(row?.columns)), triggers: list(row?.triggers) };
}

/**
 * Writes what the trigger would have written into rows that differ. Works on a range of blocks at a time, each in its
 * own transaction, so that a big table stays usable. Rows written meanwhile go through the trigger.
 */
async function fill(sql: Sql, { table, fill }: Trigger, onRetry: StepOptions["onRetry"]): Promise<number> {
  const { column, value } = fill!;
  const [size] = await sql.unsafe(
    `select (pg_relation_size('public.${table}') / current_setting('block_size')::int)::int as blocks`,
  );
  let rows = 0;
  for (let block = 0; block < Number(size?.blocks); block += blocksOfOneFill) {
    await whenFree(`search of ${table}`, onRetry, async () => {
      const done = await sql.unsafe(`
        update public.${table} set ${column} = ${value}
        where ctid >= '(${block},0)' and ctid < '(${block + blocksOfOneFill},0)'
          and ${column} is distinct from ${value}`);
      rows += done.count;
    });
  }
  return rows;
}
