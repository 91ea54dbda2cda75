import { Conflict } from "../../platform/errors.ts";
import { apply, stepDown } from "./apply.ts";
import { readRevisions } from "./history.ts";
import { withLock } from "./lock.ts";
import { refuseLosses } from "./loss.ts";
import { readMarks } from "./marks.ts";
import { planDowngrade } from "./plan.ts";
import { type Applied, readApplied } from "./store.ts";
import { syncTriggers } from "./triggers.ts";
import { afterStep, type ChangeOptions, headText, knowsAll } from "./upgrade.ts";

/**
 * Reverts revisions, by default exactly one: each in its own transaction, with the SQL stored in the database, so that
 * an older release can revert what only a newer one knows.
 *
 * @throws Conflict when rows or values would be lost and `allowDataLoss` is not set, before anything is changed; when a
 * revision is irreversible; see also `upgrade`
 */
export async function downgrade(options: ChangeOptions): Promise<{ reverted: string[]; head: string }> {
  const known = options.revisions ?? (await readRevisions());
  const { url, patience, notice } = options;
  return withLock({ url, patience, notice, purpose: "svc database downgrade" }, async (sql) => {
    const applied = (await readApplied(sql)) ?? [];
    const plan = planDowngrade(known, applied, options.target);
    for (const row of plan) assertReversible(row);
    const { allowDataLoss } = options;
    const scripts = plan.map(({ down }) => down);
    if (!allowDataLoss)
      await refuseLosses(sql, scripts, `svc database downgrade ${options.target ?? "-1"}`, notice);
    let left = applied;
    for (const row of plan) {
      options.begin?.(row.id);
      left = left.filter(({ id }) => id !== row.id);
      // What remains of a newer release has triggers that this one does not know.
      const after = knowsAll(known, left) ? afterStep(row.down) : undefined;
      const again = row.state === "reverting";
      await apply(sql, stepDown(row), { allowDataLoss, after, onRetry: notice, again });
      options.log?.(row.id);
    }
    if (knowsAll(known, left)) await syncTriggers(sql, { onRetry: notice });
    return { reverted: plan.map(({ id }) => id), head: headText(known, left) };
  });
}

/** @throws Conflict */
export function assertReversible({ id, down, manifest }: Applied): void {
  const { irreversible } = readMarks(down);
  if (irreversible === undefined && !manifest.irreversible) return;
  const reason = irreversible ? `: ${irreversible}` : "";
  throw new Conflict(
    `Revision ${id} cannot be reverted${reason}. Restore a backup from before it: svc database restore`,
  );
}
