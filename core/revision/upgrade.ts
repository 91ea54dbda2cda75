import { openSql, type Sql } from "../../drizzle/client.ts";
import { Conflict, SvcError, Unavailable } from "../errors.ts";
import { headsOf, pendingRevisions } from "./graph.ts";
import { type Revision, type Revisions, readRevisions } from "./read.ts";

/** Any number that no one else uses: `pg_locks` shows it, so an operator can see who holds it. */
const lockKey = 7_798_563;
const lockDeadlineSeconds = 60;

/**
 * Brings the schema to its one head: each revision in its own transaction, then the triggers. Safe to run from
 * several machines at once: one works, the others wait up to a minute and then find nothing to do.
 *
 * @throws Unavailable when PostgreSQL does not answer or refuses us
 * @throws Conflict when the database's revisions are not ours, or someone else holds the lock too long
 */
export async function upgrade(options: {
  url: string;
  log?: (line: string) => void;
  revisions?: Revisions;
}): Promise<{ applied: string[]; head: string }> {
  const known = options.revisions ?? (await readRevisions());
  const [head, ...others] = headsOf(known.revisions);
  if (!head || others.length > 0) {
    throw new SvcError(
      "configuration",
      `The schema has ${others.length + 1} heads: ${[head, ...others].join(", ")}`,
    );
  }
  // One connection: the lock belongs to it.
  const sql = openSql(options.url, { max: 1 });
  try {
    await lock(sql);
    await createRevisionTable(sql);
    const applied = await appliedRevisions(sql);
    refuseStrangers(known.revisions, applied);
    const pending = pendingRevisions(known.revisions, new Set(applied.keys()));
    for (const revision of pending) {
      await apply(sql, revision);
      options.log?.(revision.id);
    }
    await sql.begin(async (transaction) => {
      for (const trigger of known.triggers) await transaction.unsafe(trigger.sql);
    });
    return { applied: pending.map((revision) => revision.id), head };
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Polls: a session that blocks in pg_advisory_lock deadlocks with CREATE INDEX CONCURRENTLY of the holder. */
async function lock(sql: Sql): Promise<void> {
  const deadline = performance.now() + lockDeadlineSeconds * 1000;
  for (;;) {
    const [row] = await sql`select pg_try_advisory_lock(${lockKey}) as held`;
    if (row?.held) return;
    if (performance.now() > deadline) {
      const [holder] = await sql`
        select a.pid, a.client_addr, a.application_name from pg_locks l join pg_stat_activity a using (pid)
        where l.locktype = 'advisory' and l.objid = ${lockKey} and l.granted and l.database =
          (select oid from pg_database where datname = current_database())`;
      throw new Conflict(
        `Another schema change has been running for over ${lockDeadlineSeconds} s` +
          (holder ? ` (backend ${holder.pid}, ${holder.client_addr ?? "local"})` : ""),
      );
    }
    await Bun.sleep(50);
  }
}

async function createRevisionTable(sql: Sql): Promise<void> {
  await sql`
    create table if not exists revision (
      id text primary key,
      checksum text not null,
      down_sql text not null,
      applied_at timestamptz not null default now()
    )`;
}

async function appliedRevisions(sql: Sql): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; checksum: string }[]>`select id, checksum from revision`;
  return new Map(rows.map((row) => [row.id, row.checksum]));
}

function refuseStrangers(known: readonly Revision[], applied: ReadonlyMap<string, string>): void {
  const checksums = new Map(known.map((revision) => [revision.id, revision.checksum]));
  for (const [id, checksum] of applied) {
    const ours = checksums.get(id);
    if (!ours)
      throw new Conflict(`The database has revision ${id}, which this release does not know: it is newer`);
    if (ours !== checksum) throw new Conflict(`Revision ${id} was edited after it had been applied`);
  }
}

async function apply(sql: Sql, revision: Revision): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`set local lock_timeout = '10s'`;
    await transaction.unsafe(revision.up);
    await transaction`
      insert into revision (id, checksum, down_sql)
      values (${revision.id}, ${revision.checksum}, ${revision.down})`;
  });
}

/** What an operator can cause gets one clear line; the rest stays as it is. */
function operatorsError(error: unknown): unknown {
  const code = (error as { code?: unknown }).code;
  if (error instanceof SvcError || typeof code !== "string") return error;
  const options = { cause: error };
  switch (code) {
    case "28P01":
    case "28000":
      return new Unavailable("PostgreSQL refuses this user or password: see SVC_DATABASE_URL", options);
    case "3D000":
      return new Unavailable("This database does not exist: see SVC_DATABASE_URL", options);
    case "42501":
      return new Unavailable("PostgreSQL does not let this user change the schema", options);
    case "25006":
      return new Unavailable(
        "This database is read-only (a replica?): run this against the primary",
        options,
      );
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "CONNECT_TIMEOUT":
    case "CONNECTION_CLOSED":
    case "57P03":
      return new Unavailable("PostgreSQL does not answer: see SVC_DATABASE_URL", options);
    case "55P03":
      return new Conflict(
        "A table that must change stayed locked for 10 s: try again when it is quieter",
        options,
      );
    default:
      return error;
  }
}
