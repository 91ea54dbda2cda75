import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { isPostgresError } from "../database_error.ts";
import { explainFailure, isStatementError } from "./failure.ts";
import type { Revision } from "./history.ts";
import { settings } from "./lock.ts";
import { losingStatements, lossGuard, lossRefusal, refuseLosses } from "./loss.ts";
import { type ConcurrentIndex, checkStatements, concurrentIndex, isResumable, readMarks } from "./marks.ts";
import { splitStatements, textFrom, wordsOf } from "./statements.ts";
import { guide, rollback, type Step, type StepOptions, whenFree } from "./step.ts";
import { type Applied, accept, forget, setState } from "./store.ts";

// Schema changes whose statements cannot run in a transaction, such as CREATE INDEX CONCURRENTLY.

/**
 * Runs the statements of a non-transactional step one after another. `undo` reverts what was recorded beforehand; it is
 * called if PostgreSQL rejects the first statement.
 */
export async function runAlone(
  sql: Sql,
  { what, command, text, undone }: Omit<Step, "book">,
  id: string,
  undo: () => Promise<void>,
  { allowDataLoss, onRetry, again = false }: StepOptions & { again?: boolean },
): Promise<void> {
  const losses = new Map(
    (allowDataLoss ? [] : losingStatements(text)).map((one) => [one.statement.offset, one.losses]),
  );
  // CREATE INDEX CONCURRENTLY waits for other transactions without blocking them, so it needs no lock timeout.
  await sql.unsafe(`${settings}set lock_timeout = 0`);
  let done = 0;
  let begun = false;
  try {
    for (const statement of splitStatements(text)) {
      try {
        const guard = lossGuard(losses.get(statement.offset) ?? []);
        const run = () => {
          begun = true;
          return runOneAlone(sql, statement.text, { what, again, onRetry });
        };
        const isOne = guard !== "" && isTransactional(statement.text);
        if (guard) await whenFree(what, onRetry, () => runGuard(sql, guard, isOne ? run : undefined));
        if (!isOne) await run();
        done += 1;
      } catch (error) {
        const refusal = lossRefusal(error, command);
        const isUndone = done === 0 && (begun ? hadNoEffect(error, text) : isStatementError(error));
        if (isUndone) await undo();
        if (refusal) throw refusal;
        const doubt = isResumable(text)
          ? `${done === 0 ? "" : "The statements before it took effect. Correct the cause, then: "}${command} resumes where it stopped`
          : `Check whether the statement took effect, then run: svc database repair ${id} --applied (or --not-applied)`;
        const position = Number((error as { position?: string }).position);
        const offset = position > 0 ? [...statement.text].slice(0, position - 1).join("").length : undefined;
        throw explainFailure(error, {
          what,
          text,
          statement,
          offset: offset === undefined ? undefined : statement.offset + offset,
          next: isUndone ? undone : doubt,
        });
      }
    }
  } finally {
    // If the connection is gone, the failure above says what to do.
    try {
      await sql.unsafe(settings);
    } catch {}
  }
}

/** Whether PostgreSQL allows a statement that drops something in a transaction. */
function isTransactional(statement: string): boolean {
  const words = wordsOf(statement);
  return (
    /^(DROP(?! (DATABASE|SUBSCRIPTION|TABLESPACE))|ALTER (TABLE|TYPE|DOMAIN)|TRUNCATE) /.test(
      words.join(" "),
    ) && !words.includes("CONCURRENTLY")
  );
}

/** `run`: the statement, unless it allows no transaction. The lock of the guard then lasts until it is done. */
async function runGuard(sql: Sql, guard: string, run = async () => {}): Promise<void> {
  try {
    await sql.unsafe(`begin; set local lock_timeout = '5s'; ${guard}`);
    await run();
    await sql.unsafe("commit");
  } catch (error) {
    await rollback(sql);
    throw error;
  }
}

/** `again`: an earlier run may have executed the statement and died before recording it. */
async function runOneAlone(
  sql: Sql,
  statement: string,
  { what, again, onRetry }: { what: string; again: boolean; onRetry: StepOptions["onRetry"] },
): Promise<void> {
  const index = concurrentIndex(wordsOf(statement));
  if (index) await runIndexAlone(sql, statement, index, { what, again, onRetry });
  else await sql.unsafe(statement);
}

/**
 * Creates or drops an index concurrently, unless that is done. Of the indexes that have its name, only the same one
 * counts, such as one that somebody has built in advance; an interrupted run may also have left one of its file before
 * a correction.
 */
async function runIndexAlone(
  sql: Sql,
  statement: string,
  index: ConcurrentIndex,
  { what, again, onRetry }: { what: string; again: boolean; onRetry: StepOptions["onRetry"] },
): Promise<void> {
  const { name, created } = index;
  await whenBuilt(sql, index, () =>
    onRetry?.(`${what}: waiting for another session that builds an index of this table`),
  );
  let state = await indexState(sql, name);
  if (!created) {
    if (!(again && state === "missing")) await sql.unsafe(statement);
    return;
  }
  const isSame = state !== "missing" && (await isSameIndex(sql, statement, name, created));
  if (isSame && state === "valid") return;
  const dropInvalid = async () => {
    await sql.unsafe(`drop index concurrently ${name}`);
    state = "missing";
  };
  if (state === "invalid" && (isSame || again)) await dropInvalid();
  try {
    // IF NOT EXISTS would accept any other index.
    await sql.unsafe(statement.replace(/\bif\s+not\s+exists\b/i, (words) => " ".repeat(words.length)));
  } catch (error) {
    const isOurs = state === "missing" && isStatementError(error);
    if (isOurs && (await indexState(sql, name)) === "invalid") await dropInvalid();
    throw error;
  }
}

