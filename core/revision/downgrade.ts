import type { Sql } from "../../drizzle/sql.ts";
import { Conflict, SvcError } from "../errors.ts";
import { type After, applyDown } from "./apply.ts";
import { fold, literal } from "./sql_text.ts";
import { withLock } from "./lock.ts";
import { type Loss, readMarks } from "./marks.ts";
import { isOverwritten, planDowngrade } from "./plan.ts";
import { type Revision, readRevisions } from "./read.ts";
import type { Applied } from "./store.ts";
import { syncTriggers } from "./triggers.ts";
import {
  afterStep,
  type ChangeOptions,
  countedDown,
  headText,
  isOurs,
  lockOptions,
  readyRevisions,
} from "./upgrade.ts";

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
    const { applied, finished } = await readyRevisions(sql, known);
    const target = countedDown(options.target ?? "-1", "-", finished.length);
    const plan = target === "-0" && finished.length > 0 ? [] : planDowngrade(known, applied, target);
    for (const row of plan) refuseNoWay(row, known);
    if (!options.allowDataLoss) await refuseLoss(sql, plan);
    let left = applied;
    for (const row of plan) {
      options.begin?.(row.id);
      left = left.filter(({ id }) => id !== row.id);
      const guard = options.allowDataLoss ? undefined : lossGuard(row);
      // What is left of a newer release has triggers that this one does not know.
      const after = isOurs(known, left) ? afterStep(row.down) : undefined;
      await applyDown(sql, row, { guard, after, onRetry: options.notice });
      options.log?.(row.id);
    }
    if (isOurs(known, left)) await syncTriggers(sql, { onRetry: options.notice });
    return { reverted: [...finished, ...plan.map(({ id }) => id)], head: headText(known, left) };
  });
}

/** @throws Conflict where there is no way back, or none that the files vouch for */
export function refuseNoWay(row: Applied, known: readonly Revision[]): void {
  const { id, down, manifest } = row;
  if (isOverwritten(row, known)) {
    throw new Conflict(
      `The way back of revision ${id} was changed in the database: to take that of its files, svc database repair ${id} --accept`,
    );
  }
  const { irreversible } = readMarks(down);
  if (irreversible === undefined && !manifest.irreversible) return;
  const reason = irreversible ? `: ${irreversible}` : "";
  throw new Conflict(
    `Revision ${id} cannot be taken back${reason}. A backup of before it can: svc database restore`,
  );
}

/**
 * Looks whether there is anything to lose: an empty table, or a column that nobody filled, is no loss. Asked for the
 * whole plan before it begins, and again in the transaction of each step: a step may bring a name back that another one
 * then drops (a rename), and servers go on writing.
 */
async function refuseLoss(sql: Pick<Sql, "unsafe">, plan: readonly Applied[]): Promise<void> {
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

/** undefined where nothing is marked, as for most. */
function lossGuard(row: Applied): After | undefined {
  const losses = readMarks(row.down).losses.filter(({ kind }) => kind !== "other");
  if (losses.length === 0) return undefined;
  return async (sql) => {
    for (const loss of losses) {
      if (!("table" in loss)) continue;
      const name = checked(loss.table);
      const [found] = await sql.unsafe(`select to_regclass(${literal(name)}) is not null as yes`);
      if (found?.yes) await sql.unsafe(`lock table ${name} in access exclusive mode`);
    }
    await refuseLoss(sql, [{ ...row, down: marksOnly(row.down) }]);
  };
}

/** What is lost in words was asked for before the plan began. */
function marksOnly(down: string): string {
  const lines = down.split("\n").filter((line) => /^\s*--\s*svc:/.test(line));
  return lines.filter((line) => readMarks(line).losses.every(({ kind }) => kind !== "other")).join("\n");
}

async function isThere(sql: Pick<Sql, "unsafe">, loss: Loss): Promise<boolean> {
  if (loss.kind === "other") return true;
  // Not by trying: this may be in a transaction, which an error would end.
  const [found] = await sql.unsafe(`select ${existence(loss)} as yes`);
  if (!found?.yes) return false;
  const [row] = await sql.unsafe(`select exists (${question(loss)}) as yes`);
  return row?.yes === true;
}

function existence(loss: Exclude<Loss, { kind: "other" }>): string {
  const relation = `to_regclass(${literal(checked(loss.kind === "sequence" ? loss.sequence : loss.table))})`;
  if (loss.kind !== "column") return `${relation} is not null`;
  const name = fold(checked(loss.column));
  return `exists (select from pg_attribute where attrelid = ${relation} and attname = ${literal(name)} and not attisdropped)`;
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
