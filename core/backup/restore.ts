import { open, stat } from "node:fs/promises";
import type { Environment } from "../config.ts";
import { isPostgresError, operatorsError } from "../database_error.ts";
import { holdRestored } from "../delivery/restored.ts";
import { Conflict, InvalidInput, SvcError, Unavailable } from "../errors.ts";
import { whenFree } from "../revision/apply.ts";
import { type DatabaseDescription, dropEverything } from "../revision/drop.ts";
import { withLock } from "../revision/lock.ts";
import { type Revision, readRevisions } from "../revision/read.ts";
import { upgrade } from "../revision/upgrade.ts";
import type { Backup, Format } from "./dump.ts";
import { fileError } from "./file_error.ts";
import { quoted } from "../revision/sql_text.ts";
import { countRows, plainName, readRevisionRows, type Runner, type Table } from "./inventory.ts";
import { portableMagic } from "./portable_file.ts";
import type { OnProgress } from "./progress.ts";
import { openCustom } from "./restore_custom.ts";
import { openPortable } from "./restore_portable.ts";
import { cutOnAbort } from "./session.ts";
import { creating, describeTarget, holdsAnything, type Target } from "./target.ts";
import { findTool, missingTool, type ToolSearch } from "./tools.ts";

export interface RestoreOptions {
  url: string;
  path: string;
  env: Environment;
  /** Asked before a database that holds tables is replaced; throws to leave it as it is. */
  confirm: (database: DatabaseDescription) => Promise<void>;
  tools?: ToolSearch["directoriesOf"];
  revisions?: readonly Revision[];
  /** Seconds to wait for another schema change. */
  patience?: number;
  signal?: AbortSignal;
  progress?: OnProgress;
  /** Told what keeps us waiting. */
  notice?: (message: string) => void;
}

export interface RestoreResult extends Backup {
  /** What the upgrade to head applied after it. */
  applied: string[];
}

/** A backup that was found to be whole, as far as its format can tell. */
export interface OpenBackup {
  format: Format;
  revisions: { id: string; checksum: string }[];
  /** Schemas beside `public` that it makes. */
  schemas: string[];
  tables: (Table & { rows?: number })[];
  /** Makes tables and rows in this transaction of an empty database. @returns the rows that it loaded, by plain name */
  load(sql: Runner, known: readonly Revision[]): Promise<Map<string, number>>;
}

/**
 * Replaces what the database holds by what the file holds, in one transaction: until its end, and if anything fails, the
 * database is as it was, and readers wait or see the old rows. Then the schema is brought to head. A database that is
 * missing is created.
 *
 * @throws InvalidInput for a file that is no good; NotFound when there is none
 * @throws Conflict for a backup that does not suit this release
 * @throws Unavailable for what the server or the file system refuses
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const { url, signal } = options;
  const known = options.revisions ?? (await readRevisions());
  try {
    const target = await describeTarget(url, signal);
    const backup = await openBackup(options, target);
    refuseUnknown(backup, known);
    if (target.database && (await holdsAnything(url, target.database, backup.schemas))) {
      await options.confirm(target.database);
    }
    signal?.throwIfAborted();
    const rows = await creating(url, !target.database, () => replace(options, backup, known));
    const { size } = await stat(options.path);
    options.progress?.({ doing: "upgrading" });
    const { applied, head } = await toHead(options, known);
    return { format: backup.format, bytes: size, tables: backup.tables.length, rows, heads: [head], applied };
  } catch (error) {
    signal?.throwIfAborted();
    throw operatorsError(fileError(error, options.path));
  }
}

async function openBackup(options: RestoreOptions, { major, server }: Target): Promise<OpenBackup> {
  const { path, env, signal, progress } = options;
  const format = await formatOf(path);
  if (format === "portable") return openPortable(path, progress);
  const found = await findTool("pg_restore", major, { server, env, directoriesOf: options.tools });
  if (!("tool" in found)) throw missingTool("pg_restore", major, found.others);
  return openCustom({ path, pgRestore: found.tool, env, signal, progress });
}

/** By its first bytes. @throws InvalidInput for a file that is neither */
export async function formatOf(path: string): Promise<Format> {
  let start: Buffer;
  try {
    const found = await stat(path);
    // Opening a pipe waits for its other end, and no signal reaches whoever waits.
    if (!found.isFile() && !found.isDirectory()) throw new InvalidInput("file", `${path} is no plain file`);
    const handle = await open(path, "r");
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(portableMagic.length), 0);
      start = buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(error, path);
  }
  if (start.subarray(0, 5).toString("latin1") === "PGDMP") return "custom";
  if (start.equals(portableMagic)) return "portable";
  const why = start.length === 0 ? "it is empty" : "its format is unknown";
  throw new InvalidInput("file", `${path} is not a backup of svc: ${why}`);
}

