import type { Clock } from "../../platform/clock.ts";
import { Conflict, Unavailable } from "../../platform/errors.ts";
import { withTimeLimit } from "../../platform/time_limit.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Sql } from "../client.ts";
import { isPostgresError, operatorsError } from "../database_error.ts";
import { type Revision, readRevisions } from "../revision/history.ts";
import type { Applied } from "../revision/store.ts";
import { dumpCustom } from "./dump_custom.ts";
import { dumpPortable } from "./dump_portable.ts";
import { isOurs, refuseIncomplete } from "./identity.ts";
import {
  headsOfApplied,
  type Inventory,
  type Runner,
  readEverything,
  readForeignTables,
  readInventory,
} from "./inventory.ts";
import type { OnProgress } from "./progress.ts";
import { majorVersion, withSession } from "./session.ts";
import { serverOf } from "./tool_process.ts";
import { findTool, missingTool, type ToolSearch } from "./tools.ts";
import { writeWhole } from "./unfinished.ts";

/** `custom` is pg_dump's format; `portable` is ours, for a machine without PostgreSQL's tools. */
export type Format = "custom" | "portable";

export interface DumpOptions {
  url: string;
  /** The file to write. An existing file stays until the new one is complete. */
  path: string;
  /** `auto`: custom if a pg_dump of the server's version is found, portable if there is no pg_dump at all. */
  format?: Format | "auto";
  /** The release of svc, for the record. */
  release: string;
  clock: Clock;
  env: Environment;
  tools?: ToolSearch["directoriesOf"];
  revisions?: readonly Revision[];
  signal?: AbortSignal;
  progress?: OnProgress;
}

export interface Backup {
  format: Format;
  /** The file's size. */
  bytes: number;
  tables: number;
  rows: number;
  /** The newest revisions; usually one, unless the database was left between a fork and its merge. */
  heads: string[];
}

/** The input of a dump format: a transaction with a single snapshot, and a file to fill. */
export interface DumpWork extends Omit<DumpOptions, "format"> {
  sql: Sql;
  snapshot: Runner;
  inventory: Inventory & { applied: Applied[] };
  known: readonly Revision[];
  unfinished: string;
  major: number;
}

/** How long stopped work may take to clean up. */
const unwindMilliseconds = 3000;

/**
 * Backs up a consistent snapshot of the database while it is in use.
 *
 * @throws Unavailable for an error from the server or the file system, and for a pg_dump of another version
 * @throws Conflict for a database that is not ours, or that the portable format cannot represent
 */
export async function dump(options: DumpOptions): Promise<Backup> {
  const known = options.revisions ?? (await readRevisions());
  let failure: unknown;
  let working: Promise<unknown> = Promise.resolve();
  try {
    return await withSession(options.url, options.signal, async (sql) => {
      const major = await majorVersion(sql);
      const format = await chooseFormat(sql, major, options);
      return sql.begin("isolation level repeatable read read only", async (transaction) => {
        const work = { ...options, sql, snapshot: transaction, known, major, format };
        const backup = dumpSnapshot(work).catch((error) => {
          failure = error;
          throw error;
        });
        working = backup.catch(() => {});
        return backup;
      });
    });
  } catch (error) {
    // Cutting the connection ends the transaction; the work then removes its unfinished file.
    await withTimeLimit(unwindMilliseconds, working);
    // If a COPY was interrupted, postgres.js reports only that it cannot roll back.
    options.signal?.throwIfAborted();
    throw operatorsError(readError(failure ?? error));
  }
}

type Snapshot = Omit<DumpWork, "inventory" | "unfinished"> & { format: Format };

async function dumpSnapshot(snapshot: Snapshot): Promise<Backup> {
  const { snapshot: transaction, known, format, path } = snapshot;
  await transaction.unsafe(readEverything);
  const { applied, ...inventory } = await readInventory(transaction);
  const { tables } = inventory;
  if (!applied) throw new Conflict("This database has no schema of svc: there is nothing to back up");
  if (!isOurs(applied, known)) {
    throw new Conflict(
      applied.length === 0
        ? "This database has no revision of svc: there is nothing to back up"
        : "This release knows none of the revisions in this database: dump it with the newer release that created them",
    );
  }
  await refuseIncomplete(transaction, "This database", applied, known);
  const foreign = format === "custom" ? await readForeignTables(transaction) : [];
  if (foreign.length > 0) {
    throw new Conflict(
      `A backup does not contain the server of the foreign table ${foreign.join(", ")}, so it could not be restored: move it to another database, or drop it`,
    );
  }
  const { rows, bytes } = await writeWhole(path, async (unfinished) => {
    const work = { ...snapshot, inventory: { ...inventory, applied }, unfinished };
    return format === "custom" ? dumpCustom(work) : dumpPortable(work);
  });
  return {
    format,
    bytes,
    tables: tables.length,
    rows: rows.reduce((sum, count) => sum + count, 0),
    heads: headsOfApplied(applied, known),
  };
}

async function chooseFormat(sql: Sql, major: number, options: DumpOptions): Promise<Format> {
  const { format = "auto", env, tools } = options;
  if (format === "portable") return format;
  const found = await findTool("pg_dump", major, { server: serverOf(sql), env, directoriesOf: tools });
  if ("tool" in found) return "custom";
  if (format === "auto" && found.others.length === 0) return "portable";
  throw missingTool("pg_dump", major, found.others);
}

/** A restore requires the schema's owner; a dump only requires read access. */
function readError(error: unknown): unknown {
  if (!isPostgresError(error)) return error;
  const options = { cause: error };
  if (error.code === "42501") {
    return new Unavailable(`PostgreSQL: ${error.message}. Dump as the owner of the tables`, options);
  }
  if (error.code !== "55P03") return error;
  return new Conflict(
    "A table stayed locked for 60 s, perhaps by a schema change: dump again when it is over",
    options,
  );
}
