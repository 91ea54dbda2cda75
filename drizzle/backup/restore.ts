import type { BigIntStats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { Conflict, InvalidInput, SvcError, Unavailable } from "../../platform/errors.ts";
import type { Sql } from "../client.ts";
import { isPostgresError, operatorsError } from "../database_error.ts";
import { findDrift } from "../revision/check.ts";
import { databaseExists } from "../revision/create_database.ts";
import { type DatabaseDescription, describeDatabase, dropEverything, type ToDrop } from "../revision/drop.ts";
import { headsOf, type Revision, readRevisions } from "../revision/history.ts";
import { settings, withLock } from "../revision/lock.ts";
import { mayCreateDatabase, withScratchDatabase } from "../revision/scratch.ts";
import { whenFree } from "../revision/step.ts";
import { readApplied } from "../revision/store.ts";
import { upgrade } from "../revision/upgrade.ts";
import type { Backup } from "./dump.ts";
import { fileError } from "./file_error.ts";
import { magic } from "./format.ts";
import { ownObjects, refuseIncomplete } from "./identity.ts";
import { countRows, plainName, type Runner, readTables, tableName } from "./inventory.ts";
import { loadBackup, type TableRows } from "./load.ts";
import type { OnProgress } from "./progress.ts";
import { rememberPublications } from "./publications.ts";
import { type BackupContent, verifyBackup } from "./reader.ts";
import { cutOnAbort, withSession } from "./session.ts";
import { creating } from "./target.ts";

export interface RestoreOptions {
  url: string;
  path: string;
  /** Called before a database that is not empty is replaced; throws to cancel. */
  confirm: (database: DatabaseDescription) => Promise<void>;
  revisions?: readonly Revision[];
  /** Seconds to wait for another schema change. */
  patience?: number;
  signal?: AbortSignal;
  progress?: OnProgress;
  /** Called with the reason for a wait. */
  notice?: (message: string) => void;
}

interface RestoreResult extends Backup {
  /** The revisions that the upgrade to head applied afterwards; `heads` are those of the backup. */
  applied: string[];
}

/** A backup whose file is intact. */
interface OpenBackup {
  content: BackupContent;
  tables: TableRows[];
}

/**
 * Replaces the database's content with the file's. If there is data to lose, the backup is first loaded into a
 * temporary database, compared with its declaration and upgraded to head there. Only then does one transaction replace
 * the live tables: until it ends, or if anything fails, the database stays as it was, and readers wait or see the old
 * rows. Finally the schema is upgraded to head. A missing database is created.
 *
 * @throws InvalidInput for an invalid file; NotFound if there is no file
 * @throws Conflict for a backup that does not fit this release
 * @throws Unavailable for an error from the server or the file system
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const { url, path, signal } = options;
  const known = options.revisions ?? (await readRevisions());
  try {
    const exists = await databaseExists(url);
    const file = await fileIdentity(path);
    const backup = await openBackup(options);
    refuseUnknown(path, backup, known);
    const work: Work = { ...options, known, backup, unchanged: () => refuseChanged(path, file) };
    const database = exists ? await describeDatabase(url, (sql) => replacedBy(sql, work)) : undefined;
    const isReplaced = database !== undefined && database.objects > 0;
    if (isReplaced) await options.confirm(database);
    signal?.throwIfAborted();
    const rows = await creating(url, !exists, () => replace(work, isReplaced));
    options.progress?.({ doing: "upgrading" });
    const { applied } = await toHead(options, known);
    const heads = headsOf(
      known.filter(({ id }) => backup.content.header.revisions.some((one) => one.id === id)),
    );
    return { bytes: Number(file.size), tables: backup.tables.length, rows, heads, applied };
  } catch (error) {
    signal?.throwIfAborted();
    throw operatorsError(fileError(error, path));
  }
}

/**
 * What a backup replaces: svc's own objects in the schemas of its tables.
 * @throws Conflict for a table of others whose name the backup needs
 */
async function replacedBy(sql: Runner, { backup, known }: Pick<Work, "backup" | "known">): Promise<ToDrop> {
  const isOwn = await ownObjects(sql, known);
  const taken = (await readTables(sql)).filter(
    ({ schema, name }) =>
      !isOwn({ kind: "table", schema, name }) &&
      backup.tables.some((table) => table.schema === schema && table.name === name),
  );
  if (taken.length > 0)
    throw new Conflict(
      `${taken.map(plainName).join(", ")} ${taken.length === 1 ? "is" : "are"} in the backup, but no revision that this database records creates ${taken.length === 1 ? "it" : "them"}: rename what is not svc's, or remove everything with svc database drop`,
    );
  return { schemas: [...new Set(["public", ...backup.tables.map(({ schema }) => schema)])], isOwn };
}

interface Work extends RestoreOptions {
  known: readonly Revision[];
  backup: OpenBackup;
  /** @throws Conflict when the file is no longer the one that was checked */
  unchanged: () => Promise<void>;
}

type FileIdentity = Pick<BigIntStats, "dev" | "ino" | "size" | "mtimeNs">;

async function fileIdentity(path: string): Promise<FileIdentity> {
  const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
  return { dev, ino, size, mtimeNs };
}

/** Detects that another file took its place, for example because of a concurrent dump. */
async function refuseChanged(path: string, checked: FileIdentity): Promise<void> {
  const now = await fileIdentity(path);
  if (Object.entries(checked).every(([key, value]) => now[key as keyof FileIdentity] === value)) return;
  throw new Conflict(`${path} was replaced while it was read: nothing was changed. Run it again`);
}

/**
 * Checks that the whole file is intact before anything else happens.
 * @throws InvalidInput for a file that is not a backup, truncated, damaged or of a newer format
 */
async function openBackup({ path, progress }: RestoreOptions): Promise<OpenBackup> {
  await refuseForeign(path);
  const content = await verifyBackup(path, (bytes) => progress?.({ doing: "checking", bytes }));
  const { header, summary } = content;
  return {
    content,
    tables: header.tables.map((table, index) => ({ ...table, rows: summary.rows[index] ?? 0 })),
  };
}

/** Looks at the first bytes. @throws InvalidInput for any other file */
export async function refuseForeign(path: string): Promise<void> {
  let start: Buffer;
  try {
    const found = await stat(path);
    // Opening a pipe waits for its other end, and that wait cannot be interrupted.
    if (!found.isFile() && !found.isDirectory())
      throw new InvalidInput("file", `${path} is not a regular file`);
    const handle = await open(path, "r");
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(magic.length), 0);
      start = buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(error, path);
  }
  if (start.toString("latin1") === magic) return;
  const isArchive = start.toString("latin1").startsWith("PGDMP");
  const why = isArchive
    ? "it is an archive of pg_dump; load it with pg_restore"
    : start.length === 0
      ? "it is empty"
      : "its format is unknown";
  throw new InvalidInput("file", `${path} is not a backup of svc: ${why}`);
}

