import { Conflict } from "../../platform/errors.ts";
import { applyDown } from "./apply.ts";
import { type Revision, readRevisions } from "./history.ts";
import { withLock } from "./lock.ts";
import { refuseLosses } from "./loss.ts";
import { readMarks } from "./marks.ts";
import { isOverwritten, planDowngrade } from "./plan.ts";
import type { Applied } from "./store.ts";
import { syncTriggers } from "./triggers.ts";
import { afterStep, type ChangeOptions, countedDown, headText, isOurs, readyRevisions } from "./upgrade.ts";

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
    const { applied, finished } = await readyRevisions(sql, known, "reverting", options);
    const target = countedDown(options.target ?? "-1", "-", finished.length);
    const plan = target === "-0" && finished.length > 0 ? [] : planDowngrade(known, applied, target);
    for (const row of plan) assertReversible(row, known);
    if (!options.allowDataLoss) {
      const scripts = plan.map(({ down }) => down);
      await refuseLosses(sql, scripts, `svc database downgrade ${options.target ?? "-1"}`);
    }
    let left = applied;
    for (const row of plan) {
      options.begin?.(row.id);
      left = left.filter(({ id }) => id !== row.id);
      // What remains of a newer release has triggers that this one does not know.
      const after = isOurs(known, left) ? afterStep(row.down) : undefined;
      await applyDown(sql, row, { allowDataLoss: options.allowDataLoss, after, onRetry: notice });
      options.log?.(row.id);
    }
    if (isOurs(known, left)) await syncTriggers(sql, { onRetry: notice });
    return { reverted: [...finished, ...plan.map(({ id }) => id)], head: headText(known, left) };
  });
}

/** @throws Conflict when there is no down SQL, or when it does not match the files */
export function assertReversible(row: Applied, known: readonly Revision[]): void {
  const { id, down, manifest } = row;
  if (isOverwritten(row, known)) {
    const isOurs = known.some((revision) => revision.id === id);
    throw new Conflict(
      `The down SQL of revision ${id} was changed in the database: to restore it from the files, run svc database repair ${id} --accept${isOurs ? "" : " of the release that has them"}`,
    );
  }
  const { irreversible } = readMarks(down);
  if (irreversible === undefined && !manifest.irreversible) return;
  const reason = irreversible ? `: ${irreversible}` : "";
  throw new Conflict(
    `Revision ${id} cannot be reverted${reason}. Restore a backup from before it: svc database restore`,
  );
}
