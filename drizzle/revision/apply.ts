import type { Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { runAlone } from "./alone.ts";
import { explainFailure, isStatementError } from "./failure.ts";
import type { Revision } from "./history.ts";
import { settings } from "./lock.ts";
import { losingStatements, lossGuard, lossRefusal, refuseLosses } from "./loss.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { type Statement, splitStatements } from "./statements.ts";
import { guide, rollback, type Step, type StepOptions, whenFree } from "./step.ts";
import { type Applied, forget, forgetScript, record, recordScript, setState } from "./store.ts";

/**
 * Applies and records one revision. A revision whose statements allow no transaction is recorded by a row that says
 * `applying` before and `applied` after.
 *
 * @throws SvcError naming revision, line, statement, PostgreSQL's reason and the next step; the revision leaves no
 * trace
 * @throws Conflict when rows or values would be lost
 */
export async function applyUp(sql: Sql, revision: Revision, options: StepOptions = {}): Promise<void> {
  const { id, up, manifest } = revision;
  const step: Step = {
    what: `up.sql of revision ${id}`,
    command: "svc database upgrade",
    undone: `Nothing of revision ${id} was applied; earlier revisions remain applied. Correct the cause, then run: svc database upgrade (${guide})`,
    text: up,
    book: recordScript(revision),
  };
  await apply(sql, id, step, options, {
    isAlone: !manifest.transactional,
    begin: () => record(sql, revision, "applying"),
    undo: () => forget(sql, id),
    end: () => setState(sql, id, "applied"),
  });
}

/** Reverts one revision with the down SQL stored in the database. */
export async function applyDown(sql: Sql, row: Applied, options: StepOptions = {}): Promise<void> {
  const { id, down } = row;
  const step: Step = {
    what: `down.sql of revision ${id}`,
    command: "svc database downgrade",
    undone: `Revision ${id} is still applied, as it was. Correct the cause, then run: svc database downgrade (${guide})`,
    text: down,
    book: forgetScript(id),
  };
  await apply(sql, id, step, options, {
    begin: () => setState(sql, id, "reverting"),
    undo: () => setState(sql, id, "applied"),
    end: () => forget(sql, id),
  });
}

/** How a step without a transaction is recorded. */
interface Records {
  /** Whether to run without a transaction, whatever the text declares. */
  isAlone?: boolean;
  begin: () => Promise<void>;
  undo: () => Promise<void>;
  end: () => Promise<void>;
}

async function apply(
  sql: Sql,
  id: string,
  step: Step,
  options: StepOptions,
  { isAlone = false, begin, undo, end }: Records,
): Promise<void> {
  const marks = readMarks(step.text);
  marks.transactional &&= !isAlone;
  checkStatements(step.what, step.text, marks);
  if (marks.transactional) return applyStep(sql, step, options);
  // Each statement is checked again before it runs: an index before it can take hours.
  if (!options.allowDataLoss) await refuseLosses(sql, [step.text], step.command);
  await begin();
  await runAlone(sql, step, id, undo, options);
  await end();
  await options.after?.(sql);
}

/** Sends everything in one message where possible, so that 200 revisions take 200 round trips, not 800. */
async function applyStep(sql: Sql, step: Step, options: StepOptions): Promise<void> {
  const { what, command, text, book } = step;
  const { allowDataLoss = false, after, onRetry, othersFollow } = options;
  const message = composeMessage(text, { guarded: !allowDataLoss });
  const begin = "begin;\n";
  const flush = othersFollow ? "set local synchronous_commit = off;\n" : "";
  // The text may have set anything, itself or in what it calls: a role may not write `revision`.
  const body = `${begin}${message.sql}\n;\n${settings}${flush}${book};\n`;
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
        await send(sql, after ? body : `${body}commit`, onDone);
        if (!after) return;
        phase = "triggers";
        await after(sql);
        phase = "commit";
        await sql.unsafe("commit");
      } catch (error) {
        await rollback(sql);
        throw error;
      }
    });
  } catch (error) {
    const refusal = lossRefusal(error, command);
    if (refusal) throw refusal;
    if (!isStatementError(error)) {
      const whole = `The revision is applied as a whole or not at all: ${command} continues from there`;
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

/** PostgreSQL counts characters; JavaScript counts those outside the Basic Multilingual Plane twice. */
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
 * Finds the statement that violated a deferred constraint, since the error at commit names none: runs the step again
 * with every constraint checked immediately, and rolls it back.
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

/** A revision's SQL as sent, with enough information to locate a failure in its file. */
interface Message {
  sql: string;
  statements: Statement[];
  /** Maps an offset in `sql` to one in the file; undefined for text that is not in the file. */
  inFile(offset: number): number | undefined;
}

/**
 * Adds a marker after each statement, which returns a row when the statement is done, since most PostgreSQL errors
 * carry no position. With `guarded`, also adds a guard before each statement that may lose data.
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

/** Sends SQL that contains a message. `onDone` receives the number of statements done, even if a later one fails. */
async function send(sql: Pick<Sql, "unsafe">, text: string, onDone: (count: number) => void): Promise<void> {
  await sql.unsafe(text).forEach((row) => {
    if (typeof row.svc_done === "number") onDone(row.svc_done);
  });
}