function refuseUnknown(path: string, { content }: OpenBackup, known: readonly Revision[]): void {
  const { revisions } = content.header;
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
    throw new Conflict(`Revision ${edited.id} was edited after the backup was made: restore its files first`);
  }
}

/** @returns the number of rows afterwards */
async function replace(work: Work, tryFirst: boolean): Promise<number> {
  const { url, patience, signal, notice } = work;
  let rows = 0;
  const load = async (transaction: Runner) => {
    rows = await replaceIn(transaction, work);
  };
  await withLock({ url, patience, notice, purpose: "svc database restore" }, (sql) =>
    cutOnAbort(sql, signal, async () => {
      if (tryFirst) await rehearse(sql, work);
      await whenFree("restore", notice, () => sql.begin(load));
    }),
  );
  return rows;
}

/**
 * Loads the backup into a temporary database and upgrades it to head there, so that any problem is found before the
 * live database is touched.
 */
async function rehearse(sql: Sql, work: Work): Promise<void> {
  const { url, signal, notice, known } = work;
  if (!(await mayCreateDatabase(sql))) {
    notice?.(
      "this user may not create databases: the backup is checked in the transaction that loads it, and tables stay locked meanwhile",
    );
    return;
  }
  const progress: OnProgress = (step) =>
    work.progress?.({ ...step, doing: `trying the backup, ${step.doing}` });
  const tryIn = async (scratch: string) => {
    const trial = { ...work, url: scratch, progress };
    await withSession(scratch, signal, (copy) => copy.begin((transaction) => replaceIn(transaction, trial)));
    await upgrade({ url: scratch, revisions: known }).catch((error) => {
      throw upgradeError(error);
    });
    const { length } = await findDrift(scratch, known);
    if (length === 0) return;
    const differences = length === 1 ? "1 difference" : `${length} differences`;
    notice?.(
      `the schema in the backup differs from what its revisions create (${differences}): svc database check --drift lists them afterwards`,
    );
  };
  await withScratchDatabase(url, "svc database restore", tryIn, "restore");
}

