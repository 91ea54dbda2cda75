import type { Clock } from "../../platform/clock.ts";
import { Conflict, Unavailable } from "../../platform/errors.ts";
import { withTimeLimit } from "../../platform/time_limit.ts";
import { isPostgresError, operatorsError } from "../database_error.ts";
import { type Revision, readRevisions } from "../revision/history.ts";
import type { Applied } from "../revision/store.ts";
import { copyOut, countLines } from "./copy.ts";
import { isOurs, ownObjects, refuseIncomplete } from "./identity.ts";
import {
  copyTarget,
  headsOfApplied,
  plainName,
  type Runner,
  readEverything,
  readInventory,
  readSequences,
  type Sequence,
  type Table,
} from "./inventory.ts";
import { needsOwnTransaction } from "./load.ts";
import type { OnProgress } from "./progress.ts";
import { readRows, verifyBackup } from "./reader.ts";
import { withSession } from "./session.ts";
import { writeWhole } from "./unfinished.ts";
import { BackupWriter } from "./writer.ts";

export interface DumpOptions {
  url: string;
  /** The file to write. An existing file stays until the new one is complete. */
  path: string;
  /** The release of svc, for the record. */
  release: string;
  clock: Clock;
  revisions?: readonly Revision[];
  signal?: AbortSignal;
  progress?: OnProgress;
  /** Called with what the backup leaves out. */
  notice?: (message: string) => void;
}

export interface Backup {
  /** The file's size. */
  bytes: number;
  tables: number;
  rows: number;
  /** The newest revisions; usually one, unless the database was left between a fork and its merge. */
  heads: string[];
}

/** How long stopped work may take to clean up. */
const unwindMilliseconds = 3000;
const tellEveryBytes = 1 << 20;

/**
 * Backs up a consistent snapshot of the database while it is in use.
 *
 * @throws Unavailable for an error from the server or the file system
 * @throws Conflict for a database that is not ours, or that a restore could not recreate
 */
export async function dump(options: DumpOptions): Promise<Backup> {
  const known = options.revisions ?? (await readRevisions());
  let failure: unknown;
  let working: Promise<unknown> = Promise.resolve();
  try {
    return await withSession(options.url, options.signal, (sql) =>
      sql.begin("isolation level repeatable read read only", async (transaction) => {
        const backup = dumpSnapshot(transaction, options, known).catch((error) => {
          failure = error;
          throw error;
        });
        working = backup.catch(() => {});
        return backup;
      }),
    );
  } catch (error) {
    // Cutting the connection ends the transaction; the work then removes its unfinished file.
    await withTimeLimit(unwindMilliseconds, working);
    // If a COPY was interrupted, postgres.js reports only that it cannot roll back.
    options.signal?.throwIfAborted();
    throw operatorsError(readError(failure ?? error));
  }
}

async function dumpSnapshot(sql: Runner, options: DumpOptions, known: readonly Revision[]): Promise<Backup> {
  await sql.unsafe(readEverything);
  const { applied, tables } = await readInventory(sql);
  if (!applied) throw new Conflict("This database has no schema of svc: there is nothing to back up");
  if (!isOurs(applied, known)) {
    throw new Conflict(
      applied.length === 0
        ? "This database has no revision of svc: there is nothing to back up"
        : "This release knows none of the revisions in this database: dump it with the newer release that created them",
    );
  }
  await refuseIncomplete(sql, "This database", applied, known);
  refuseUnfinished(applied);
  refuseOwnTransaction(applied, known);
  const isOwn = await ownObjects(sql, known);
  const ours = tables.filter((table) => isOwn({ ...table, kind: "table" }));
  const schemas = new Set(["public", ...ours.map(({ schema }) => schema)]);
  const theirs = tables.filter((table) => schemas.has(table.schema) && !ours.includes(table));
  if (theirs.length > 0)
    options.notice?.(`left out, because no revision of svc creates it: ${theirs.map(plainName).join(", ")}`);
  const sequences = await readSequences(sql, ours, isOwn);
  const { rows, bytes } = await writeWhole(options.path, async (unfinished) => {
    const written = await writeRows(sql, unfinished, { tables: ours, sequences, applied }, options);
    await readBack(unfinished, ours, written.rows, options.progress);
    return written;
  });
  return {
    bytes,
    tables: ours.length,
    rows: rows.reduce((sum, count) => sum + count, 0),
    heads: headsOfApplied(applied, known),
  };
}

