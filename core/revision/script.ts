import { openSql } from "../../drizzle/sql.ts";
import { triggerScript } from "./triggers.ts";
import { operatorsError } from "../database_error.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { planDowngrade, planUpgrade } from "./plan.ts";
import { type Revision, readRevisions } from "./read.ts";
import { type Applied, forgetScript, readApplied, recordScript, revisionTable } from "./store.ts";

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
    return step(id, "up.sql", up, manifest.transactional, recordScript(revision));
  });
  return script(steps, `${revisionTable};\n\n`);
}

/** The SQL that `downgrade` would run now. Changes nothing; what would be lost stands in the marks of the SQL. */
export async function downgradeScript(options: ScriptOptions): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const plan = planDowngrade(known, await readOnly(options.url), options.target);
  const steps = plan.map(({ id, down }) => step(id, "down.sql", down, true, forgetScript(id)));
  return script(steps, "");
}

async function readOnly(url: string): Promise<Applied[]> {
  const sql = openSql(url, { max: 1, fetch_types: false });
  try {
    return (await readApplied(sql)) ?? [];
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

function step(id: string, file: string, text: string, transactional: boolean, book: string): string {
  const marks = readMarks(text);
  checkStatements(`${file} of revision ${id}`, text, marks);
  const body = `${text.trim()}\n\n${book};`;
  const alone = !marks.transactional || !transactional;
  return `-- Revision ${id}\n\n${alone ? body : `begin;\n\n${body}\n\ncommit;`}\n`;
}

function script(steps: readonly string[], before: string): string {
  if (steps.length === 0) return "-- Nothing to do\n";
  const header =
    "-- For psql with ON_ERROR_STOP. Written by svc; nothing has been run.\n\nset search_path = public;\n\n";
  return `${header}${before}${steps.join("\n")}\n-- Triggers\n\n${triggerScript()}`;
}
