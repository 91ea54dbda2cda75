import { Conflict } from "../../platform/errors.ts";
import { findRevision, inOrder, type Revision, readRevisions, withAncestors } from "./history.ts";
import { type LockOptions, withLock } from "./lock.ts";
import { isHead, oneHead } from "./plan.ts";
import { accept, createRevisionTable, forgetScript, readApplied, record, stateScript } from "./store.ts";

interface Options extends Pick<LockOptions, "url" | "patience" | "notice"> {
  revisions?: readonly Revision[];
}

/**
 * Records that the database is at `target` (`head`, `base`, or a revision) without running anything, for a schema that
 * got there another way. Leaves unknown revisions alone unless the target is `base`.
 */
export async function stamp({ revisions, target, ...lock }: Options & { target: string }): Promise<string[]> {
  const known = revisions ?? (await readRevisions());
  const id = isHead(target) ? oneHead(known) : target === "base" ? undefined : findRevision(known, target).id;
  const wanted = id === undefined ? new Set<string>() : withAncestors(known, id);
  return withLock({ ...lock, purpose: "svc database stamp" }, async (sql) => {
    await createRevisionTable(sql);
    await sql.begin(async (transaction) => {
      const applied = (await readApplied(transaction)) ?? [];
      const there = new Map(applied.map((row) => [row.id, row]));
      for (const row of applied) {
        const ours = known.some((revision) => revision.id === row.id);
        if (!wanted.has(row.id) && (ours || target === "base"))
          await transaction.unsafe(forgetScript(row.id));
      }
      for (const revision of inOrder(known)) {
        if (!wanted.has(revision.id)) continue;
        if (!there.has(revision.id)) await record(transaction, revision);
        else if (there.get(revision.id)?.state !== "applied")
          await transaction.unsafe(stateScript(revision.id, "applied"));
      }
    });
    return id === undefined ? [] : [id];
  });
}

/**
 * Applies a person's decision about one revision. `accept`: the files are right; their down SQL and checksum replace those in
 * the database. `applied`, `notApplied`: the outcome of an interrupted statement. The schema itself does not change.
 *
 * @returns the id
 * @throws Conflict when the revision does not have that problem
 */
export async function repair(
  options: Options & { id: string; decision: "accept" | "applied" | "notApplied" },
): Promise<string> {
  const known = options.revisions ?? (await readRevisions());
  const { decision } = options;
  return withLock({ ...options, purpose: "svc database repair" }, async (sql) => {
    const row = findRevision((await readApplied(sql)) ?? [], options.id);
    const revision = known.find(({ id }) => id === row.id);
    const isInterrupted = row.state !== "applied";
    const isDone = (decision === "applied") === (row.state === "applying");
    if (decision === "accept" && revision && revision.checksum !== row.checksum) await accept(sql, revision);
    else if (decision !== "accept" && isInterrupted)
      await sql.unsafe(isDone ? stateScript(row.id, "applied") : forgetScript(row.id));
    else
      throw new Conflict(
        `Revision ${row.id} is not ${decision === "accept" ? "edited" : "interrupted"}: there is nothing to repair`,
      );
    return row.id;
  });
}
