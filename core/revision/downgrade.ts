import type { Sql } from "../../drizzle/sql.ts";
import { Conflict, SvcError } from "../errors.ts";
import { applyDown } from "./apply.ts";
import { headsOf } from "./graph.ts";
import { withLock } from "./lock.ts";
import { type Loss, readMarks } from "./marks.ts";
import { planDowngrade } from "./plan.ts";
import { readRevisions } from "./read.ts";
import type { Applied } from "./store.ts";
import { syncTriggers } from "./triggers.ts";
import { afterStep, type ChangeOptions, lockOptions, readyRevisions } from "./upgrade.ts";

/**
 * Takes revisions back, by default exactly one: each in its own transaction, by the SQL that the database keeps, so
 * that an older release can take back what only a newer one knows.
 *
 * @throws Conflict when rows or values would be lost and `allowDataLoss` is not given, before anything is changed;
 * when there is no way back; see also `upgrade`
 */
export async function downgrade(
  options: ChangeOptions & { allowDataLoss?: boolean },
): Promise<{ reverted: string[]; head: string }> {
  const known = options.revisions ?? (await readRevisions());
  return withLock(lockOptions(options, "svc database downgrade"), async (sql) => {
    const applied = await readyRevisions(sql, known);
    const plan = planDowngrade(known, applied, options.target);
    for (const row of plan) refuseIrreversible(row);
    if (!options.allowDataLoss) await refuseLoss(sql, plan);
    for (const row of plan) {
      options.begin?.(row.id);
      await applyDown(sql, row, { after: afterStep(row.down), onRetry: options.notice });
      options.log?.(row.id);
    }
    await syncTriggers(sql, { onRetry: options.notice });
    const gone = new Set(plan.map(({ id }) => id));
    const left = applied.filter(({ id }) => !gone.has(id));
    return { reverted: [...gone], head: headsOf(left).join(", ") || "base" };
  });
}

function refuseIrreversible({ id, down, manifest }: Applied): void {
  const { irreversible } = readMarks(down);
  if (irreversible === undefined && !manifest.irreversible) return;
  const reason = irreversible ? `: ${irreversible}` : "";
  throw new Conflict(
    `Revision ${id} cannot be taken back${reason}. A backup of before it can: svc database restore`,
  );
}

/** Looks whether there is anything to lose: an empty table, or a column that nobody filled, is no loss. */
async function refuseLoss(sql: Sql, plan: readonly Applied[]): Promise<void> {
  const losses: string[] = [];
  for (const row of plan) {
    for (const loss of readMarks(row.down).losses) {
      if (await isThere(sql, loss)) losses.push(describe(loss));
    }
  }
  if (losses.length === 0) return;
  throw new Conflict(
    `This would lose ${losses.join(", ")}. Make a backup (svc database dump), then add --allow-data-loss`,
  );
}

async function isThere(sql: Sql, loss: Loss): Promise<boolean> {
  if (loss.kind === "other") return true;
  try {
    const [row] = await sql.unsafe(`select exists (${question(loss)}) as yes`);
    return row?.yes === true;
  } catch (error) {
    // 42P01, 42703: a later step of the plan, or somebody, has removed it: nothing is there to lose.
    if (["42P01", "42703"].includes(String((error as { code?: unknown }).code))) return false;
    throw error;
  }
}

function question(loss: Exclude<Loss, { kind: "other" }>): string {
  switch (loss.kind) {
    case "table":
      return `select from ${checked(loss.table)}`;
    case "column":
      return `select from ${checked(loss.table)} where ${checked(loss.column)} is not null`;
    case "sequence":
      return `select from ${checked(loss.sequence)} where is_called`;
  }
}

function describe(loss: Loss): string {
  switch (loss.kind) {
    case "table":
      return `the rows of ${loss.table}`;
    case "column":
      return `the values of ${loss.table}.${loss.column}`;
    case "sequence":
      return `the position of ${loss.sequence}`;
    case "other":
      return loss.text;
  }
}

/** A name as the mark has it: quoted where it has to be, and nothing but a name (marks are text that somebody wrote). */
function checked(name: string): string {
  const part = String.raw`(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")`;
  if (!new RegExp(`^${part}(?:\\.${part})*$`).test(name)) {
    throw new SvcError("configuration", `"-- svc: data-loss" names ${name}, which is no name`);
  }
  return name;
}
