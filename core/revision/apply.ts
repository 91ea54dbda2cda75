import type { Sql } from "../../drizzle/sql.ts";
import { errorCode, isPostgresError, operatorsError } from "../database_error.ts";
import { Conflict, SvcError } from "../errors.ts";
import { settings } from "./lock.ts";
import { checkStatements, readMarks } from "./marks.ts";
import type { Revision } from "./read.ts";
import { splitStatements, wordsOf } from "./statements.ts";
import { type Applied, forget, forgetScript, record, recordScript, setState } from "./store.ts";

/** What else happens in the transaction of a step: triggers that the step would leave broken. */
export type After = (transaction: Pick<Sql, "unsafe">) => Promise<void>;

export interface StepOptions {
  /** Looks, in the transaction and before anything else, whether the step may be made; throws if not. */
  guard?: After;
  after?: After;
  /** Told when the step has to be tried again, since a table is in use. */
  onRetry?: (message: string) => void;
  /**
   * Others follow: its commit need not wait for the disk, theirs will. PostgreSQL writes commits in their order, so if
   * it crashes what is lost are the last ones, whole, and the next upgrade applies them again.
   */
  othersFollow?: boolean;
}

const attempts = 8;

/**
 * Applies one revision and records it: in one transaction, or, where its statement allows none, by a row that says
 * `applying` before and `applied` after.
 *
 * @throws SvcError naming revision, line and PostgreSQL's reason; nothing of the revision stays behind
 */
export async function applyUp(sql: Sql, revision: Revision, options: StepOptions = {}): Promise<void> {
  const what = `up.sql of revision ${revision.id}`;
  const marks = readMarks(revision.up);
  marks.transactional &&= revision.manifest.transactional;
  checkStatements(what, revision.up, marks);
  if (marks.transactional) {
    await applyStep(sql, what, revision.up, recordScript(revision), options);
    return;
  }
  await record(sql, revision, "applying");
  await runAlone(sql, what, revision.up).catch(async (error: unknown) => {
    if (hadNoEffect(error, revision.up)) await forget(sql, revision.id);
    throw error;
  });
  await setState(sql, revision.id, "applied");
  await options.after?.(sql);
}

/** Takes one revision back, by the down SQL that the database keeps. */
export async function applyDown(sql: Sql, row: Applied, options: StepOptions = {}): Promise<void> {
  const what = `down.sql of revision ${row.id}`;
  const marks = readMarks(row.down);
  checkStatements(what, row.down, marks);
  if (marks.transactional) {
    await applyStep(sql, what, row.down, forgetScript(row.id), options);
    return;
  }
  await options.guard?.(sql);
  await setState(sql, row.id, "reverting");
  await runAlone(sql, what, row.down).catch(async (error: unknown) => {
    if (hadNoEffect(error, row.down)) await setState(sql, row.id, "applied");
    throw error;
  });
  await forget(sql, row.id);
  await options.after?.(sql);
}

/** Whether a text may leave settings behind for the next one: SET, set_config, RESET, SET ROLE, in whatever it calls. */
export function changesSettings(text: string): boolean {
  return /\b(set|set_config|reset|discard|do|call|select)\b/i.test(text);
}

/** In one message where it can be: 200 revisions are then 200 round trips, not 800. */
function applyStep(
  sql: Sql,
  what: string,
  text: string,
  book: string,
  { guard, after, onRetry, othersFollow }: StepOptions,
): Promise<void> {
  const restore = changesSettings(text) ? `;\n${settings}` : "";
  const begin = `begin;\n${othersFollow ? "set local synchronous_commit = off;\n" : ""}`;
  const before = guard ? "" : begin;
  const step = `${before}${text}\n;\n${book};\n`;
  return whenFree(what, onRetry, async () => {
    try {
      if (guard) {
        await sql.unsafe(begin);
        await guard(sql);
      }
      await sql.unsafe(after ? step : `${step}commit${restore}`);
      if (after) {
        await sql.unsafe("set local search_path = public");
        await after(sql);
        await sql.unsafe(`commit${restore}`);
      }
    } catch (error) {
      await sql.unsafe("rollback").catch(() => {});
      throw explained(what, text, error, before.length);
    }
  });
}

/**
 * Runs a transaction that needs locks on tables in use: one that is not free in 5 s (see withLock) is given up, so that
 * nobody queues up behind us, and the whole is tried again.
 */
export async function whenFree(
  what: string,
  onRetry: StepOptions["onRetry"],
  transaction: () => Promise<unknown>,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await transaction();
      return;
    } catch (error) {
      const busy = isBusy(error);
      if (!busy || attempt === attempts) throw error;
      onRetry?.(`${what}: a table is in use, trying again`);
      await Bun.sleep(Math.min(2000, 100 * 2 ** attempt) * (0.5 + Math.random()));
    }
  }
}