/**
 * Refuses a revision that a restore could not run: a backup that cannot be restored is worse than none.
 * @throws Conflict
 */
function refuseOwnTransaction(applied: readonly Applied[], known: readonly Revision[]): void {
  const ids = new Set(applied.map(({ id }) => id));
  const commits = known.find(({ id, up }) => ids.has(id) && needsOwnTransaction(up));
  if (!commits) return;
  throw new Conflict(
    `Revision ${commits.id} has a statement (CALL, or DO with COMMIT) that a restore could not run in its transaction: back up with pg_dump`,
  );
}

function refuseUnfinished(applied: readonly Applied[]): void {
  const half = applied.find(({ state }) => state !== "applied");
  if (!half) return;
  throw new Conflict(
    `Revision ${half.id} was interrupted while ${half.state}: run svc database upgrade to finish it`,
  );
}

interface Written {
  /** One count per table. */
  rows: number[];
  /** The file's size. */
  bytes: number;
}

/** Writes the rows with COPY, one table after another. */
async function writeRows(
  sql: Runner,
  path: string,
  { tables, sequences, applied }: { tables: Table[]; sequences: Sequence[]; applied: readonly Applied[] },
  { clock, release, progress }: DumpOptions,
): Promise<Written> {
  const [server] = await sql.unsafe("select current_setting('server_version') as version");
  await using writer = await BackupWriter.open(path, {
    created_at: clock.now().toISOString(),
    release,
    server_version: server!.version,
    compression: "zstd",
    revisions: applied.map(({ id, checksum }) => ({ id, checksum })),
    tables,
    sequences,
  });
  const rows: number[] = [];
  for (const [index, table] of tables.entries()) {
    const tell = () => progress?.({ doing: "dumping", table: plainName(table), bytes: writer.bytes });
    tell();
    let told = writer.bytes;
    const copy = await copyOut(sql, `copy ${copyTarget(table)} to stdout`);
    for await (const piece of copy) {
      if (!writer.add(index, piece)) await writer.drained;
      if (writer.bytes - told < tellEveryBytes) continue;
      told = writer.bytes;
      tell();
    }
    rows.push(await copy.count);
  }
  await writer.finish(rows);
  return { rows, bytes: writer.fileBytes };
}

/** Reads the whole file as `restore` does. @throws Unavailable if it does not hold the rows */
async function readBack(
  path: string,
  tables: readonly Table[],
  rows: readonly number[],
  progress?: OnProgress,
): Promise<void> {
  const content = await verifyBackup(path, (bytes) => progress?.({ doing: "checking", bytes }));
  const found = tables.map(() => 0);
  for await (const piece of readRows(path, content)) found[piece.table]! += countLines(piece.rows);
  const wrong = tables.filter((_, index) => found[index] !== rows[index]);
  if (wrong.length === 0) return;
  throw new Unavailable(
    `The file does not hold the rows of ${wrong.map(plainName).join(", ")}: nothing was written`,
  );
}

/** A restore requires the schema's owner; a dump only requires read access. */
function readError(error: unknown): unknown {
  if (!isPostgresError(error)) return error;
  const options = { cause: error };
  if (error.code === "42501") {
    const advice = error.message.includes("row-level security")
      ? "Dump as a role that sees every row (alter role NAME bypassrls)"
      : "Dump as the owner of the tables, or grant the right to read them (grant pg_read_all_data to NAME)";
    return new Unavailable(`PostgreSQL: ${error.message}. ${advice}`, options);
  }
  if (error.code === "22021" || error.code === "22P05") {
    return new Conflict(
      `A text is not valid UTF-8 (${error.message}), as in a database with the encoding SQL_ASCII: back up with pg_dump, and move the data to a database with the encoding UTF8`,
      options,
    );
  }
  if (error.code !== "55P03") return error;
  return new Conflict(
    "A table stayed locked for 60 s, perhaps by a schema change: dump again when it is over",
    options,
  );
}
