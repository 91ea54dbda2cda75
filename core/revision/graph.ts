import { SvcError } from "../errors.ts";
import type { Revision } from "./read.ts";

type Node = Pick<Revision, "id" | "parents">;

/** The revisions that no other one follows, in order of id. One head is what a release has. */
export function headsOf(revisions: readonly Node[]): string[] {
  const followed = new Set(revisions.flatMap((revision) => revision.parents));
  return revisions.map((revision) => revision.id).filter((id) => !followed.has(id));
}

/**
 * The revisions that are not in `applied`, each behind its parents; among those that may come next, by id.
 * @throws SvcError `configuration` when a parent is missing or the graph has a circle
 */
export function pendingRevisions<T extends Node>(revisions: readonly T[], applied: ReadonlySet<string>): T[] {
  const known = new Set(revisions.map((revision) => revision.id));
  for (const { id, parents } of revisions) {
    const missing = parents.find((parent) => !known.has(parent));
    if (missing) throw new SvcError("configuration", `Revision ${id} follows ${missing}, which is not there`);
  }
  const done = new Set(applied);
  let waiting = revisions.filter(({ id }) => !done.has(id)).sort((a, b) => (a.id < b.id ? -1 : 1));
  const order: T[] = [];
  while (waiting.length > 0) {
    const next = waiting.find(({ parents }) => parents.every((parent) => done.has(parent)));
    if (!next)
      throw new SvcError("configuration", `Revisions ${waiting.map((r) => r.id).join(", ")} form a circle`);
    order.push(next);
    done.add(next.id);
    waiting = waiting.filter((revision) => revision !== next);
  }
  return order;
}
