import type { BigIntStats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { Conflict, InvalidInput, SvcError, Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Sql } from "../client.ts";
import { isPostgresError, operatorsError } from "../database_error.ts";
import { whenFree } from "../revision/apply.ts";
import { type DatabaseDescription, dropEverything } from "../revision/drop.ts";
import { type Revision, readRevisions } from "../revision/history.ts";
import { settings, withLock } from "../revision/lock.ts";
import { upgrade } from "../revision/upgrade.ts";
import type { Backup, Format } from "./dump.ts";
import { provideExtensions } from "./extensions.ts";
import { fileError } from "./file_error.ts";
import { holdRestored } from "./hold_deliveries.ts";
import { refuseIncomplete } from "./identity.ts";
import {
  countRows,
  type Extension,
  plainName,
  type Runner,
  readRevisionRows,
  type TableRows,
  tableName,
} from "./inventory.ts";
import { portableMagic } from "./portable_file.ts";
import type { OnProgress } from "./progress.ts";
import { openCustom } from "./restore_custom.ts";
import { openPortable } from "./restore_portable.ts";
import { createScratch, linesOf, schemaOf } from "./scratch.ts";
import { cutOnAbort, withSession } from "./session.ts";
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
  /** Present where it was made, and not part of it. */
  extensions: Extension[];
  tables: TableRows[];
  /** Makes tables and rows in this transaction of an empty database. @returns the rows that it loaded, by `tableName` */
  load(sql: Runner, known: readonly Revision[]): Promise<Map<string, number>>;
}

/**
 * Replaces what the database holds by what the file holds. Where there is something to lose, the backup is first loaded
 * into a scratch database, compared with what it declares and brought to head there; only then one transaction replaces
 * the live tables: until its end, and if anything fails, the database is as it was, and readers wait or see the old rows.
 * Then the schema is brought to head. A database that is missing is created.
 *
 * @throws InvalidInput for a file that is no good; NotFound when there is none
 * @throws Conflict for a backup that does not suit this release
 * @throws Unavailable for what the server or the file system refuses
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const { url, path, signal } = options;
  const known = options.revisions ?? (await readRevisions());
  try {
    const target = await describeTarget(url, signal);
    const file = await fileIdentity(path);
    const backup = await openBackup(options, target);
    refuseUnknown(path, backup, known);
    const work: Work = { ...options, known, backup, unchanged: () => refuseChanged(path, file) };
    const replaced = target.database && (await holdsAnything(url, target.database, backup.schemas));
    if (target.database && replaced) await options.confirm(target.database);
    signal?.throwIfAborted();
    const rows = await creating(url, !target.database, () => replace(work, replaced === true));
    options.progress?.({ doing: "upgrading" });
    const { applied, head } = await toHead(options, known);
    const { format, tables } = backup;
    return { format, bytes: Number(file.size), tables: tables.length, rows, heads: [head], applied };
  } catch (error) {
    signal?.throwIfAborted();
    throw operatorsError(fileError(error, path));
  }
}

interface Work extends RestoreOptions {
  known: readonly Revision[];
  backup: OpenBackup;
  /** @throws Conflict when the file is not the one that was checked */
  unchanged: () => Promise<void>;
}

type FileIdentity = Pick<BigIntStats, "dev" | "ino" | "size" | "mtimeNs">;

async function fileIdentity(path: string): Promise<FileIdentity> {
  const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
  return { dev, ino, size, mtimeNs };
}

/** A dump that runs meanwhile puts another file in its place. */
async function refuseChanged(path: string, checked: FileIdentity): Promise<void> {
  const now = await fileIdentity(path);
  if (Object.entries(checked).every(([key, value]) => now[key as keyof FileIdentity] === value)) return;
  throw new Conflict(`${path} was replaced while it was read: nothing was changed. Run it again`);
}

