import { Conflict } from "../errors.ts";
import { changesSettings } from "./apply.ts";
import { refuseNoWay } from "./downgrade.ts";
import { literal } from "./sql_text.ts";
import { lockKey, settings } from "./lock.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { planDowngrade, planUpgrade } from "./plan.ts";
import { type Revision, readRevisions } from "./read.ts";
import {
  type Applied,
  forgetScript,
  readApplied,
  recordScript,
  revisionColumns,
  revisionTable,
} from "./store.ts";

import { ask } from "./session.ts";
import { createTriggersScript, dropTriggersScript } from "./triggers.ts";

interface ScriptOptions {
  url: string;
  target?: string;
  revisions?: readonly Revision[];
}

/** The SQL that `upgrade` would run now, for a person who has to read or to run it with psql. Changes nothing. */
export async function upgradeScript(options: ScriptOptions): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const plan = planUpgrade(known, await readOnly(options.url), options.target);
  const steps = plan.map((revision) => {
    const { id, up, manifest } = revision;
    if (manifest.transactional && readMarks(up).transactional) {
      return step(id, "up.sql", up, true, recordScript(revision), "");
    }
    const done = `update public.revision set state = 'applied', applied_at = now() where id = ${literal(id)}`;
    return step(id, "up.sql", up, false, done, recordScript(revision, "applying"));
  });
  return script(steps, `${revisionTable};\n${revisionColumns};`);
}

/** The SQL that `downgrade` would run now. Changes nothing; what would be lost stands in the marks of the SQL. */
export async function downgradeScript(options: ScriptOptions): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const plan = planDowngrade(known, await readOnly(options.url), options.target);
  for (const row of plan) refuseNoWay(row, known);
  const steps = plan.map(({ id, down }) =>
    step(
      id,
      "down.sql",
      down,
      true,
      forgetScript(id),
      `update public.revision set state = 'reverting' where id = ${literal(id)}`,
    ),
  );
  return script(steps, "");
}

/** @throws Conflict when a revision is half-way: what a script would have to do then is for `svc database upgrade` */
async function readOnly(url: string): Promise<Applied[]> {
  const applied = (await ask(url, readApplied)) ?? [];
  const interrupted = applied.find(({ state }) => state !== "applied");
  if (!interrupted) return applied;
  throw new Conflict(
    `Revision ${interrupted.id} was interrupted while ${interrupted.state}: run svc database upgrade`,
  );
}

/** `begun` is what is noted before a statement that allows no transaction, `book` what is noted behind the step. */
function step(
  id: string,
  file: string,
  text: string,
  transactional: boolean,
  book: string,
  begun: string,
): string {
  const marks = readMarks(text);
  checkStatements(`${file} of revision ${id}`, text, marks);
  const body = text.trim();
  // A comment may stand at the end, behind a statement that nothing ends yet.
  const ended = /;$/.test(body) && !body.split("\n").at(-1)!.includes("--") ? body : `${body}\n;`;
  const title = `-- Revision ${id}\n\n`;
  const restore = changesSettings(text) ? `\n${settings}` : "";
  if (marks.transactional && transactional)
    return `${title}begin;\n\n${ended}\n\n${book};\n\ncommit;\n${restore}`;
  return `${title}${begun};\n\n${ended}\n\n${book};\n${restore}`;
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
