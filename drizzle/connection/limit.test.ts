import { expect, setDefaultTimeout, test } from "bun:test";
import { type SQL, sql } from "drizzle-orm";
import { useDatabase } from "../../tests/support/database/database.ts";
import { openSpoiltWay } from "../../tests/support/database/spoilt_way.ts";
import { openDatabase } from "../client.ts";

// These mostly wait, so they run concurrently.

setDefaultTimeout(60_000);

const direct = useDatabase(4);
const limitSeconds = 2;

/** A pool of one connection, so that the next statement meets whatever state is left. */
async function openLimited() {
  const way = await openSpoiltWay(direct.url);
  const { db, close } = openDatabase(way.url, 1, undefined, { limitSeconds });
  // drizzle sends a statement only once it is awaited.
  const run = async (statement: SQL) => [...(await db.execute(statement))];
  const expectUsable = async () => expect(await run(sql`select 1 as one`)).toEqual([{ one: 1 }]);
  await expectUsable();
  const dispose = async () => {
    await close();
    way.close();
  };
  return { db, run, expectUsable, silence: way.silence, [Symbol.asyncDispose]: dispose };
}

/** Calls `work` while somebody holds a lock, for which `lock` waits. */
async function whileLocked(key: number, work: (lock: SQL) => Promise<void>): Promise<void> {
  const lock = sql`select pg_advisory_xact_lock(${key}::int)`;
  await direct.db.transaction(async (tx) => {
    await tx.execute(lock);
    await work(lock);
  });
}

/** What a promise is rejected with. `expect().rejects` would hold up the tests that run beside this one. */
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const cancelled = { cause: { code: "57014" } };
const closed = { cause: { code: "CONNECTION_CLOSED" } };

test.concurrent("a statement on a silent connection is rejected, and the next one gets another", async () => {
  await using client = await openLimited();
  client.silence();
  expect(await failure(client.run(sql`select`))).toMatchObject(closed);
  await client.expectUsable();
});

test.concurrent.each([
  ["in the middle", true],
  ["before its commit", false],
] as const)("a transaction ends when its connection goes silent %s", async (_, isMiddle) => {
  await using client = await openLimited();
  const transaction = client.db.transaction(async (tx) => {
    await tx.execute(sql`select`);
    client.silence();
    if (isMiddle) await tx.execute(sql`select`);
  });
  expect(await failure(transaction)).toMatchObject(closed.cause);
  await client.expectUsable();
});

test.concurrent("a statement that takes too long is cancelled, and its connection stays", async () => {
  await using client = await openLimited();
  const whichBackend = () => client.run(sql`select pg_backend_pid() as pid`);
  const before = await whichBackend();
  await whileLocked(1, async (lock) => {
    expect(await failure(client.run(lock))).toMatchObject(cancelled);
    const transaction = client.db.transaction((tx) => tx.execute(lock));
    expect(await failure(transaction)).toMatchObject(cancelled);
  });
  expect(await whichBackend()).toEqual(before);
});

test.concurrent("a write on its own is not cancelled: that could commit it without its standby", async () => {
  await using client = await openLimited();
  await whileLocked(2, async (lock) => {
    const write = client.run(sql`
      with lock as (${lock}) insert into team (name, created_at, updated_at) select 'a', now(), now() from lock`);
    expect(await failure(write)).toMatchObject(closed);
  });
  await client.expectUsable();
});

test.concurrent("a statement that waits too long for a connection is rejected", async () => {
  await using client = await openLimited();
  const done = Promise.withResolvers<void>();
  const holding = client.db.transaction(() => done.promise);
  expect(await failure(client.run(sql`delete from team`))).toMatchObject(cancelled);
  done.resolve();
  await holding;
  await client.expectUsable();
});
