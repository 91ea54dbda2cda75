import { Irreversible, sameIndex, targetOf } from "./compare.ts";
import { snapshotOf } from "./kit.ts";
import { applyRenames, nameBefore, type Rename, reverseRenames } from "./rename.ts";
import { emptyLike, type Index, readSnapshot, type Schema, type Snapshot } from "./snapshot.ts";
import { stepsOf } from "./steps.ts";
import { suggestRenames } from "./suggest.ts";
import { oneLine, type Step, write } from "./write.ts";

export { parseRename, type Rename } from "./rename.ts";
export type { Snapshot } from "./snapshot.ts";

/** The two directions of a revision. Both contain the marks of drizzle/revision/marks.ts. */
export interface Part {
  up: string;
  down: string;
  /** Why down cannot be generated; `down` then contains only this. */
  irreversible?: string;
  /** The base for the next comparison. */
  snapshot: Snapshot;
}

export interface Generated {
  /** The revisions to write, in this order: none if there is nothing to do. */
  parts: Part[];
  /** Drops and additions that may be renames, in the syntax of `--rename`. */
  suggestions: string[];
  /** The schema after all parts. */
  snapshot: Snapshot;
}

interface GenerateOptions {
  renames?: readonly Rename[];
}

/**
 * Compares the module of tables with the snapshot of the newest revision; without one, everything is new. Neither
 * prompts nor prints.
 * @throws InvalidInput for a rename that does not match the schemas, and for a change that cannot be generated, with
 * advice
 */
export async function generate(
  previous: Snapshot | undefined,
  schema: Record<string, unknown>,
  options: GenerateOptions = {},
): Promise<Generated> {
  const previousId = previous?.id;
  const current = await snapshotOf(schema, typeof previousId === "string" ? previousId : undefined);
  return generateBetween(previous ?? { ...emptyLike(current), id: current.prevId }, current, options);
}

/** The same for two snapshots. */
export async function generateBetween(
  previous: Snapshot,
  current: Snapshot,
  options: GenerateOptions = {},
): Promise<Generated> {
  const renames = options.renames ?? [];
  const [had, has] = [readSnapshot(previous), readSnapshot(current)];
  applyRenames(had, has, renames);
  const suggestions = suggestRenames(had, has);
  const { gone, made } = concurrentIndexes(had, has);
  const dropped = gone.map(({ table, name }) => ({ table: nameBefore(table, renames), name }));
  const parts: Part[] = [];
  let from = previous;
  const partTo = async (to: Snapshot, renamed: readonly Rename[], isAlone: boolean) => {
    const part = await partOf(from, to, renamed, isAlone);
    if (part) parts.push({ ...part, snapshot: { ...to, id: crypto.randomUUID(), prevId: from.id } });
    from = parts.at(-1)?.snapshot ?? from;
  };
  for (const at of dropped.keys()) await partTo(withoutIndexes(previous, dropped.slice(0, at + 1)), [], true);
  await partTo(withoutIndexes(current, made), renames, false);
  for (const at of made.keys()) await partTo(withoutIndexes(current, made.slice(at + 1)), [], true);
  return { parts, suggestions, snapshot: parts.at(-1)?.snapshot ?? current };
}

/** One revision; undefined if there is nothing to do. `isAlone`: it only creates or drops an index, CONCURRENTLY. */
async function partOf(
  from: Snapshot,
  to: Snapshot,
  renames: readonly Rename[],
  isAlone: boolean,
): Promise<Omit<Part, "snapshot"> | undefined> {
  const up = await stepsOf(from, to, renames, "do");
  if (up.length === 0) return undefined;
  const text = (steps: readonly Step[]) => (isAlone ? concurrently(write(steps)) : write(steps));
  try {
    return { up: text(up), down: text(await stepsOf(to, from, reverseRenames(renames), "undo")) };
  } catch (error) {
    if (!(error instanceof Irreversible)) throw error;
    const irreversible = oneLine(error.message);
    return { up: text(up), down: `-- svc: irreversible ${irreversible}\n`, irreversible };
  }
}

function concurrently(sql: string): string {
  return `-- svc: no-transaction\n${sql.replace(/^(CREATE (?:UNIQUE )?|DROP )INDEX/m, "$& CONCURRENTLY")}`;
}

/** The key of its table, and its name. */
interface IndexPlace {
  table: string;
  name: string;
}

/**
 * The indexes marked with `.concurrently()` that are dropped from and added to a table which stays. Each needs a revision of
 * its own, because its statement cannot run in a transaction.
 */
function concurrentIndexes(had: Schema, has: Schema): { gone: IndexPlace[]; made: IndexPlace[] } {
  const only = (from: Schema, other: Schema) =>
    Object.entries(from.tables).flatMap(([table, { indexes }]) => {
      const others = other.tables[table]?.indexes;
      return Object.values(indexes)
        .filter((index) => index.concurrently && others && !sameIndex(index, others[index.name]))
        .filter((index) => !isReferenced(from, table, index))
        .map(({ name }) => ({ table, name }));
    });
  return { gone: only(had, has), made: only(has, had) };
}

/** Then it has to be created and dropped together with the foreign key. */
function isReferenced({ tables }: Schema, table: string, { columns, isUnique }: Index): boolean {
  const names = String(columns.map(({ expression }) => expression).toSorted());
  const keys = Object.values(tables).flatMap(({ foreignKeys }) => Object.values(foreignKeys));
  return (
    isUnique && keys.some((key) => targetOf(key) === table && String(key.columnsTo.toSorted()) === names)
  );
}

function withoutIndexes(snapshot: Snapshot, places: readonly IndexPlace[]): Snapshot {
  const schema = structuredClone(snapshot) as unknown as Schema;
  for (const { table, name } of places) delete schema.tables[table]!.indexes[name];
  return schema;
}
