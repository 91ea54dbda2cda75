import { relative } from "node:path";
import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { hasSourceTree, isClone } from "../../platform/own_command.ts";
import { headsOf, readRevisionsFrom, revisionsDirectory } from "./history.ts";
import { describeLosses } from "./loss.ts";
import { mergeSnapshots } from "./merge.ts";
import { oneHead } from "./plan.ts";
import { checkRevisionId, readSnapshot, revisionId, writeRevision } from "./write.ts";

interface CreateOptions {
  /** `schema change` if there is none. */
  message?: string;
  /** `table.old:new`, or `old:new` for a table. */
  renames?: readonly string[];
  autogenerate?: boolean;
  id?: string;
  now: Date;
  /** drizzle/revisions, or another folder of revisions. */
  directory?: string;
  /** What drizzle/schema exports, or other tables. */
  schema?: Record<string, unknown>;
}

export interface Created {
  /** The new head. */
  id: string;
  /** Relative to the working directory. */
  folders: string[];
  /** Points for a person to review. */
  advice: string[];
}

/**
 * Writes a revision after the head, either empty or from the difference between drizzle/schema and the head's snapshot.
 * Each index that is created or dropped CONCURRENTLY gets another revision, with `_2`, `_3` and so on after the id.
 *
 * @returns undefined when there is no difference
 * @throws Conflict when there are several heads; InvalidInput for an invalid rename or id
 */
export async function createRevision(options: CreateOptions): Promise<Created | undefined> {
  const { autogenerate = false, renames = [], now, directory = revisionsDirectory } = options;
  const message = options.message ?? "schema change";
  if (!autogenerate && renames.length > 0) throw new InvalidInput("rename", "--rename needs --autogenerate");
  const { generate, parseRename } = await generator();
  const revisions = await readRevisionsFrom(directory);
  const parents = revisions.length > 0 ? [oneHead(revisions)] : [];
  const previous = parents[0] === undefined ? undefined : await readSnapshot(directory, parents[0]);
  const schema = options.schema ?? (await sourceSchema());
  const { parts, snapshot, suggestions } = await generate(previous, schema, {
    renames: renames.map(parseRename),
  });
  if (autogenerate && parts.length === 0) return undefined;
  const first = checkRevisionId(options.id ?? revisionId(checkMessage(message), now));
  const written = autogenerate ? parts : [{ ...emptySql, snapshot }];
  const folders: string[] = [];
  const advice: string[] = [];
  let follows = parents;
  let compatible = true;
  for (const [at, { up, down, snapshot }] of written.entries()) {
    const [id, which] = at === 0 ? [first, ""] : [checkRevisionId(`${first}_${at + 1}`), `${at + 1}`];
    const text = written.length === 1 ? message : `${message} (${which || 1} of ${written.length})`;
    const revision = { id, message: text, parents: follows, up, down, snapshot, createdAt: now };
    const { folder, manifest } = await writeRevision(directory, { ...revision, empty: !autogenerate });
    folders.push(relativePath(folder));
    follows = [id];
    compatible &&= manifest.compatible;
    for (const [name, text] of Object.entries({ up, down })) {
      const losses = describeLosses(text);
      if (losses.length > 0) advice.push(`${name}.sql loses ${losses.join(", ")}`);
    }
  }
  if (autogenerate) {
    if (written.some(({ up, down }) => /^-- Look here:/m.test(up + down)))
      advice.unshift('Read the lines that begin with "-- Look here:"');
    for (const rename of suggestions) {
      advice.push(
        `Dropped and added, or renamed? To keep the data: rm -r ${folders.join(" ")}, then run it again with --rename '${rename.replaceAll("'", "'\\''")}'`,
      );
    }
  } else {
    advice.push("Write up.sql and down.sql; both may hold several statements");
    if (parts.length > 0)
      advice.push("drizzle/schema differs from the newest revision: the SQL must make the same change");
  }
  advice.push(
    compatible
      ? "The previous release should work with it (manifest.json says compatible)"
      : "The previous release may not work with it (manifest.json says not compatible)",
  );
  return { id: follows[0]!, folders, advice };
}

const emptySql = {
  up: "-- Write the change here.",
  down: "-- Write the SQL that reverts it here. If it cannot be reverted, replace this line with the mark (see svc database revision --help).",
};

/**
 * Writes an empty revision that joins all heads.
 * @returns undefined when there is only one head
 * @throws Conflict when two heads change the same thing in different ways
 */
export async function mergeHeads(options: {
  message?: string;
  id?: string;
  now: Date;
  directory?: string;
}): Promise<Created | undefined> {
  const { now, directory = revisionsDirectory } = options;
  assertClone();
  const revisions = await readRevisionsFrom(directory);
  const heads = headsOf(revisions);
  if (heads.length < 2) return undefined;
  const message = checkMessage(options.message ?? "merge");
  const id = checkRevisionId(options.id ?? revisionId(message, now));
  const snapshot = await mergeSnapshots(revisions, (head) => readSnapshot(directory, head));
  const nothing = "-- Nothing: it joins lines of revisions.";
  const revision = { id, message, parents: heads, up: nothing, down: nothing, snapshot, createdAt: now };
  const { folder } = await writeRevision(directory, revision);
  return { id, folders: [relativePath(folder)], advice: [] };
}

/** The difference between the head's snapshot and drizzle/schema, as SQL; empty if there is none. */
export async function pendingSql(
  directory = revisionsDirectory,
  schema?: Record<string, unknown>,
): Promise<string> {
  const { generate } = await generator();
  const revisions = await readRevisionsFrom(directory);
  const previous = revisions.length > 0 ? await readSnapshot(directory, oneHead(revisions)) : undefined;
  const { parts } = await generate(previous, schema ?? (await sourceSchema()));
  return parts.map(({ up }) => up).join("\n");
}

function checkMessage(message: string): string {
  if (message.trim() === "")
    throw new InvalidInput("message", "-m is empty: say in a few words what the revision does");
  return message;
}

async function generator() {
  assertClone();
  return import("../generate/index.ts");
}

async function sourceSchema(): Promise<Record<string, unknown>> {
  return import("../schema/index.ts");
}

/** A revision written outside a clone would never reach a release. */
function assertClone(): void {
  if (isClone()) return;
  throw new SvcError(
    "configuration",
    `Revisions are written in a clone of the source: this is ${hasSourceTree ? "an image" : "the executable"}`,
  );
}

function relativePath(folder: string): string {
  const path = relative(process.cwd(), folder);
  return path.startsWith("..") ? folder : path;
}
