import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { somebodyWaits } from "../tests/support/database/blocked.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { Connections } from "./connections.ts";

const client = useDatabase(2);

test("a task's statement that waits for a lock ends", async () => {
  const connections = new Connections({ url: client.url, poolSize: 1, prepare: true }, { limitSeconds: 1 });
  const lock = sql`select pg_advisory_xact_lock(7)`;
  const ended = await client.db.transaction(async (tx) => {
    await tx.execute(lock);
    return Promise.allSettled([connections.db.execute(lock)]);
  });
  expect(ended).toMatchObject([{ status: "rejected", reason: { cause: { code: "57014" } } }]);
  await connections.close();
});

test("reopening rejects the schedule's pending queries at once, and lets a task's queries finish", async () => {
  const connections = new Connections({ url: client.url, poolSize: 1, prepare: true });
  const lock = sql`select pg_advisory_xact_lock(7)`;
  const waiting = await client.db.transaction(async (tx) => {
    await tx.execute(lock);
    // A query is sent only once its result is awaited.
    const asked = Promise.allSettled([connections.schedule.execute(lock)]);
    const work = Promise.allSettled([connections.db.execute(lock)]);
    await somebodyWaits(client.db, 2);
    connections.reopen();
    expect((await asked)[0].status).toBe("rejected");
    return { work };
  });
  expect((await waiting.work)[0].status).toBe("fulfilled");
  expect(await connections.schedule.execute(sql`select 1 as one`)).toMatchObject([{ one: 1 }]);
  await connections.close();
});
