import type { Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { guardAlone, runAlone } from "./alone.ts";
import { explainFailure, isStatementError } from "./failure.ts";
import type { Revision } from "./history.ts";
import { settings } from "./lock.ts";
import { losingStatements, lossGuard, lossRefusal } from "./loss.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { type Statement, splitStatements } from "./statements.ts";
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
/** Where an operator reads on. */
export const guide = 'docs/release.md, "If the upgrade fails"';

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
export interface Step {
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

/** A revision's SQL as it is sent, so that a failure can be found in the file it came from. */
interface Message {
  sql: string;
  statements: Statement[];
  /** The offset in the file for an offset in `sql`; undefined for what the file does not hold. */
  inFile(offset: number): number | undefined;
}

/**
 * Puts a marker after each statement, which answers with a row when the statement is done: of most errors PostgreSQL says
 * no position. With `guarded`, also a guard before each statement that may lose something.
 */
function composeMessage(text: string, { guarded }: { guarded: boolean }): Message {
  const statements = splitStatements(text);
  const losses = new Map(
    (guarded ? losingStatements(text) : []).map(({ statement, losses: own }) => [statement.offset, own]),
  );
  const pieces: { begin: number; offset: number; length: number }[] = [];
  let sql = "";
  let copied = 0;
  const copy = (end: number) => {
    pieces.push({ begin: sql.length, offset: copied, length: end - copied });
    sql += text.slice(copied, end);
    copied = end;
  };
  for (const [at, { offset, text: own }] of statements.entries()) {
    copy(offset);
    const guard = lossGuard(losses.get(offset) ?? []);
    if (guard) sql += `${guard}\n`;
    copy(offset + own.length);
    sql += `\n;select ${at + 1} as svc_done`;
  }
  copy(text.length);
  return {
    sql,
    statements,
    inFile(offset) {
      const piece = pieces.findLast(({ begin }) => begin <= offset);
      const within = piece ? offset - piece.begin : -1;
      return piece && within < piece.length ? piece.offset + within : undefined;
    },
  };
}

/** Sends SQL that holds a message. @returns how many of its statements were done; also told when it fails */
async function send(sql: Pick<Sql, "unsafe">, text: string, onDone: (count: number) => void): Promise<void> {
  await sql.unsafe(text).forEach((row) => {
    if (typeof row.svc_done === "number") onDone(row.svc_done);
  });
}
