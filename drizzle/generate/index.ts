import { InvalidInput } from "../../platform/errors.ts";
import { alterColumns } from "./columns.ts";
import { compare } from "./compare.ts";
import type { Way } from "./convert.ts";
import { createBases, createSteps } from "./create.ts";
import { dropEnums, dropRest, dropSteps } from "./drop.ts";
import { beginEnums, endEnums } from "./enums.ts";
import { Irreversible, type Plan } from "./plan.ts";
import { snapshotOf } from "./read_schema.ts";
import { applyRenames, impliedMoves, type Rename, reverseRenames, tablesOfRenamedColumns } from "./rename.ts";
import { alterSequences } from "./sequences.ts";
import { emptyLike, plainSnapshot, readSnapshot, refuseOurNames, type Snapshot } from "./snapshot.ts";
import { suggestRenames } from "./suggest.ts";
import { type Commented, oneLine, write } from "./write.ts";

export { parseRename, type Rename } from "./rename.ts";
export type { Snapshot } from "./snapshot.ts";

/** The two directions of a revision. Both contain the marks of drizzle/revision/marks.ts. */
export interface Steps {
  /** Whether there is anything to do. */
  changed: boolean;
  up: string;
  down: string;
  /** Why down cannot be generated; `down` then contains only this. */
  irreversible?: string;
  /** Drops and additions that may be renames, in the syntax of `--rename`. */
  suggestions: string[];
}

export interface Generated extends Steps {
  /** The base for the next comparison. */
  snapshot: Snapshot;
}

export interface GenerateOptions {
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
  const current = snapshotOf(schema, typeof previousId === "string" ? previousId : undefined);
  const steps = await generateBetween(previous ?? emptyLike(current), current, options);
  return { ...steps, snapshot: plainSnapshot(current) };
}

/** The same for two snapshots. */
export async function generateBetween(
  previous: Snapshot,
  current: Snapshot,
  options: GenerateOptions = {},
): Promise<Steps> {
  const stated = options.renames ?? [];
  const [had, has] = [readSnapshot(previous), readSnapshot(current)];
  refuseOurNames(has);
  const renames = [...stated, ...impliedMoves(had, has, stated)];
  applyRenames(had, has, renames);
  const suggestions = suggestRenames(compare(had, has));
  const up = stepsOf(previous, current, renames, "do");
  const changed = up.length > 0;
  try {
    const down = stepsOf(current, previous, reverseRenames(renames), "undo");
    return { changed, ...writeBoth(up, down), suggestions };
  } catch (error) {
    if (!(error instanceof Irreversible)) throw error;
    const irreversible = oneLine(error.message);
    return {
      changed,
      up: writeBoth(up, []).up,
      down: `-- svc: irreversible ${irreversible}\n`,
      irreversible,
      suggestions,
    };
  }
}

/**
 * The steps of one direction, in the order that PostgreSQL requires: drops, then objects that others depend on, then
 * changes, then additions.
 */
function stepsOf(from: Snapshot, to: Snapshot, renames: readonly Rename[], way: Way): Commented[] {
  const [before, after] = [readSnapshot(from), readSnapshot(to)];
  const renamed = applyRenames(before, after, renames);
  const plan: Plan = { before, after, changes: compare(before, after, tablesOfRenamedColumns(renames)), way };
  const statements = [
    ...renamed,
    ...dropSteps(plan),
    ...createBases(plan),
    ...alterSequences(before, after),
    ...beginEnums(plan),
    ...alterColumns(plan),
    ...endEnums(plan),
    ...dropEnums(plan),
    ...createSteps(plan),
    ...dropRest(plan),
  ];
  return statements.map((one) => (typeof one === "string" ? { sql: one } : one));
}

const mark = "-- svc: no-transaction\n";
const makes = /^CREATE (UNIQUE )?INDEX CONCURRENTLY (.+?) ON /;

/**
 * Both directions as files. CREATE INDEX CONCURRENTLY cannot run in a transaction, so its file contains nothing else.
 * @throws InvalidInput when up contains other changes too
 */
function writeBoth(up: readonly Commented[], down: readonly Commented[]): { up: string; down: string } {
  const [index] = up.flatMap(({ sql }) => makes.exec(sql)?.[2] ?? []);
  if (index !== undefined && up.length > 1) {
    throw new InvalidInput(
      "schema",
      `Index ${index} is created CONCURRENTLY, which cannot run in a transaction: move it to a separate revision`,
    );
  }
  const [only, ...others] = down;
  if (!only || others.length > 0) {
    // Down need not avoid locks as up does: a plain index in the transaction is better than none.
    const plain = down.map((step) => ({
      ...step,
      sql: step.sql.replace(/^(CREATE (?:UNIQUE )?INDEX) CONCURRENTLY/, "$1"),
    }));
    return { up: (index === undefined ? "" : mark) + write(up), down: write(plain) };
  }
  if (index !== undefined) {
    const back = { ...only, sql: only.sql.replace(/^DROP INDEX/, "DROP INDEX CONCURRENTLY") };
    return { up: mark + write(up), down: mark + write([back]) };
  }
  return { up: write(up), down: (makes.test(only.sql) ? mark : "") + write(down) };
}
