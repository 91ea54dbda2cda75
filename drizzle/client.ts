import { drizzle } from "drizzle-orm/postgres-js";
import { withTimeLimit } from "../platform/time_limit.ts";
import { limitStatements } from "./connection/limit.ts";
import { Notifier, notifyWith } from "./connection/notify.ts";
import { sendParametersAtOnce } from "./connection/postgres.ts";
import { prepareInTransactions } from "./connection/prepare.ts";
import { UnreachableRetry } from "./connection/socket.ts";
import { openSql } from "./connection/sql.ts";
import { type PoolWatch, watchSql } from "./connection/watch.ts";
import type { Database } from "./database.ts";
import * as schema from "./schema/index.ts";

export { openSql, type Sql } from "./connection/sql.ts";
export type { Database, Transaction } from "./database.ts";

export interface DatabaseClient {
  db: Database;
  /** Rejects work that is still running after this many seconds. */
  close(graceSeconds?: number): Promise<void>;
}

interface OwnOptions {
  prepare?: boolean;
  /**
   * Limits how long a statement may take, including the time for which it waits for a connection. A connection that is
   * silent for half as long again is closed.
   */
  limitSeconds?: number;
  /** Called for each statement that succeeds, with `limitSeconds`. */
  answered?: () => void;
  /** Behind a pooler, which refuses settings of PostgreSQL from its clients. */
  pooled?: boolean;
}

/**
 * What svc relies on, and a database or role may set differently: a path that leads to its tables, and that a statement
 * sees what was committed before it. Everything else is left to the operator: time limits, what is read-only, and how
 * queries are planned.
 */
export const sessionSettings = {
  search_path: "public",
  default_transaction_isolation: "read committed",
} as const;

/** For a pool whose statements are all short. */
export const shortStatements = { limitSeconds: 20 };

/**
 * A pool of up to `poolSize` connections, opened on demand. Without `prepare`, nothing is prepared even on request:
 * behind a pooler the next statement may use another connection.
 */
export function openDatabase(
  url: string,
  poolSize: number,
  watch?: PoolWatch,
  { prepare = true, pooled = false, limitSeconds, answered }: OwnOptions = {},
): DatabaseClient {
  // An idle connection is closed before it is silent for too long, so that no statement is sent on it at that moment.
  const limits = limitSeconds
    ? { idle_timeout: limitSeconds, silenceSeconds: 1.5 * limitSeconds, retry: new UnreachableRetry() }
    : {};
  const connection = pooled ? {} : sessionSettings;
  const client = openSql(url, { max: poolSize, idle_timeout: 300, prepare, connection, ...limits });
  sendParametersAtOnce(client);
  if (prepare) prepareInTransactions(client);
  if (limitSeconds) limitStatements(client, limitSeconds, answered);
  if (watch) watchSql(client, watch);
  const db = drizzle(client, { schema });
  const notifier = new Notifier(client);
  notifyWith(db, notifier);
  const close = async (timeout = 5) => {
    await withTimeLimit(Math.min(timeout, 1) * 1000, notifier.flush());
    await client.end({ timeout });
  };
  return { db, close };
}