function refuseUnknown({ revisions }: OpenBackup, known: readonly Revision[]): void {
  const ours = new Map(known.map((revision) => [revision.id, revision.checksum]));
  const unknown = revisions.filter(({ id }) => !ours.has(id)).map(({ id }) => id);
  if (unknown.length > 0) {
    throw new Conflict(
      `The backup has revision ${unknown.join(", ")}, which this release does not know: it is newer. Restore it with the release that made it`,
    );
  }
  const edited = revisions.find(({ id, checksum }) => ours.get(id) !== checksum);
  if (edited) {
    throw new Conflict(`Revision ${edited.id} was edited since the backup was made: restore its files first`);
  }
}

/** @returns how many rows there are now */
async function replace(
  options: RestoreOptions,
  backup: OpenBackup,
  known: readonly Revision[],
): Promise<number> {
  const { url, patience, signal, notice } = options;
  const onWait = (holder: string) => notice?.(`waiting for another schema change: ${holder}`);
  let rows = 0;
  const load = async (transaction: Runner) => {
    await dropEverything(transaction);
    for (const schema of backup.schemas) {
      await transaction.unsafe(`drop schema if exists ${quoted(schema)} cascade`);
    }
    const loaded = await backup.load(transaction, known).catch((error) => {
      throw loadError(error);
    });
    options.progress?.({ doing: "comparing" });
    rows = await compare(transaction, backup, loaded);
    await holdRestored(transaction);
  };
  await withLock({ url, patience, purpose: "svc database restore", onWait }, (sql) =>
    cutOnAbort(sql, signal, () => whenFree("restore", notice, () => sql.begin(load))),
  );
  return rows;
}

/** Before the transaction ends: what is there now must be what the file holds. */
async function compare(sql: Runner, backup: OpenBackup, loaded: Map<string, number>): Promise<number> {
  const applied = (await readRevisionRows(sql)) ?? [];
  const text = (rows: OpenBackup["revisions"]) =>
    rows
      .map(({ id, checksum }) => `${id} ${checksum}`)
      .sort()
      .join("\n");
  if (text(applied) !== text(backup.revisions)) {
    throw new Conflict("The revisions that were restored are not those of the backup: nothing was changed");
  }
  const counts = await countRows(sql, backup.tables);
  for (const [index, table] of backup.tables.entries()) {
    const expected = loaded.get(plainName(table));
    if (counts[index] === expected) continue;
    throw new Conflict(
      `${plainName(table)} has ${counts[index]} rows where the backup has ${expected ?? "none"}: nothing was changed`,
    );
  }
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A value of a row may stand in what PostgreSQL says about data (class 22), but not in what it says about the rest. */
function loadError(error: unknown): unknown {
  if (!isPostgresError(error) || operatorsError(error) !== error) return error;
  const reason = error.code.startsWith("22") ? `a value is refused (${error.code})` : error.message;
  return new Conflict(`The backup cannot be loaded, nothing was changed: ${reason}`, { cause: error });
}

async function toHead({ url, patience, notice }: RestoreOptions, known: readonly Revision[]) {
  try {
    return await upgrade({ url, patience, notice, revisions: known });
  } catch (error) {
    const reason = error instanceof SvcError ? error.detail : "see svc database upgrade";
    throw new Unavailable(`The backup is restored, but could not be brought to head: ${reason}`, {
      cause: error,
    });
  }
}
