import { sql } from "drizzle-orm";
import { ownObjects } from "../../drizzle/backup/identity.ts";
import type { Runner } from "../../drizzle/backup/inventory.ts";
import { makeTables } from "../../drizzle/backup/load.ts";
import type { OnProgress } from "../../drizzle/backup/progress.ts";
import { rememberPublications } from "../../drizzle/backup/publications.ts";
import { creating } from "../../drizzle/backup/target.ts";
import { openDatabase, type Transaction } from "../../drizzle/client.ts";
import { operatorsError, withoutQuery } from "../../drizzle/database_error.ts";
import { databaseExists } from "../../drizzle/revision/create_database.ts";
import { type DatabaseDescription, describeDatabase, dropEverything } from "../../drizzle/revision/drop.ts";
import { type Revision, readRevisions } from "../../drizzle/revision/history.ts";
import { withLock } from "../../drizzle/revision/lock.ts";
import { oneHead } from "../../drizzle/revision/plan.ts";
import { whenFree } from "../../drizzle/revision/step.ts";
import { record } from "../../drizzle/revision/store.ts";
import { installTriggers } from "../../drizzle/revision/triggers.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { type LoadedExample, loadExample } from "./load.ts";

export interface RestoreExampleOptions {
  url: string;
  /** Called before a database that is not empty is replaced; throws to cancel. */
  confirm: (database: DatabaseDescription) => Promise<void>;
  clock?: Clock;
  /** Seconds to wait for another schema change. */
  patience?: number;
  signal?: AbortSignal;
  progress?: OnProgress;
  /** Called with the reason for a wait. */
  notice?: (message: string) => void;
}

export interface RestoredExample extends LoadedExample {
  /** The schema's revision. */
  head: string;
}

/**
 * Replaces the database's content with the example, at head, in one transaction: if anything fails, the database is
 * unchanged. A missing database is created.
 *
 * @throws Unavailable for an error from the server; the error that `confirm` throws
 */
export async function restoreExample(options: RestoreExampleOptions): Promise<RestoredExample> {
  const { url, signal } = options;
  const known = await readRevisions();
  const head = oneHead(known);
  try {
    const exists = await databaseExists(url);
    const database = exists ? await describeDatabase(url, (sql) => replacedBy(sql, known)) : undefined;
    if (database && database.objects > 0) await options.confirm(database);
    signal?.throwIfAborted();
    const loaded = await creating(url, !exists, () => replace(options, known));
    return { ...loaded, head };
  } catch (error) {
    signal?.throwIfAborted();
    throw operatorsError(withoutQuery(error));
  }
}

const replacedBy = async (sql: Runner, known: readonly Revision[]) => ({
  isOwn: await ownObjects(sql, known),
});

async function replace(
  { url, patience, signal, progress, notice, clock = systemClock }: RestoreExampleOptions,
  known: readonly Revision[],
): Promise<LoadedExample> {
  // A separate connection, because drizzle changes how its connection reads and writes values.
  const { db, close } = openDatabase(url, 1);
  const load = (tx: Transaction) => loadInto(tx, { known, now: clock.now(), signal, progress, notice });
  try {
    return await withLock({ url, patience, notice, purpose: "svc database restore" }, () =>
      whenFree("restore", notice, () =>
        db.transaction(load).catch((error: unknown) => {
          throw withoutQuery(error);
        }),
      ),
    );
  } finally {
    await close();
  }
}

interface Loading extends Pick<RestoreExampleOptions, "signal" | "progress" | "notice"> {
  known: readonly Revision[];
  now: Date;
}

async function loadInto(
  tx: Transaction,
  { known, now, signal, progress, notice }: Loading,
): Promise<LoadedExample> {
  const run = async (text: string) => {
    signal?.throwIfAborted();
    return tx.execute(sql.raw(text)).catch((error: unknown) => {
      throw withoutQuery(error);
    });
  };
  const runner = { unsafe: run } as unknown as Runner;
  await run("set local lock_timeout = '5s'; set local statement_timeout = 0; set local search_path = public");
  const addToPublications = await rememberPublications(runner, notice);
  await dropEverything(runner, await replacedBy(runner, known));
  progress?.({ doing: "creating tables" });
  await makeTables(runner, known, known);
  for (const revision of known) await record(runner, revision);
  await installTriggers(runner);
  progress?.({ doing: "loading the example" });
  const loaded = await loadExample(tx, now);
  await addToPublications();
  // The last point before anything takes effect.
  signal?.throwIfAborted();
  return loaded;
}
