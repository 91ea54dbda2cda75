import { SvcError, Unavailable } from "../../platform/errors.ts";
import { hasSourceTree } from "../../platform/own_command.ts";
import { canonicalSchema, difference } from "./canonical.ts";
import { pendingSql } from "./create.ts";
import { inOrder, type Revision, readRevisions, readRevisionsFrom, revisionsDirectory } from "./history.ts";
import { checkStatements, readMarks } from "./marks.ts";
import { oneHead } from "./plan.ts";
import { withScratchDatabase } from "./scratch.ts";
import { ask } from "./session.ts";
import { snapshotSchema } from "./snapshot_schema.ts";
import { readApplied } from "./store.ts";
import { upgrade } from "./upgrade.ts";
import { readSnapshot } from "./write.ts";

/** One problem: a line of text, and its details. */
export interface Finding {
  text: string;
  details: string[];
}

/**
 * Checks that revisions can be run, have one head and, with `tables`, lead to what drizzle/schema describes. Needs no
 * database.
 * @throws SvcError when `tables` cannot be compared, because this is not a clone
 */
export async function checkRevisions({ tables }: { tables: boolean }): Promise<Finding[]> {
  const revisions = await readRevisions();
  const findings = [
    ...attempt(() => inOrder(revisions)),
    ...attempt(() => oneHead(revisions)),
    ...revisions.flatMap(checkRevision),
  ];
  if (findings.length > 0 || !hasSourceTree || !tables) return findings;
  const sql = await pendingSql();
  if (sql === "") return [];
  const text = "drizzle/schema has changes without a revision: svc database revision --autogenerate -m TEXT";
  return [{ text, details: sql.trim().split("\n") }];
}

function checkRevision({ id, up, down }: Revision): Finding[] {
  return Object.entries({ up, down }).flatMap(([name, text]) =>
    attempt(() => checkStatements(`${name}.sql of revision ${id}`, text, readMarks(text))),
  );
}

function attempt(check: () => unknown): Finding[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof SvcError) return [{ text: error.detail, details: [] }];
    throw error;
  }
}

/**
 * Compares the database's schema, object by object, with what its revisions create in a new temporary database. Lines
 * with `-` are missing, lines with `+` are unexpected.
 *
 * @throws Unavailable when the user may not create a database; see also `upgrade`
 */
export async function findDrift(url: string, revisions?: readonly Revision[]): Promise<string[]> {
  const known = revisions ?? (await readRevisions());
  return ask(url, async (sql) => {
    const applied = (await readApplied(sql)) ?? [];
    const there = new Set(applied.map(({ id }) => id));
    const unknown = applied.find(({ id }) => !known.some((revision) => revision.id === id));
    if (unknown)
      throw new Unavailable(
        `Revision ${unknown.id} is not known to this release: check with the one that has it`,
      );
    const actual = await canonicalSchema(sql);
    const ours = known.filter(({ id }) => there.has(id));
    const expected = await withScratchDatabase(url, "svc database check --drift", async (scratch) => {
      if (ours.length > 0) await upgrade({ url: scratch, revisions: ours });
      return ask(scratch, canonicalSchema);
    });
    return difference(expected, actual);
  });
}

/**
 * Compares the head's snapshot, which describes the tables in the code, with what the revisions create. They differ after a
 * mistake in edited SQL. Lines as in `findDrift`. The executable has no snapshots: there, the result is empty.
 *
 * @throws Unavailable when the user may not create a database
 */
export async function findWrongRevisions(url: string, directory = revisionsDirectory): Promise<string[]> {
  if (!hasSourceTree) return [];
  const revisions = await readRevisionsFrom(directory);
  const snapshot = await readSnapshot(directory, oneHead(revisions));
  const inScratch = (create: (scratch: string) => Promise<unknown>) =>
    withScratchDatabase(url, "svc database check --drift", async (scratch) => {
      await create(scratch);
      const schema = await ask(scratch, canonicalSchema);
      // The rest is not in a snapshot: the tables' triggers are compared by findDrift.
      return schema
        .split("\n")
        .filter((line) => described.test(line))
        .join("\n");
    });
  return difference(
    await inScratch((scratch) => ask(scratch, (sql) => sql.unsafe(snapshotSchema(snapshot)))),
    await inScratch((scratch) => upgrade({ url: scratch, revisions })),
  );
}

const described = /^(schema|table|column|constraint|index|policy|view|materialized view|sequence|enum) /;