const pollMilliseconds = 500;

/**
 * Waits until no other session builds an index of the table concurrently. An index is invalid while it is built, and
 * must not be dropped then. Polls, because a session that waits for the table's lock deadlocks with the build.
 */
async function whenBuilt(sql: Sql, { name, created }: ConcurrentIndex, onWait: () => void): Promise<void> {
  for (let told = false; ; told = true) {
    const [row] = await sql`
      select from pg_stat_progress_create_index join pg_locks l using (pid)
      where l.mode = 'ShareUpdateExclusiveLock' and l.granted and datname = current_database() and l.relation in (
        select to_regclass(${created?.table ?? null}) union all
        select indrelid from pg_index where indexrelid = to_regclass(${name}))`;
    if (!row) return;
    if (!told) onWait();
    await Bun.sleep(pollMilliseconds);
  }
}

/**
 * Whether an index is the one that a statement would create, and not merely one of that name. PostgreSQL creates that
 * one on an empty copy of the table, which is rolled back, so that both definitions are in its own notation.
 */
async function isSameIndex(
  sql: Sql,
  statement: string,
  name: string,
  { unique, table, copy, rest }: NonNullable<ConcurrentIndex["created"]>,
): Promise<boolean> {
  try {
    // The copy has the table's name, because the columns may be qualified with it. Elsewhere that name means the table.
    await sql.unsafe(`begin; set local search_path = public, pg_temp; create temp table ${copy} (like ${table});
      create ${unique ? "unique" : ""} index svc_wanted on pg_temp.${copy} ${textFrom(statement, rest)}`);
    const [row] = await sql`
      select i.indrelid = to_regclass(${table}) and i.indisunique = w.indisunique
        and substring(pg_get_indexdef(i.indexrelid) from ' USING .*')
          = substring(pg_get_indexdef(w.indexrelid) from ' USING .*')
        and not exists (select from pg_constraint where conindid = i.indexrelid and contype in ('p', 'u', 'x')) as same
      from pg_index i, pg_index w
      where i.indexrelid = to_regclass(${name}) and w.indexrelid = to_regclass('pg_temp.svc_wanted')`;
    return row?.same === true;
  } catch (error) {
    // Then the statement itself fails too, with PostgreSQL's reason.
    if (isStatementError(error)) return false;
    throw error;
  } finally {
    await rollback(sql);
  }
}

/**
 * Whether PostgreSQL itself rejected a statement and so rolled it back. Anything that a CALL or DO has committed stays.
 */
function hadNoEffect(error: unknown, text: string): boolean {
  if (!isPostgresError(error) || /^(57P|08|XX)/.test(error.code)) return false;
  return !["CALL", "DO"].includes(wordsOf(text)[0] ?? "");
}

async function indexState(sql: Sql, name: string): Promise<"missing" | "invalid" | "valid"> {
  const [row] = await sql`
    select indisvalid and indisready as valid from pg_index where indexrelid = to_regclass(${name})`;
  if (!row) return "missing";
  return row.valid ? "valid" : "invalid";
}

/**
 * Finishes an interrupted non-transactional step, or explains what a person has to check.
 * @throws Conflict for a statement that cannot safely be run again, or when rows or values would be lost
 */
export async function finishInterrupted(
  sql: Sql,
  row: Applied,
  known: readonly Revision[],
  options: StepOptions,
): Promise<void> {
  const revision = known.find(({ id }) => id === row.id);
  const forward = row.state === "applying";
  if (forward && revision && revision.checksum !== row.checksum && isResumable(revision.up)) {
    // The file was corrected since then: the new version continues after what the old one did.
    const marks = readMarks(revision.up);
    if (marks.transactional && revision.manifest.transactional) return await forget(sql, row.id);
    checkStatements(`up.sql of revision ${row.id}`, revision.up, marks);
    await accept(sql, revision);
  }
  const text = forward ? revision?.up : row.down;
  if (text === undefined || !isResumable(text)) {
    throw new Conflict(
      `Revision ${row.id} was interrupted while ${row.state}. Check whether its statement took effect, then run: svc database repair ${row.id} --applied (or --not-applied)`,
    );
  }
  const step = {
    what: `${forward ? "up" : "down"}.sql of revision ${row.id}`,
    command: forward ? "svc database upgrade" : "svc database downgrade",
    undone: `Revision ${row.id} is still incomplete: correct the cause, then run it again (${guide})`,
    text,
  };
  if (!options.allowDataLoss) await refuseLosses(sql, [text], step.command);
  await runAlone(sql, step, row.id, async () => {}, { ...options, again: true });
  if (forward) await setState(sql, row.id, "applied");
  else await forget(sql, row.id);
}
