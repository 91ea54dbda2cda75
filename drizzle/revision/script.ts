import { Conflict } from "../../platform/errors.ts";
import { checkStep, type Step, stepDown, stepUp } from "./apply.ts";
import { assertReversible } from "./downgrade.ts";
import { type Revision, readRevisions } from "./history.ts";
import { lockKey, settings } from "./lock.ts";
import { withGuards } from "./loss.ts";
import { planDowngrade, planUpgrade } from "./plan.ts";
import { ask } from "./session.ts";
import { type Applied, readApplied, revisionTable } from "./store.ts";
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
  return script(plan.map(stepUp), allowDataLoss, `${revisionTable};`);
}

/** The SQL that `downgrade` would run now. Changes nothing. */
export async function downgradeScript(options: ScriptOptions): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const { url, target, allowDataLoss } = options;
  const plan = planDowngrade(known, await readOnly(url), target);
  for (const row of plan) assertReversible(row);
  return script(plan.map(stepDown), allowDataLoss);
}

/** @throws Conflict when a revision was interrupted, which no script can finish */
async function readOnly(url: string): Promise<Applied[]> {
  const applied = (await ask(url, readApplied)) ?? [];
  const one = applied.find(({ state }) => state !== "applied");
  if (!one) return applied;
  const command = one.state === "applying" ? "upgrade" : "downgrade";
  throw new Conflict(`Revision ${one.id} was interrupted while ${one.state}: run svc database ${command}`);
}

function render(step: Step, allowDataLoss: boolean): string {
  checkStep(step);
  const { id, text, isAlone, begin, end } = step;
  const body = (allowDataLoss ? text : withGuards(text)).trim();
  // The text may end with a comment after an unterminated statement.
  const ended = /;$/.test(body) && !body.split("\n").at(-1)!.includes("--") ? body : `${body}\n;`;
  const commit = isAlone ? "" : "\ncommit;\n";
  return `-- Revision ${id}\n\n${isAlone ? begin : "begin"};\n\n${ended}\n\n${settings}\n${end};\n${commit}`;
}

function script(steps: readonly Step[], allowDataLoss = false, before = ""): string {
  if (steps.length === 0) return "-- Nothing to do\n";
  const rendered = steps.map((step) => render(step, allowDataLoss));
  const lock = `do $$ begin
  if not pg_try_advisory_lock(${lockKey}) then raise exception 'another schema change is running'; end if;
end $$;`;
  const unlock = `select pg_advisory_unlock(${lockKey});`;
  const header = "-- For psql with ON_ERROR_STOP. Written by svc; nothing has been run.";
  return [
    header,
    settings.trim(),
    lock,
    before,
    dropTriggersScript,
    ...rendered,
    createTriggersScript(),
    unlock,
  ]
    .filter(Boolean)
    .map((part) => `${part}\n`)
    .join("\n");
}
