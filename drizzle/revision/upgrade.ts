import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { triggers as ourTriggers } from "../triggers/index.ts";
import { finishInterrupted } from "./alone.ts";
import { applyUp } from "./apply.ts";
import { headsOf, inOrder, type Revision, readRevisions } from "./history.ts";
import { withLock } from "./lock.ts";
import { refuseLosses } from "./loss.ts";
import { isHead, oneHead, planUpgrade, withParents } from "./plan.ts";
import type { After } from "./step.ts";
import { type Applied, createRevisionTable, readApplied } from "./store.ts";
import { inspectTriggers, installTriggers, isInSync, type SyncResult, syncTriggers } from "./triggers.ts";

export interface ChangeOptions {
  url: string;
  /** See planUpgrade and planDowngrade. */
  target?: string;
  /** Drop rows and values that tables hold. */
  allowDataLoss?: boolean;
  /** Called when a revision starts, and when it is done. */
  begin?: (revision: string) => void;
  log?: (revision: string) => void;
  /** Called with the reason for a wait. */
  notice?: (message: string) => void;
  /** Seconds to wait for another schema change. */
  patience?: number;
  /** Defaults to those of this release. */
  revisions?: readonly Revision[];
}

export interface UpgradeResult {
  applied: string[];
  /** The heads that the database is at now, as text. */
  head: string;
  triggers: SyncResult;
}

/**
 * Brings the schema to its one head, or to `target`: each revision in its own transaction, then the triggers. Safe to
 * run from several machines at once: one does the work, the others wait and then find nothing to do.
 *
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 * @throws Conflict when the release has several heads, when the database's revisions are not ours, when another process
 * holds the lock for too long, or when rows or values would be lost and `allowDataLoss` is not set
 */
export async function upgrade(options: ChangeOptions): Promise<UpgradeResult> {
  const known = options.revisions ?? (await readRevisions());
  // Checked before the database is queried: a release with two heads is invalid.
  if (isHead(options.target ?? "head")) oneHead(known);
  const idle = (sql: Sql) => nothingToDo(sql, known, options.target);
  const { url, patience, notice } = options;
  return withLock({ url, patience, notice, purpose: "svc database upgrade", unless: idle }, async (sql) => {
    await createRevisionTable(sql);
    const { applied, finished } = await readyRevisions(sql, known, "applying", options);
    const target = countedDown(options.target, "+", finished.length);
    const plan = target === "+0" && finished.length > 0 ? [] : planUpgrade(known, applied, target);
    const allowDataLoss = options.allowDataLoss || (await isOwnWork(sql, applied));
    if (!allowDataLoss) {
      const scripts = plan.map(({ up }) => up);
      await refuseLosses(sql, scripts, `svc database upgrade${options.target ? ` ${options.target}` : ""}`);
    }
    for (const revision of plan) {
      options.begin?.(revision.id);
      const othersFollow = revision !== plan.at(-1);
      const after = afterStep(revision.up);
      await applyUp(sql, revision, { allowDataLoss, after, onRetry: options.notice, othersFollow });
      options.log?.(revision.id);
    }
    const now = (await readApplied(sql)) ?? [];
    const triggers = isOurs(known, now) ? await syncTriggers(sql, { onRetry: options.notice }) : untouched;
    const done = [...finished, ...plan.map(({ id }) => id)];
    return { applied: done, head: headText(known, now), triggers };
  });
}

/** Applies all revisions in order, including unmerged lines. For a database that holds nothing else. */
export async function applyEach(url: string, revisions: readonly Revision[]): Promise<void> {
  // Each run opens a connection and inspects all triggers.
  const targets = headsOf(revisions).length === 1 ? ["head"] : inOrder(revisions).map(({ id }) => id);
  for (const target of targets) await upgrade({ url, revisions, target, allowDataLoss: true });
}

