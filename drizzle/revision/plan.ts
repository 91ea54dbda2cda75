import { Conflict, InvalidInput, SvcError } from "../../platform/errors.ts";
import {
  descendantsOf,
  findRevision,
  headsOf,
  inOrder,
  type Node,
  type Revision,
  withAncestors,
  withoutMissingParents,
} from "./history.ts";
import type { Applied } from "./store.ts";

/**
 * The revisions that an upgrade to `target` has to apply, in order. `target`: `head`, `+N`, a revision or a prefix of
 * its id. A revision whose statements were interrupted is pending.
 *
 * @throws Conflict when the release has several heads, or the database has revisions that this release does not know
 * @throws InvalidInput for an invalid target
 */
export function planUpgrade(
  known: readonly Revision[],
  applied: readonly Applied[],
  target = "head",
): Revision[] {
  const order = inOrder(known);
  assertComparable(known, applied);
  refuseInterrupted(applied, "reverting", "downgrade");
  const done = new Set(applied.filter(({ state }) => state === "applied").map(({ id }) => id));
  const pending = order.filter(({ id }) => !done.has(id));
  if (isHead(target)) {
    oneHead(known);
    return pending;
  }
  if (/^\+\d+$/.test(target)) {
    oneHead(known);
    const count = Number(target);
    if (count === 0 || count > pending.length) {
      throw new InvalidInput(
        "revision",
        `${target} is not possible: ${pending.length} revisions are not applied`,
      );
    }
    return pending.slice(0, count);
  }
  if (target === "base" || /^-\d+$/.test(target)) {
    throw new InvalidInput(
      "revision",
      "An upgrade goes to head, +N or a revision: to go back, run svc database downgrade",
    );
  }
  const wanted = withAncestors(known, findRevision(known, target).id);
  return pending.filter(({ id }) => wanted.has(id));
}

/** @throws Conflict for statements without a transaction that were interrupted in the other direction */
function refuseInterrupted(rows: readonly Applied[], state: Applied["state"], command: string): void {
  const row = rows.find((one) => one.state === state);
  if (row)
    throw new Conflict(
      `Revision ${row.id} was interrupted while ${state}: first run svc database ${command}`,
    );
}

/** Alembic says `heads` when there may be several; here an upgrade refuses several heads. */
export function isHead(target: string): boolean {
  return target === "head" || target === "heads";
}

/** The head of a release. @throws Conflict naming the heads if there are several */
export function oneHead(known: readonly Node[]): string {
  const heads = headsOf(known);
  const [head, ...others] = heads;
  if (head === undefined) throw new SvcError("configuration", "This release has no revision");
  if (others.length > 0) {
    throw new Conflict(
      `The schema has ${heads.length} heads: ${heads.join(", ")}. Join them: svc database merge`,
    );
  }
  return head;
}

/**
 * The revisions that a downgrade to `target` has to revert, in order. `target`: `-N`, `base`, or the revision to keep
 * as the newest of its line. Parents come from the database, so that revisions known only to a newer release can be
 * reverted.
 *
 * @throws InvalidInput for an invalid target; Conflict when there are fewer revisions to revert
 */
export function planDowngrade(known: readonly Node[], applied: readonly Applied[], target = "-1"): Applied[] {
  refuseInterrupted(applied, "applying", "upgrade");
  const rows = withParents(known, applied);
  const newestFirst = inOrder(rows).reverse();
  if (target === "base") return newestFirst;
  if (/^-\d+$/.test(target)) return takeBack(rows, -Number(target));
  if (isHead(target) || /^\+\d+$/.test(target)) {
    throw new InvalidInput(
      "revision",
      "A downgrade goes to base, -N or a revision: to go forward, run svc database upgrade",
    );
  }
  const stays = findRevision(
    [...known, ...rows.filter(({ id }) => !known.some((revision) => revision.id === id))],
    target,
  );
  if (!rows.some(({ id }) => id === stays.id)) {
    throw new Conflict(`Revision ${stays.id} is not applied: svc database current lists the applied ones`);
  }
  const gone = descendantsOf(rows, stays.id);
  return newestFirst.filter(({ id }) => gone.has(id));
}

/** Reverts one by one, each time the head that was applied last. */
function takeBack(rows: readonly Applied[], count: number): Applied[] {
  if (count === 0) throw new InvalidInput("revision", "invalid count: -0");
  if (rows.length === 0) throw new Conflict("There is nothing to revert: no revision is applied");
  if (count > rows.length) {
    throw new Conflict(`There are not ${count} revisions to revert: only ${rows.length} applied`);
  }
  let left = [...rows];
  const plan: Applied[] = [];
  for (let step = 0; step < count; step += 1) {
    const heads = new Set(headsOf(left));
    const last = left
      .filter(({ id }) => heads.has(id))
      .sort((a, b) => b.appliedAt.getTime() - a.appliedAt.getTime() || (a.id < b.id ? 1 : -1))[0]!;
    plan.push(last);
    left = left.filter((row) => row !== last);
  }
  return plan;
}

/** The rows with their parents, without parents that are not applied. */
export function withParents(known: readonly Node[], applied: readonly Applied[]): Applied[] {
  const rows = applied.map((row) => {
    const own = row.manifest.parents ?? known.find(({ id }) => id === row.id)?.parents ?? [];
    return { ...row, parents: [...own] };
  });
  return withoutMissingParents(rows);
}

/**
 * Refuses a database that cannot be brought to our head: one with an edited revision, or with an unknown revision,
 * unless all unknown ones follow ours and are compatible with this release (a newer release upgraded first).
 *
 * @throws Conflict
 */
function assertComparable(known: readonly Revision[], applied: readonly Applied[]): void {
  const ours = new Map(known.map((revision) => [revision.id, revision]));
  const there = new Set(applied.map(({ id }) => id));
  for (const row of applied) {
    const revision = ours.get(row.id);
    if (!revision || revision.checksum === row.checksum) continue;
    throw new Conflict(
      row.state === "applied"
        ? `Revision ${row.id} was edited after it was applied: restore its files, or if the database matches them, run: svc database repair ${row.id} --accept`
        : `Revision ${row.id} was edited after it was interrupted: restore its files, or undo in the database what it did, then run: svc database repair ${row.id} --not-applied`,
    );
  }
  const unknown = applied.filter(({ id }) => !ours.has(id));
  if (unknown.length === 0) return;
  if (known.every(({ id }) => there.has(id)) && unknown.every(({ manifest }) => manifest.compatible)) return;
  throw new Conflict(
    `The database has revision ${unknown.map(({ id }) => id).join(", ")}, which this release does not know: it is newer. Use the release that has it, or go back: svc database downgrade`,
  );
}