/** lock_not_available, deadlock_detected */
function isBusy(error: unknown): boolean {
  return ["55P03", "40P01"].includes(errorCode(error) ?? "");
}

/** PostgreSQL's own waiting is meant here: CREATE INDEX CONCURRENTLY waits for others, and nobody for it. */
async function runAlone(sql: Sql, what: string, text: string, again = false): Promise<void> {
  const [statement] = splitStatements(text);
  if (!statement) return;
  const words = wordsOf(statement.text);
  await sql.unsafe(`${settings}set lock_timeout = 0`);
  try {
    const index = concurrentIndex(words);
    if (index) {
      const state = await indexState(sql, index);
      if (state === "invalid" && words[0] === "CREATE") await sql.unsafe(`drop index concurrently ${index}`);
      // Done by the run that was interrupted before it could note so.
      if (again && state === (words[0] === "CREATE" ? "valid" : "missing")) return;
    }
    await sql.unsafe(statement.text);
  } catch (error) {
    throw explained(what, text, error, -statement.offset);
  } finally {
    await sql.unsafe("set lock_timeout = '5s'").catch(() => {});
  }
}

/** Whether PostgreSQL itself has refused a statement, and so undone it; what a CALL or DO has committed stays. */
function hadNoEffect(error: unknown, text: string): boolean {
  const cause = error instanceof SvcError ? error.cause : error;
  if (!isPostgresError(cause) || /^(57P|08|XX)/.test(cause.code)) return false;
  return !["CALL", "DO"].includes(wordsOf(text)[0] ?? "");
}

/** Whether a statement that was interrupted may simply be run again. */
function isRepeatable(text: string): boolean {
  const [statement] = splitStatements(text);
  if (!statement) return true;
  const words = wordsOf(statement.text);
  if (concurrentIndex(words)) return true;
  if (["REINDEX", "VACUUM", "ANALYZE", "CLUSTER"].includes(words[0] ?? "")) return true;
  return words.includes("EXISTS") && words.includes("IF");
}

/** The name, as written, of the index that `CREATE | DROP INDEX CONCURRENTLY` is about. */
function concurrentIndex(words: readonly string[]): string | undefined {
  const at = words.indexOf("INDEX");
  if (at < 1 || at > 2 || words[at + 1] !== "CONCURRENTLY") return undefined;
  let from = at + 2;
  if (words[from] === "IF") from += words[from + 1] === "NOT" ? 3 : 2;
  let to = from + 1;
  while (words[to] === ".") to += 2;
  const name = words.slice(from, to);
  // A name that is not quoted was put into capitals; PostgreSQL folds it down.
  return name.map((word) => (word.startsWith('"') ? word : word.toLowerCase())).join("");
}

async function indexState(sql: Sql, name: string): Promise<"missing" | "invalid" | "valid"> {
  const [row] = await sql`
    select indisvalid and indisready as valid from pg_index where indexrelid = to_regclass(${name})`;
  if (!row) return "missing";
  return row.valid ? "valid" : "invalid";
}

/** Says where it failed. What an operator can do something about keeps its own line. */
function explained(what: string, text: string, error: unknown, before = 0): unknown {
  if (!isPostgresError(error) || isBusy(error)) return error;
  if (operatorsError(error) !== error) return error;
  const position = Number(error.position) - before;
  const line =
    position > 0 && position <= text.length ? `, line ${text.slice(0, position - 1).split("\n").length}` : "";
  const hint =
    error.code === "25001"
      ? ": begin the file with a line `-- svc: no-transaction`, and let it hold that alone"
      : "";
  return new SvcError("configuration", `${what}${line}: ${error.message}${hint}`, { cause: error });
}

/**
 * Brings what was interrupted without a transaction to an end, or says what a person has to look at.
 * @throws Conflict for a statement of which nobody can tell whether it may be run again
 */
export async function finishInterrupted(sql: Sql, row: Applied, known: readonly Revision[]): Promise<void> {
  const revision = known.find(({ id }) => id === row.id);
  const forward = row.state === "applying";
  if (forward && revision && revision.checksum !== row.checksum && isRepeatable(revision.up)) {
    // Its file was corrected since: what is there now is applied as if for the first time.
    await forget(sql, row.id);
    return;
  }
  const text = forward ? revision?.up : row.down;
  if (text === undefined || !isRepeatable(text)) {
    throw new Conflict(
      `Revision ${row.id} was interrupted while ${row.state}. See whether its statement took effect, then: svc database repair ${row.id} --applied (or --not-applied)`,
    );
  }
  await runAlone(sql, `${forward ? "up" : "down"}.sql of revision ${row.id}`, text, true);
  if (forward) await setState(sql, row.id, "applied");
  else await forget(sql, row.id);
}
