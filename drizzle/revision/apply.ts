import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { errorCode, isPostgresError } from "../database_error.ts";
import { explainFailure, isStatementError } from "./failure.ts";
import { settings } from "./lock.ts";
import { losingStatements, lossGuard, lossRefusal } from "./loss.ts";
import { checkStatements, concurrentIndex, isResumable, readMarks } from "./marks.ts";
import { composeMessage, type Message, send } from "./message.ts";
import type { Revision } from "./read.ts";
import { splitStatements, wordsOf } from "./statements.ts";
import { type Applied, forget, forgetScript, record, recordScript, setState } from "./store.ts";

/** What else happens in the transaction of a step: triggers that the step would leave broken. */
export type After = (transaction: Pick<Sql, "unsafe">) => Promise<void>;

export interface StepOptions {
  /** Drop rows and values without asking whether there are any. */
  allowDataLoss?: boolean;
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
const guide = 'docs/release.md, "If the upgrade fails"';

/**
 * Applies one revision and records it: in one transaction, or, where its statements allow none, by a row that says
 * `applying` before and `applied` after.
 *
 * @throws SvcError naming revision, line, statement, PostgreSQL's reason and the next step; nothing of the revision stays
 * @throws Conflict when rows or values would be lost
 */
export async function applyUp(sql: Sql, revision: Revision, options: StepOptions = {}): Promise<void> {
  const { id, up } = revision;
  const step: Step = {
    what: `up.sql of revision ${id}`,
    command: "svc database upgrade",
    undone: `Nothing of revision ${id} was applied; those before it stay. Correct the cause, then run: svc database upgrade (${guide})`,
    text: up,
    book: recordScript(revision),
  };
  const marks = readMarks(up);
  marks.transactional &&= revision.manifest.transactional;
  checkStatements(step.what, up, marks);
  if (marks.transactional) {
    await applyStep(sql, step, options);
    return;
  }
  await guardAlone(sql, step, options);
  await record(sql, revision, "applying");
  await runAlone(sql, step, id, () => forget(sql, id));
  await setState(sql, id, "applied");
  await options.after?.(sql);
}

/** Takes one revision back, by the down SQL that the database keeps. */
export async function applyDown(sql: Sql, row: Applied, options: StepOptions = {}): Promise<void> {
  const { id, down } = row;
  const step: Step = {
    what: `down.sql of revision ${id}`,
    command: "svc database downgrade",
    undone: `Revision ${id} is still applied, as it was. Correct the cause, then run: svc database downgrade (${guide})`,
    text: down,
    book: forgetScript(id),
  };
  const marks = readMarks(down);
  checkStatements(step.what, down, marks);
  if (marks.transactional) {
    await applyStep(sql, step, options);
    return;
  }
  await guardAlone(sql, step, options);
  await setState(sql, id, "reverting");
  await runAlone(sql, step, id, () => setState(sql, id, "applied"));
  await forget(sql, id);
  await options.after?.(sql);
}

/** One direction of a revision. */
interface Step {
  /** `up.sql of revision ID` */
  what: string;
  /** What runs it. */
  command: string;
  /** What is so after a failure, and what to type. */
  undone: string;
  text: string;
  /** The SQL that records it. */
  book: string;
}

/** Whether a text may leave settings behind for the next one: SET, set_config, RESET, SET ROLE, in whatever it calls. */
export function changesSettings(text: string): boolean {
  return /\b(set|set_config|reset|discard|do|call|select)\b/i.test(text);
}

/** In one message where it can be: 200 revisions are then 200 round trips, not 800. */
async function applyStep(sql: Sql, step: Step, options: StepOptions): Promise<void> {
  const { what, command, text, book } = step;
  const { allowDataLoss = false, after, onRetry, othersFollow } = options;
  const message = composeMessage(text, { guarded: !allowDataLoss });
  const restore = changesSettings(text) ? `;\n${settings}` : "";
  const begin = `begin;\n${othersFollow ? "set local synchronous_commit = off;\n" : ""}`;
  const body = `${begin}${message.sql}\n;\n${book};\n`;
  let done = 0;
  let phase: "step" | "triggers" | "commit" = "step";
  try {
    await whenFree(what, onRetry, async () => {
      done = 0;
      phase = "step";
      const onDone = (count: number) => {
        done = count;
      };
      try {
        await send(sql, after ? body : `${body}commit${restore}`, onDone);
        if (!after) return;
        phase = "triggers";
        await sql.unsafe("set local search_path = public");
        await after(sql);
        phase = "commit";
        await sql.unsafe(`commit${restore}`);
      } catch (error) {
        await rollback(sql);
        throw error;
      }
    });
  } catch (error) {
    const refusal = lossRefusal(error, command);
    if (refusal) throw refusal;
    if (!isStatementError(error)) {
      const whole = `The revision is applied as a whole or not at all: ${command} goes on from there`;
      throw explainFailure(error, { what, text, next: whole });
    }
    const inTriggers = (phase as string) === "triggers";
    const isCommit = !inTriggers && done === message.statements.length;
    const failed = isCommit ? await statementsBeforeDeferred(sql, begin, message, error) : done;
    throw explainFailure(error, {
      what: inTriggers ? `The triggers after ${what}` : what,
      text,
      ...(inTriggers ? {} : { statement: message.statements[failed] }),
      offset: offsetOf(error, body, begin.length, message),
      next: step.undone,
    });
  }
}

/** Where the connection is gone, so is the transaction. */
async function rollback(sql: Sql): Promise<void> {
  try {
    await sql.unsafe("rollback");
  } catch {}
}

/** PostgreSQL counts characters, JavaScript those beyond the first plane twice. */
function offsetOf(
  error: { position?: string },
  sent: string,
  before: number,
  message: Message,
): number | undefined {
  const position = Number(error.position);
  if (!(position > 0)) return undefined;
  const offset = [...sent].slice(0, position - 1).join("").length - before;
  return offset < 0 ? undefined : message.inFile(offset);
}

/**
 * A constraint that is checked at the commit names no statement: finds it by running the step again, each constraint
 * checked at once, and taking it back.
 */
async function statementsBeforeDeferred(
  sql: Sql,
  begin: string,
  message: Message,
  failed: Error & { code: string },
): Promise<number> {
  let done = 0;
  const onDone = (count: number) => {
    done = count;
  };
  const again = await send(sql, `${begin}set constraints all immediate;\n${message.sql}`, onDone).then(
    () => undefined,
    (error: unknown) => error,
  );
  await rollback(sql);
  const isSame = errorCode(again) === failed.code;
  return isSame ? done : message.statements.length;
}

/**
 * Runs a transaction that needs locks on tables in use: one that is not free in 5 s (see withLock) is given up, so that
 * nobody queues up behind us, and the whole is tried again.
 */
export async function whenFree<T>(
  what: string,
  onRetry: StepOptions["onRetry"],
  transaction: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
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

/** Outside of a transaction rows may be written until the statement itself locks its table. */
async function guardAlone(sql: Sql, { text, command }: Step, { allowDataLoss }: StepOptions): Promise<void> {
  if (allowDataLoss) return;
  for (const { losses } of losingStatements(text)) {
    const guard = lossGuard(losses);
    if (!guard) continue;
    await sql.unsafe(guard).catch((error: unknown) => {
      throw lossRefusal(error, command) ?? error;
    });
  }
}

/**
 * Runs the statements of a step that allows no transaction, one after another; `undo` takes back what was recorded before
 * them, and is called where PostgreSQL has refused the first.
 */
async function runAlone(
  sql: Sql,
  { what, command, text, undone }: Omit<Step, "book">,
  id: string,
  undo: () => Promise<void>,
  again = false,
): Promise<void> {
  // PostgreSQL's own waiting is meant here: CREATE INDEX CONCURRENTLY waits for others, and nobody for it.
  await sql.unsafe(`${settings}set lock_timeout = 0`);
  let done = 0;
  try {
    for (const statement of splitStatements(text)) {
      try {
        await runOneAlone(sql, statement.text, again);
        done += 1;
      } catch (error) {
        const isUndone = done === 0 && hadNoEffect(error, text);
        if (isUndone) await undo();
        const doubt = isResumable(text)
          ? `${done === 0 ? "" : "The statements before it took effect. Correct the cause, then: "}${command} goes on where it stopped`
          : `See whether the statement took effect, then: svc database repair ${id} --applied (or --not-applied)`;
        const position = Number((error as { position?: string }).position);
        const offset = position > 0 ? [...statement.text].slice(0, position - 1).join("").length : undefined;
        throw explainFailure(error, {
          ...{ what, text, statement, next: isUndone ? undone : doubt },
          ...(offset === undefined ? {} : { offset: statement.offset + offset }),
        });
      }
    }
  } finally {
    await sql.unsafe("set lock_timeout = '5s'").catch(() => {});
  }
}

/** `again`: an earlier run may have done it, and died before it could note so. */
async function runOneAlone(sql: Sql, statement: string, again: boolean): Promise<void> {
  const words = wordsOf(statement);
  const index = concurrentIndex(words);
  if (index) {
    const state = await indexState(sql, index);
    if (state === "invalid" && words[0] === "CREATE") await sql.unsafe(`drop index concurrently ${index}`);
    if (again && state === (words[0] === "CREATE" ? "valid" : "missing")) return;
  }
  await sql.unsafe(statement);
}

/** Whether PostgreSQL itself has refused a statement, and so undone it; what a CALL or DO has committed stays. */
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
 * Brings what was interrupted without a transaction to an end, or says what a person has to look at.
 * @throws Conflict for a statement of which nobody can tell whether it may be run again
 */
export async function finishInterrupted(sql: Sql, row: Applied, known: readonly Revision[]): Promise<void> {
  const revision = known.find(({ id }) => id === row.id);
  const forward = row.state === "applying";
  if (forward && revision && revision.checksum !== row.checksum && isResumable(revision.up)) {
    // Its file was corrected since: what is there now is applied as if for the first time.
    await forget(sql, row.id);
    return;
  }
  const text = forward ? revision?.up : row.down;
  if (text === undefined || !isResumable(text)) {
    throw new Conflict(
      `Revision ${row.id} was interrupted while ${row.state}. See whether its statement took effect, then: svc database repair ${row.id} --applied (or --not-applied)`,
    );
  }
  const step = {
    what: `${forward ? "up" : "down"}.sql of revision ${row.id}`,
    command: forward ? "svc database upgrade" : "svc database downgrade",
    undone: `Revision ${row.id} is still half-way: correct the cause, then run it again (${guide})`,
    text,
  };
  await runAlone(sql, step, row.id, async () => {}, true);
  if (forward) await setState(sql, row.id, "applied");
  else await forget(sql, row.id);
}
