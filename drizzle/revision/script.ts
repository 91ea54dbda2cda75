import { Conflict } from "../../platform/errors.ts";
import { assertReversible } from "./downgrade.ts";
import { type Revision, readRevisions } from "./history.ts";
import { lockKey, settings } from "./lock.ts";
import { withGuards } from "./loss.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { planDowngrade, planUpgrade } from "./plan.ts";
import { ask } from "./session.ts";
import {
  type Applied,
  forgetScript,
  readApplied,
  recordScript,
  revisionTable,
  stateScript,
} from "./store.ts";
import { createTriggersScript, dropTriggersScript } from "./triggers.ts";

interface ScriptOptions {
  url: string;
  /** See planUpgrade and planDowngrade. */
  target?: string;
  /** Omit the guards, which stop the script if rows or values would be lost. */
  allowDataLoss?: boolean;
  revisions?: readonly Revision[];
}

/** The SQL that `upgrade` would run now, to read or to run with psql. Changes nothing. */
export async function upgradeScript(options: ScriptOptions): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const { url, target, allowDataLoss } = options;
  const plan = planUpgrade(known, await readOnly(url), target);
  const steps = plan.map((revision) => {
    const { id, up, manifest } = revision;
    if (manifest.transactional && readMarks(up).transactional) {
      return step({ id, file: "up.sql", text: up, book: recordScript(revision), allowDataLoss });
    }
    const begun = recordScript(revision, "applying");
    const book = stateScript(id, "applied");
    return step({ id, file: "up.sql", text: up, book, begun, alone: true, allowDataLoss });
  });
  return script(steps, `${revisionTable};`);
}

/** The SQL that `downgrade` would run now. Changes nothing. */
export async function downgradeScript(options: ScriptOptions): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const { url, target, allowDataLoss } = options;
  const plan = planDowngrade(known, await readOnly(url), target);
  for (const row of plan) assertReversible(row);
  const steps = plan.map(({ id, down }) => {
    const begun = stateScript(id, "reverting");
    return step({ id, file: "down.sql", text: down, book: forgetScript(id), begun, allowDataLoss });
  });
  return script(steps, "");
}

/** @throws Conflict when a revision was interrupted: only `svc database upgrade` can finish it */
async function readOnly(url: string): Promise<Applied[]> {
  const applied = (await ask(url, readApplied)) ?? [];
  const interrupted = applied.find(({ state }) => state !== "applied");
  if (!interrupted) return applied;
  throw new Conflict(
    `Revision ${interrupted.id} was interrupted while ${interrupted.state}: run svc database upgrade`,
  );
}

interface Step {
  id: string;
  file: "up.sql" | "down.sql";
  text: string;
  /** Records the completed step. */
  book: string;
  /** Records the start of a non-transactional statement. */
  begun?: string;
  /** Run without a transaction, whatever the text declares. */
  alone?: boolean;
  allowDataLoss?: boolean;
}

function step({ id, file, text, book, begun = "", alone = false, allowDataLoss = false }: Step): string {
  const transactional = !alone && readMarks(text).transactional;
  checkStatements(`${file} of revision ${id}`, text, { transactional });
  const body = (allowDataLoss ? text : withGuards(text)).trim();
  // The text may end with a comment after an unterminated statement.
  const ended = /;$/.test(body) && !body.split("\n").at(-1)!.includes("--") ? body : `${body}\n;`;
  const title = `-- Revision ${id}\n\n`;
  const done = `${ended}\n\n${settings}\n${book};\n`;
  return title + (transactional ? `begin;\n\n${done}\ncommit;\n` : `${begun};\n\n${done}`);
}

function script(steps: readonly string[], before: string): string {
  if (steps.length === 0) return "-- Nothing to do\n";
  const lock = `do $$ begin
  if not pg_try_advisory_lock(${lockKey}) then raise exception 'another schema change is running'; end if;
end $$;`;
  const unlock = `select pg_advisory_unlock(${lockKey});`;
  const header = "-- For psql with ON_ERROR_STOP. Written by svc; nothing has been run.";
  return [header, settings.trim(), lock, before, dropTriggersScript, ...steps, createTriggersScript(), unlock]
    .filter(Boolean)
    .map((part) => `${part}\n`)
    .join("\n");
}