/** Runs in one transaction, which the caller ends. @returns the number of rows afterwards */
async function replaceIn(sql: Runner, work: Work): Promise<number> {
  const { known, progress } = work;
  const addToPublications = await rememberPublications(sql, work.notice);
  await dropEverything(sql, await replacedBy(sql, work));
  const loaded = await loadBackup(sql, work, known).catch((error) => {
    throw loadError(error);
  });
  await sql.unsafe(settings);
  progress?.({ doing: "comparing" });
  const rows = await compare(sql, work, loaded);
  await holdRestored(sql);
  await addToPublications();
  await work.unchanged();
  return rows;
}

/** Checks, before the transaction ends, that the database matches the file's declaration. */
async function compare(sql: Runner, { backup, known }: Work, loaded: Map<string, number>): Promise<number> {
  const applied = await readApplied(sql).catch((error: unknown) => {
    if (error instanceof Conflict) return undefined;
    throw error;
  });
  const text = (rows: { id: string; checksum: string }[]) =>
    rows
      .map(({ id, checksum }) => `${id} ${checksum}`)
      .sort()
      .join("\n");
  if (!applied || text(applied) !== text(backup.content.header.revisions)) {
    throw new Conflict("The restored revisions differ from those of the backup: nothing was changed");
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

/** PostgreSQL's data errors (class 22) may quote a value from a row; its other errors do not. */
function loadError(error: unknown): unknown {
  if (!isPostgresError(error) || operatorsError(error) !== error) return error;
  const reason = error.code.startsWith("22") ? `a value is refused (${error.code})` : error.message;
  return new Conflict(`The backup cannot be loaded, nothing was changed: ${reason}`, { cause: error });
}

function upgradeError(error: unknown): unknown {
  if (!(error instanceof SvcError)) return error;
  return new Conflict(
    `This release cannot upgrade the backup to head, so nothing was changed: ${error.detail}. Restore it with the release that made it`,
    { cause: error },
  );
}

async function toHead({ url, patience, notice }: RestoreOptions, known: readonly Revision[]) {
  try {
    return await upgrade({ url, patience, notice, revisions: known });
  } catch (error) {
    const reason = error instanceof SvcError ? error.detail : "see svc database upgrade";
    throw new Unavailable(`The backup was restored, but could not be upgraded to head: ${reason}`, {
      cause: error,
    });
  }
}

/**
 * Marks pending deliveries of a freshly restored backup as dead: the original database may have sent them since. They
 * are only sent again on request, with `svc scheduler deliveries --all-dead`.
 */
async function holdRestored(sql: Runner): Promise<void> {
  const [there] = await sql.unsafe("select to_regclass('public.delivery') is not null as yes");
  if (!there?.yes) return;
  await sql.unsafe(`
    update public.delivery set state = 'Dead', lease_until = null, due_at = null, finished_at = now(),
      error = 'It was pending in a restored backup, so it may have been sent since'
    where state = 'Queued'`);
}
