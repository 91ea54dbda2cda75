import { Conflict } from "../../platform/errors.ts";
import type { Sql } from "../connection/sql.ts";
import { triggers as ourTriggers } from "../triggers/index.ts";
import { apply, stepUp } from "./apply.ts";
import { headsOf, type Revision, readRevisions } from "./history.ts";
import { withLock } from "./lock.ts";
import { refuseLosses } from "./loss.ts";
import { isHead, oneHead, planUpgrade, withParents } from "./plan.ts";
import type { After } from "./step.ts";
import { type Applied, createRevisionTable, readApplied } from "./store.ts";
import { installTriggers, type SyncResult, syncTriggers } from "./triggers.ts";

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
  const { url, patience, notice } = options;
  return withLock({ url, patience, notice, purpose: "svc database upgrade" }, async (sql) => {
    await createRevisionTable(sql);
    const applied = (await readApplied(sql)) ?? [];
    const plan = planUpgrade(known, applied, options.target);
    const allowDataLoss = options.allowDataLoss || (applied.length === 0 && (await isEmpty(sql)));
    const command = `svc database upgrade${options.target ? ` ${options.target}` : ""}`;
    const scripts = plan.map(({ up }) => up);
    if (!allowDataLoss) await refuseLosses(sql, scripts, command, notice);
    for (const revision of plan) {
      options.begin?.(revision.id);
      await apply(sql, stepUp(revision), {
        allowDataLoss,
        after: afterStep(revision.up),
        onRetry: notice,
        othersFollow: revision !== plan.at(-1),
        again: applied.some(({ id }) => id === revision.id),
      });
      options.log?.(revision.id);
    }
    const now = (await readApplied(sql)) ?? [];
    const triggers = knowsAll(known, now) ? await syncTriggers(sql, { onRetry: notice }) : untouched;
    return { applied: plan.map(({ id }) => id), head: headText(known, now), triggers };
  });
}

/** Whether there are no other tables, so that an earlier revision of the plan wrote every row that a later one meets. */
async function isEmpty(sql: Sql): Promise<boolean> {
  const tables =
    await sql`select from pg_stat_user_tables where relid <> 'public.revision'::regclass limit 1`;
  return tables.length === 0;
}

const untouched: SyncResult = { created: [], repaired: [], removed: [], filled: {} };

/** The heads of the applied revisions, as text. */
export function headText(known: readonly Revision[], applied: readonly Applied[]): string {
  return headsOf(withParents(known, applied)).join(", ") || "base";
}

/** Whether this release knows all applied revisions: the triggers of a newer one must be left alone. */
export function knowsAll(known: readonly Revision[], applied: readonly { id: string }[]): boolean {
  const ours = new Set(known.map(({ id }) => id));
  return applied.every(({ id }) => ours.has(id));
}

/**
 * Synchronises every trigger and fills every row.
 * @throws Conflict on the schema of a newer release, whose triggers this one does not know
 */
export async function syncAll(sql: Sql, onRetry: ChangeOptions["notice"]): Promise<SyncResult> {
  const known = await readRevisions();
  if (!knowsAll(known, (await readApplied(sql)) ?? [])) {
    throw new Conflict(
      "The schema belongs to a newer release: run svc database sync-triggers of that release",
    );
  }
  return syncTriggers(sql, { everything: true, onRetry });
}

/**
 * Repairs our triggers in the transaction of a step that touches their tables: a trigger function that refers to a
 * dropped column would make every write fail.
 */
export function afterStep(text: string): After | undefined {
  return ourTriggers.some(({ table }) => text.includes(table)) ? (sql) => installTriggers(sql) : undefined;
}