async function openBackup(options: RestoreOptions, { major, server }: Target): Promise<OpenBackup> {
  const { path, env, signal, progress } = options;
  const format = await formatOf(path);
  if (format === "portable") return openPortable(path, options);
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

function refuseUnknown(path: string, { revisions }: OpenBackup, known: readonly Revision[]): void {
  if (revisions.length === 0)
    throw new InvalidInput("file", `${path} is not a backup of svc: it has no revision`);
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
async function replace(work: Work, tryFirst: boolean): Promise<number> {
  const { url, patience, signal, notice } = work;
  const onWait = (holder: string) => notice?.(`waiting for another schema change: ${holder}`);
  let rows = 0;
  const load = async (transaction: Runner) => {
    rows = await replaceIn(transaction, work);
  };
  await withLock({ url, patience, purpose: "svc database restore", onWait }, (sql) =>
    cutOnAbort(sql, signal, async () => {
      if (tryFirst) await rehearse(sql, work);
      await whenFree("restore", notice, () => sql.begin(load));
    }),
  );
  return rows;
}

/**
 * Loads the backup into a scratch database and brings it to head there, so that whatever is wrong with it is found while
 * nobody is disturbed.
 */
async function rehearse(sql: Sql, work: Work): Promise<void> {
  const { signal, notice, known } = work;
  const scratch = await createScratch(sql, work.url);
  if (!scratch) {
    notice?.(
      "this user may not create databases: the backup is checked in the transaction that loads it, and tables stay locked meanwhile",
    );
    return;
  }
  const progress: OnProgress = (step) =>
    work.progress?.({ ...step, doing: `trying the backup, ${step.doing}` });
  const trial = { ...work, url: scratch.url, progress };
  try {
    await withSession(scratch.url, signal, async (copy) => {
      const expected = await schemaOf(copy, known);
      await copy.begin((transaction) => replaceIn(transaction, trial));
      await upgrade({ url: scratch.url, revisions: known }).catch((error) => {
        throw upgradeError(error);
      });
      const drift = expected.symmetricDifference(await linesOf(copy));
      if (drift.size > 0) {
        const differences = drift.size === 1 ? "1 difference" : `${drift.size} differences`;
        notice?.(
          `the schema in the backup is not quite what its revisions make (${differences}): svc database check --drift lists them afterwards`,
        );
      }
    });
  } finally {
    await scratch.drop();
  }
}

/** In one transaction, which the caller ends. @returns how many rows there are then */
async function replaceIn(sql: Runner, work: Work): Promise<number> {
  const { backup, known, progress } = work;
  await dropEverything(sql, [...new Set(["public", ...backup.schemas])]);
  await provideExtensions(sql, backup.extensions, work.notice);
  const loaded = await backup.load(sql, known).catch((error) => {
    throw loadError(error);
  });
  await sql.unsafe(settings);
  progress?.({ doing: "comparing" });
  const rows = await compare(sql, work, loaded);
  await holdRestored(sql);
  await work.unchanged();
  return rows;
}

/** Before the transaction ends: what is there now must be what the file declares. */
async function compare(sql: Runner, { backup, known }: Work, loaded: Map<string, number>): Promise<number> {
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
    const found = [counts[index], loaded.get(tableName(table)) ?? 0];
    const other = found.find((rows) => rows !== table.rows);
    if (other === undefined) continue;
    throw new Conflict(
      `${plainName(table)} has ${other} rows where the backup has ${table.rows}: nothing was changed`,
    );
  }
  await refuseIncomplete(sql, "The backup", applied, known);
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A value of a row may stand in what PostgreSQL says about data (class 22), but not in what it says about the rest. */
function loadError(error: unknown): unknown {
  if (!isPostgresError(error) || operatorsError(error) !== error) return error;
  const reason = error.code.startsWith("22") ? `a value is refused (${error.code})` : error.message;
  return new Conflict(`The backup cannot be loaded, nothing was changed: ${reason}`, { cause: error });
}

function upgradeError(error: unknown): unknown {
  if (!(error instanceof SvcError)) return error;
  return new Conflict(
    `This release cannot bring the backup to head, so nothing was changed: ${error.detail}. Restore it with the release that made it`,
    { cause: error },
  );
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
