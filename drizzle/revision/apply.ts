import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { explainFailure, isStatementError } from "./failure.ts";
import type { Revision } from "./history.ts";
import { settings } from "./lock.ts";
import { guards, lossRefusal } from "./loss.ts";
import { checkStatements, concurrentIndex, isResumable, readMarks } from "./marks.ts";
import { type Statement, splitStatements, wordsOf } from "./statements.ts";
import { guide, rollback, type StepOptions, whenFree } from "./step.ts";
import { type Applied, forgetScript, recordScript, stateScript } from "./store.ts";

/** One direction of a revision. */
export interface Step {
  id: string;
  /** `up.sql of revision ID` */
  what: string;
  /** The command that runs it. */
  command: string;
  /** The state after a failure that had no effect, and the command to run next. */
  unchanged: string;
  text: string;
  /** Whether it runs without a transaction. */
  isAlone: boolean;
  /** The SQL that records it: before and after, and if it had no effect. The first and last are for one that `isAlone`. */
  begin: string;
  end: string;
  undo: string;
}

export function stepUp(revision: Revision): Step {
  const { id, up, manifest } = revision;
  const isAlone = !manifest.transactional || !readMarks(up).transactional;
  return {
    id,
    what: `up.sql of revision ${id}`,
    command: "svc database upgrade",
    unchanged: `Nothing of revision ${id} was applied; earlier revisions remain applied. Correct the cause, then run: svc database upgrade (${guide})`,
    text: up,
    isAlone,
    begin: recordScript(revision, "applying"),
    end: isAlone ? stateScript(id, "applied") : recordScript(revision),
    undo: forgetScript(id),
  };
}

/** With the down SQL stored in the database. */
export function stepDown({ id, down }: Applied): Step {
  return {
    id,
    what: `down.sql of revision ${id}`,
    command: "svc database downgrade",
    unchanged: `Revision ${id} is still applied, as it was. Correct the cause, then run: svc database downgrade (${guide})`,
    text: down,
    isAlone: !readMarks(down).transactional,
    begin: stateScript(id, "reverting"),
    end: forgetScript(id),
    undo: stateScript(id, "applied"),
  };
}

/** @throws SvcError `configuration` when the text contains what a revision may not */
export const checkStep = ({ what, text, isAlone }: Step) =>
  checkStatements(what, text, { transactional: !isAlone });

/**
 * Runs and records one step: in a transaction, or else with a record of its beginning. `again`: an earlier run was interrupted.
 *
 * @throws SvcError naming file, line, statement, PostgreSQL's reason and the next step
 * @throws Conflict when rows or values would be lost, or when a person has to look at an interrupted statement
 */
export async function apply(
  sql: Sql,
  step: Step,
  { again = false, ...options }: StepOptions & { again?: boolean },
): Promise<void> {
  checkStep(step);
  if (!step.isAlone) return await applyTogether(sql, step, options);
  if (again && !isResumable(step.text)) throw new Conflict(`${step.what} was interrupted. ${doubt(step.id)}`);
  await applyAlone(sql, step, again);
  await options.after?.(sql);
}

const doubt = (id: string) =>
  `Check whether its statement took effect, then run: svc database repair ${id} --applied (or --not-applied)`;

async function applyTogether(sql: Sql, step: Step, options: StepOptions): Promise<void> {
  const { what, command, text, end, unchanged } = step;
  const { allowDataLoss = false, after, onRetry, othersFollow = false } = options;
  const guardOf = allowDataLoss ? new Map<number, string>() : guards(text);
  const flush = othersFollow ? "set local synchronous_commit = off;\n" : "";
  let running: Statement | undefined;
  let before = "";
  const transaction = async () => {
    // Goes with the first statement, because a round trip less is a tenth of the time of many small revisions.
    let opening = "begin;\n";
    try {
      for (const statement of splitStatements(text)) {
        running = statement;
        before = `${opening}${guardOf.get(statement.offset) ?? ""}\n`;
        opening = "";
        await sql.unsafe(before + statement.text);
      }
      running = undefined;
      // The text may have set anything, itself or in what it calls: a role may not write `revision`.
      const rest = `${opening}${settings}${flush}${end};\n`;
      await sql.unsafe(after ? rest : `${rest}commit`);
      if (!after) return;
      await after(sql);
      await sql.unsafe("commit");
    } catch (error) {
      await rollback(sql);
      throw error;
    }
  };
  try {
    await whenFree(what, onRetry, transaction);
  } catch (error) {
    const whole = `The revision is applied as a whole or not at all: ${command} continues from there`;
    const next = isStatementError(error) ? unchanged : whole;
    throw (
      lossRefusal(error, command) ?? explainFailure(error, { what, text, statement: running, before, next })
    );
  }
}

/** Runs the statements one after another, each without a transaction. */
async function applyAlone(sql: Sql, step: Step, again: boolean): Promise<void> {
  const { id, what, command, text, begin, end, undo, unchanged } = step;
  if (!again) await sql.unsafe(begin);
  // CREATE INDEX CONCURRENTLY waits for other transactions without blocking them, so it needs no lock timeout.
  await sql.unsafe(`${settings}set lock_timeout = 0`);
  for (const [done, statement] of splitStatements(text).entries()) {
    try {
      await runAlone(sql, statement.text, again);
    } catch (error) {
      // What a CALL or DO has committed stays.
      const first = wordsOf(statement.text)[0] ?? "";
      const hadNoEffect = done === 0 && !again && isStatementError(error) && !["CALL", "DO"].includes(first);
      if (hadNoEffect) await sql.unsafe(`${settings}${undo}`);
      const resume = `Earlier statements took effect. Correct the cause, then: ${command} resumes where it stopped (${guide})`;
      const next = hadNoEffect ? unchanged : isResumable(text) ? resume : doubt(id);
      throw explainFailure(error, { what, text, statement, next });
    }
  }
  await sql.unsafe(`${settings}${end}`);
}

/**
 * Runs one statement. An invalid index is what a failed or killed CREATE INDEX CONCURRENTLY leaves behind. `again`: the
 * statement may have run before.
 */
async function runAlone(sql: Sql, statement: string, again: boolean): Promise<void> {
  const index = concurrentIndex(wordsOf(statement));
  if (!index) {
    await sql.unsafe(statement);
    return;
  }
  const { name, isNew } = index;
  if (isNew) await dropInvalid(sql, name);
  if (again && (await isThere(sql, name)) === isNew) return;
  try {
    await sql.unsafe(statement);
  } catch (error) {
    if (isNew && isStatementError(error)) await dropInvalid(sql, name);
    throw error;
  }
}

async function isThere(sql: Sql, index: string): Promise<boolean> {
  const [row] = await sql`select to_regclass(${index}) is not null as yes`;
  return row?.yes === true;
}

async function dropInvalid(sql: Sql, index: string): Promise<void> {
  const invalid = await sql`
    select from pg_index where indexrelid = to_regclass(${index}) and not (indisvalid and indisready)`;
  if (invalid.length > 0) await sql.unsafe(`drop index concurrently ${index}`);
}
