import { sql } from "drizzle-orm";
import {
  behindPooler,
  errorCode,
  isOutOfSpace,
  reasonOf,
  refusedByPooler,
} from "../drizzle/database_error.ts";
import { assertServable, type SchemaStatus, schemaStatus } from "../drizzle/revision/status.ts";
import { ConfigurationError, Unavailable } from "../platform/errors.ts";
import type { Keys } from "./auth/token/keys.ts";
import type { Context } from "./context.ts";
import { wrongKeySecret } from "./key_secret.ts";

/*
 * Readiness: whether this process can serve. It needs a database that answers, accepts writes and has room for them, a
 * schema that this release can work on, and a signing key that it can open.
 */

/** `unreachable` also when it took longer than the caller waits. */
export type DatabaseState = "ok" | "unreachable" | "read_only" | "disk_full";
/** `unknown`: the database could not be asked. */
export type KeyState = "ok" | "unusable" | "unknown";

/**
 * Whether the database refuses writes: a replica, or `default_transaction_read_only`.
 * @throws when the database does not answer
 */
export async function isReadOnly(db: Context["db"]): Promise<boolean> {
  const [row] = await db.execute<{ read_only: boolean }>(
    sql`select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as read_only`,
  );
  return row!.read_only;
}

/**
 * Whether PostgreSQL has less than a megabyte left on this database's disk. It writes a temporary file of that size,
 * which leaves nothing behind: no dead row, no WAL. A small UPDATE would often find room in an existing page.
 * @throws when the database does not answer
 */
export async function isDiskFull(db: Context["db"]): Promise<boolean> {
  try {
    await db.transaction(async (tx) => {
      await tx.execute(
        sql`select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)`,
      );
      await tx.execute(
        sql`with filler as materialized (select repeat('x', 8000) as text from generate_series(1, 128))
            select count(text) from filler`,
      );
    });
    return false;
  } catch (error) {
    if (isOutOfSpace(error)) return true;
    // With so small a temp_file_limit, the disk cannot be tested.
    if (errorCode((error as Error).cause ?? error) === "53400") return false;
    throw error;
  }
}

/** Whether tokens can be signed. A ConfigurationError says why not. Never throws. */
export async function keyState(keys: Pick<Keys, "signing">): Promise<{ state: KeyState; error?: unknown }> {
  try {
    await keys.signing();
    return { state: "ok" };
  } catch (error) {
    return { state: error instanceof ConfigurationError ? "unusable" : "unknown", error };
  }
}

/**
 * Checks that a process can serve, before it does. If the database does not answer yet, the process only has to wait.
 * Everything else would persist until somebody fixes it.
 *
 * @throws Conflict, Unavailable, ConfigurationError, each with the fix
 */
export async function assertReady(
  { db, config, log }: Pick<Context, "db" | "config" | "log">,
  keys: Pick<Keys, "signing">,
): Promise<void> {
  let schema: SchemaStatus;
  let [readOnly, full] = [false, false];
  try {
    [schema, readOnly, full] = await Promise.all([schemaStatus(db), isReadOnly(db), isDiskFull(db)]);
  } catch (error) {
    if (refusedByPooler(error)) throw behindPooler(error);
    log.warn({ err: error, ...reasonOf(error) }, "the database does not answer yet");
    return;
  }
  assertServable(schema);
  if (readOnly) {
    throw new Unavailable(
      "The database is read-only (a replica, or default_transaction_read_only): set SVC_DATABASE_URL to the primary",
    );
  }
  if (full) throw new Unavailable("PostgreSQL's disk is full: free some space, then start the server again");
  const { state, error } = await keyState(keys);
  if (state === "unusable") throw error;
  if (state === "unknown")
    log.warn({ err: error, ...reasonOf(error) }, "the signing keys cannot be read yet");
  const wrong = await wrongKeySecret({ db, config }).catch(() => undefined);
  if (wrong) throw wrong;
}