/** Whether an earlier revision wrote every row that a revision can meet, because the database had no tables. */
async function isOwnWork(sql: Sql, applied: readonly Applied[]): Promise<boolean> {
  if (applied.length > 0) return false;
  const [row] = await sql.unsafe(`
    select not exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'm', 'f', 'S') and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
        and c.oid <> 'public.revision'::regclass
        and not exists (select from pg_depend d
          where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')) as yes`);
  return row?.yes === true;
}

/** Returns the result if nothing needs to change. Takes one query and no lock, which is enough for most upgrades. */
async function nothingToDo(
  sql: Sql,
  known: readonly Revision[],
  target: string | undefined,
): Promise<UpgradeResult | undefined> {
  const [applied, found] = await Promise.all([readApplied(sql), inspectTriggers(sql)]);
  if (!applied || applied.some(({ state }) => state !== "applied")) return undefined;
  if (planUpgrade(known, applied, target).length > 0) return undefined;
  if (isOurs(known, applied) && !isInSync(found)) return undefined;
  return { applied: [], head: headText(known, applied), triggers: untouched };
}

const untouched: SyncResult = { created: [], repaired: [], removed: [], filled: {} };

/** The heads of the applied revisions, as text. */
export function headText(known: readonly Revision[], applied: readonly Applied[]): string {
  return headsOf(withParents(known, applied)).join(", ") || "base";
}

/** Whether the schema belongs to this release alone: triggers of a newer release must be left alone. */
export function isOurs(known: readonly Revision[], applied: readonly { id: string }[]): boolean {
  const ours = new Set(known.map(({ id }) => id));
  return applied.every(({ id }) => ours.has(id));
}

/**
 * Synchronises every trigger and fills every row.
 * @throws Conflict on the schema of a newer release, whose triggers this one does not know
 */
export async function syncAll(sql: Sql, onRetry: ChangeOptions["notice"]): Promise<SyncResult> {
  const known = await readRevisions();
  if (!isOurs(known, (await readApplied(sql)) ?? [])) {
    throw new Conflict(
      "The schema belongs to a newer release: run svc database sync-triggers of that release",
    );
  }
  return syncTriggers(sql, { everything: true, onRetry });
}

/** Reduces `+2` to `+1` if one of them was started by a killed run and has been finished now. */
export function countedDown(
  target: string | undefined,
  sign: "+" | "-",
  finished: number,
): string | undefined {
  if (target === undefined || finished === 0 || !new RegExp(`^\\${sign}\\d+$`).test(target)) return target;
  return `${sign}${Math.max(0, Number(target.slice(1)) - finished)}`;
}

/** Finishes interrupted revisions, then returns what is applied; `finished` lists the ids of those that were `doing` this. */
export async function readyRevisions(
  sql: Sql,
  known: readonly Revision[],
  doing: "applying" | "reverting",
  { allowDataLoss, notice }: Pick<ChangeOptions, "allowDataLoss" | "notice">,
): Promise<{ applied: Applied[]; finished: string[] }> {
  const before = (await readApplied(sql)) ?? [];
  const interrupted = before.filter(({ state }) => state !== "applied");
  if (interrupted.length === 0) return { applied: before, finished: [] };
  for (const row of interrupted) {
    await finishInterrupted(sql, row, known, { allowDataLoss, onRetry: notice });
  }
  const applied = (await readApplied(sql)) ?? [];
  const there = new Set(applied.map(({ id }) => id));
  const finished = interrupted.filter(
    ({ id, state }) => state === doing && there.has(id) === (state === "applying"),
  );
  return { applied, finished: finished.map(({ id }) => id) };
}

/**
 * Repairs our triggers in the transaction of a step that touches their tables: a trigger function that refers to a
 * dropped column would make every write fail.
 */
export function afterStep(text: string): After | undefined {
  return ourTriggers.some(({ table }) => text.includes(table)) ? (sql) => installTriggers(sql) : undefined;
}
