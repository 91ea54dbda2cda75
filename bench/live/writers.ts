import { join } from "node:path";
import { drizzle } from "drizzle-orm/postgres-js";
import { recordEvent } from "../../core/incident/timeline/event.ts";
import { type Database, openDatabase, openSql } from "../../drizzle/client.ts";
import * as schema from "../../drizzle/schema/index.ts";
import { startProgram, verdict } from "../support.ts";

const goal = 0.9;
const rounds = 2;

/** What notified of each event before hints. */
const trigger = `
  create function bench_notify() returns trigger language plpgsql as $$
    begin perform pg_notify('svc_event', concat_ws(' ', new.incident_id, new.id)); return null; end $$;
  create trigger bench_notify after insert on event for each row execute function bench_notify()`;

interface Writers {
  databaseUrl: string;
  seconds: number;
  directory: string;
  /** Of the server that is watched, with the token of a reader. */
  address: string;
  token: string;
}

/** Transactions a second that lock an incident and record an event: without hints, with hints and watchers, with a trigger. */
export async function benchWriters(bench: Writers): Promise<void> {
  const { databaseUrl, seconds } = bench;
  const sql = openSql(databaseUrl, { max: 1 });
  const incidents = await sql<{ id: number }[]>`
    insert into incident (title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at)
    select 'Slow', '', 1, 1, now(), now(), now() from generate_series(1, 32) returning id`;
  const ids = incidents.map(({ id }) => Number(id));
  for (const writers of [10, 32]) {
    const of = ids.slice(0, writers);
    const rates = { none: 0, hints: 0, trigger: 0 };
    for (let round = 0; round <= rounds; round += 1) {
      // The first one does not count.
      const last = round === 0 ? Math.min(seconds, 1) : seconds;
      const results = {
        none: await withoutHints(databaseUrl, of, last),
        hints: await withWatchers(bench, of, () => withHints(databaseUrl, of, last)),
        trigger: await withTrigger(sql, () => withoutHints(databaseUrl, of, last)),
      };
      if (round === 0) continue;
      for (const name of ["none", "hints", "trigger"] as const) rates[name] += results[name] / rounds;
    }
    const { none, hints } = rates;
    console.log(
      `writers  ${writers}: ${none.toFixed(0)}/s without hints; ${hints.toFixed(0)}/s with hints and a watcher of each; ${rates.trigger.toFixed(0)}/s with a trigger that notifies`,
    );
    console.log(`         ${(hints / none).toFixed(2)}; goal: ${goal}: ${verdict(hints / none >= goal)}`);
  }
  await sql.end();
}

async function withHints(url: string, ids: readonly number[], seconds: number): Promise<number> {
  const { db, close } = openDatabase(url, ids.length);
  return write(db, ids, seconds).finally(() => close());
}

async function withoutHints(url: string, ids: readonly number[], seconds: number): Promise<number> {
  const sql = openSql(url, { max: ids.length });
  return write(drizzle(sql, { schema }), ids, seconds).finally(() => sql.end());
}

async function withTrigger<T>(sql: ReturnType<typeof openSql>, work: () => Promise<T>): Promise<T> {
  await sql.unsafe(trigger);
  try {
    return await work();
  } finally {
    await sql.unsafe("drop trigger bench_notify on event; drop function bench_notify()");
  }
}

async function withWatchers<T>(
  { directory, address, token }: Writers,
  ids: readonly number[],
  work: () => Promise<T>,
): Promise<T> {
  await using parts = new AsyncDisposableStack();
  await startProgram(parts, directory, {
    command: [process.execPath, join(import.meta.dir, "watch.ts")],
    env: {
      BENCH_ADDRESS: address,
      BENCH_TOKEN: token,
      BENCH_PATHS: ids.map((id) => `/incidents/${id}/stream`).join(" "),
    },
    ready: /watching (\S+)/,
  });
  return await work();
}

/** Each writer has an incident of its own. @returns transactions a second */
async function write(db: Database, ids: readonly number[], seconds: number): Promise<number> {
  const begun = performance.now();
  let count = 0;
  await Promise.all(
    ids.map(async (incidentId) => {
      while (performance.now() - begun < seconds * 1000) {
        await db.transaction((tx) =>
          recordEvent(tx, {
            incidentId,
            at: new Date(),
            actor: "system",
            kind: "note",
            description: "Rolled back",
            data: {},
          }),
        );
        count += 1;
      }
    }),
  );
  return count / ((performance.now() - begun) / 1000);
}
