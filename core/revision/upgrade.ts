import type { Sql } from "../../drizzle/sql.ts";
import { triggers as ourTriggers } from "../../drizzle/triggers/index.ts";
import { type After, applyUp, finishInterrupted } from "./apply.ts";
import { headsOf } from "./graph.ts";
import { withLock } from "./lock.ts";
import { oneHead, planUpgrade } from "./plan.ts";
import { type Revision, readRevisions } from "./read.ts";
import { type Applied, createRevisionTable, readApplied } from "./store.ts";
import { inspectTriggers, installTriggers, isInSync, type SyncResult, syncTriggers } from "./triggers.ts";

export interface ChangeOptions {
  url: string;
  /** See planUpgrade and planDowngrade. */
  target?: string;
  /** Told when a revision is begun, and when it is done. */
  begin?: (revision: string) => void;
  log?: (revision: string) => void;
  /** Told what keeps us waiting. */
  notice?: (message: string) => void;
  /** Seconds to wait for another schema change. */
  patience?: number;
  /** Otherwise those of this release. */
  revisions?: readonly Revision[];
}

export interface UpgradeResult {
  applied: string[];
  /** The heads of what the database has now, as text. */
  head: string;
  triggers: SyncResult;
}

/**
 * Brings the schema to its one head, or to `target`: each revision in its own transaction, then the triggers. Safe to
 * run from several machines at once: one works, the others wait and then find nothing to do.
 *
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 * @throws Conflict when the release has several heads, the database's revisions are not ours, or someone else holds
 * the lock too long
 */
export async function upgrade(options: ChangeOptions): Promise<UpgradeResult> {
  const known = options.revisions ?? (await readRevisions());
  // Before anything is asked of the database: a release with two heads is no release.
  if ((options.target ?? "head") === "head") oneHead(known);
  const idle = (sql: Sql) => nothingToDo(sql, known, options.target);
  return withLock({ ...lockOptions(options, "svc database upgrade"), unless: idle }, async (sql) => {
    const applied = await readyRevisions(sql, known);
    const plan = planUpgrade(known, applied, options.target);
    for (const revision of plan) {
      options.begin?.(revision.id);
      const othersFollow = revision !== plan.at(-1);
      await applyUp(sql, revision, { after: afterStep(revision.up), onRetry: options.notice, othersFollow });
      options.log?.(revision.id);
    }
    const triggers = await syncTriggers(sql, { onRetry: options.notice });
    const now = [...applied, ...plan];
    return { applied: plan.map(({ id }) => id), head: headsOf(now).join(", ") || "base", triggers };
  });
}

/** The result, if all is as it should be: one look at it, without the lock, which is what most upgrades are. */
async function nothingToDo(
  sql: Sql,
  known: readonly Revision[],
  target: string | undefined,
): Promise<UpgradeResult | undefined> {
  const [applied, found] = await Promise.all([readApplied(sql), inspectTriggers(sql)]);
  if (!applied || applied.some(({ state, manifest }) => state !== "applied" || !manifest.parents))
    return undefined;
  if (planUpgrade(known, applied, target).length > 0 || !isInSync(found)) return undefined;
  const triggers = { created: [], repaired: [], removed: [], filled: {} };
  return { applied: [], head: headsOf(applied).join(", "), triggers };
}

export function lockOptions({ url, patience, notice }: ChangeOptions, purpose: string) {
  const onWait = (holder: string) => notice?.(`waiting for another schema change: ${holder}`);
  return { url, purpose, patience, onWait };
}

/** What is applied, after what was interrupted has been brought to an end. */
export async function readyRevisions(sql: Sql, known: readonly Revision[]): Promise<Applied[]> {
  const before = await readApplied(sql);
  const complete = before?.every(({ manifest }) => manifest.parents);
  if (!before || !complete) await createRevisionTable(sql);
  const interrupted = (before ?? []).filter(({ state }) => state !== "applied");
  for (const row of interrupted) await finishInterrupted(sql, row, known);
  return (interrupted.length > 0 ? await readApplied(sql) : before) ?? [];
}

/**
 * A function that speaks of a column that is gone makes every write fail, so a step that touches a table with triggers
 * of ours mends them in its own transaction.
 */
export function afterStep(text: string): After | undefined {
  return ourTriggers.some(({ table }) => text.includes(table)) ? (sql) => installTriggers(sql) : undefined;
}
