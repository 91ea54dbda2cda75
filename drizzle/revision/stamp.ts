import { Conflict } from "../../platform/errors.ts";
import { findRevision, inOrder, type Revision, readRevisions, withAncestors } from "./history.ts";
import { type LockOptions, withLock } from "./lock.ts";
import { isHead, isOverwritten, oneHead } from "./plan.ts";
import { type Applied, accept, createRevisionTable, forget, readApplied, record, setState } from "./store.ts";

interface Options extends Pick<LockOptions, "url" | "patience" | "notice"> {
  revisions?: readonly Revision[];
}

/**
 * Records that the database is at `target` (`head`, `base`, or a revision) without running anything, for a schema that
 * got there another way. Leaves unknown revisions alone unless the target is `base` or `purge` is set.
 */
export async function stamp({
  revisions,
  target,
  purge = false,
  ...lock
}: Options & { target: string; purge?: boolean }): Promise<string[]> {
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
        if (!wanted.has(row.id) && (ours || purge || target === "base")) await forget(transaction, row.id);
      }
      for (const revision of inOrder(known)) {
        if (!wanted.has(revision.id)) continue;
        if (!there.has(revision.id)) await record(transaction, revision);
        else if (there.get(revision.id)?.state !== "applied")
          await setState(transaction, revision.id, "applied");
      }
    });
    return id === undefined ? [] : [id];
  });
}

/** A discrepancy between files and database that only a person can resolve. */
export interface Fault {
  id: string;
  kind: "edited" | "unknown" | "interrupted" | "missing";
  /** The problem, and the command that fixes it. */
  text: string;
}

export async function findFaults(options: Options): Promise<Fault[]> {
  const known = options.revisions ?? (await readRevisions());
  return withLock({ ...options, purpose: "svc database repair" }, async (sql) => {
    const applied = (await readApplied(sql)) ?? [];
    const faults = applied.flatMap((row) => faultOf(row, known) ?? []);
    const there = new Set(applied.map(({ id }) => id));
    const [missing, ...others] = inOrder(known).filter(({ id }) => !there.has(id));
    if (missing) {
      const after =
        others.length === 0
          ? ""
          : ` (nor ${others.length === 1 ? "is one" : `are ${others.length}`} after it)`;
      const text = `is not applied${after}: run svc database upgrade, which reports any failure`;
      faults.push({ id: missing.id, kind: "missing", text });
    }
    return faults;
  });
}

function faultOf(row: Applied, known: readonly Revision[]): Fault | undefined {
  const { id, state } = row;
  const fault = (kind: Fault["kind"], text: string) => ({ id, kind, text });
  const accept = `svc database repair ${id} --accept`;
  if (state !== "applied") {
    const decide = `svc database upgrade, or svc database repair ${id} --applied (or --not-applied)`;
    return fault("interrupted", `was interrupted while ${state}: ${decide}`);
  }
  const ours = known.find((revision) => revision.id === id);
  if (ours && ours.checksum !== row.checksum) {
    return fault("edited", `was edited after it was applied: restore its files, or ${accept}`);
  }
  if (isOverwritten(row, known)) {
    const text = ours
      ? `has different down SQL in the database than in its files: ${accept} takes theirs`
      : `has different down SQL in the database than was applied: ${accept}, of the release that has its files`;
    return fault("edited", text);
  }
  if (ours) return undefined;
  const text = row.manifest.compatible
    ? "is not known to this release, and compatible with it"
    : "is not known to this release: use the release that has it, or svc database downgrade";
  return fault("unknown", text);
}

/**
 * Applies a person's decision about one revision, or with `accept` and no id about all edited ones. `accept`: the files
 * are right; their down SQL and checksum replace those in the database. `applied`, `notApplied`: the outcome of an
 * interrupted statement. The schema itself does not change.
 *
 * @returns the ids that were repaired
 * @throws Conflict when the revision does not have that problem
 */
export async function repair(
  options: Options & { id?: string; decision: "accept" | "applied" | "notApplied" },
): Promise<string[]> {
  const known = options.revisions ?? (await readRevisions());
  const { decision } = options;
  return withLock({ ...options, purpose: "svc database repair" }, async (sql) => {
    const applied = (await readApplied(sql)) ?? [];
    const rows = options.id === undefined ? applied : [findRevision(applied, options.id)];
    const mended: string[] = [];
    for (const row of rows) {
      const revision = known.find(({ id }) => id === row.id);
      const isEdited = revision?.checksum !== row.checksum || isOverwritten(row, known);
      if (decision === "accept" && revision && isEdited) await accept(sql, revision);
      else if (decision === "applied" && row.state === "applying") await setState(sql, row.id, "applied");
      else if (decision === "applied" && row.state === "reverting") await forget(sql, row.id);
      else if (decision === "notApplied" && row.state === "applying") await forget(sql, row.id);
      else if (decision === "notApplied" && row.state === "reverting") await setState(sql, row.id, "applied");
      else continue;
      mended.push(row.id);
    }
    if (options.id !== undefined && mended.length === 0) {
      const trouble = decision === "accept" ? "edited" : "interrupted";
      throw new Conflict(`Revision ${rows[0]!.id} is not ${trouble}: there is nothing to repair`);
    }
    return mended;
  });
}
