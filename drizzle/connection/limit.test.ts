import { expect, setDefaultTimeout, test } from "bun:test";
import { type SQL, sql } from "drizzle-orm";
import { useDatabase } from "../../tests/support/database/database.ts";
import { openSpoiltWay } from "../../tests/support/database/spoilt_way.ts";
import { within } from "../../tests/support/process/until.ts";
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
  // Without parameters, so that postgres.js sends the next statement on the same connection.
  const lock = sql.raw(`select pg_advisory_xact_lock(${key})`);
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

test.concurrent("a silent connection is closed even if more statements are sent on it", async () => {
  await using client = await openLimited();
  client.silence();
  const first = failure(client.run(sql`select`));
  let isOver = false;
  const others = (async () => {
    const sent: Promise<unknown>[] = [];
    while (!isOver) {
      sent.push(failure(client.run(sql.raw("select"))));
      await Bun.sleep(200);
    }
    await Promise.all(sent);
  })();
  expect(await within("the connection to be closed", first)).toMatchObject(closed);
  isOver = true;
  await others;
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

test.concurrent("a statement on a connection that was idle has as much time as any", async () => {
  await using client = await openLimited();
  await Bun.sleep(limitSeconds * 750);
  expect(await failure(client.run(sql`select pg_sleep(30)`))).toMatchObject(cancelled);
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

test.concurrent("statements that wait on one connection get no answer but their own", async () => {
  await using client = await openLimited();
  const ask = (name: string) =>
    client.run(sql`select ${sql.raw(`'${name}'`)} as name`).catch(() => undefined);
  await whileLocked(3, async (lock) => {
    const slow = failure(client.run(lock));
    const waiting = ask("waiting");
    await Bun.sleep((limitSeconds * 1000) / 2);
    const later = [ask("later"), ask("last")];
    expect(await slow).toMatchObject(cancelled);
    // It may be cancelled in its turn.
    expect<unknown>([undefined, [{ name: "waiting" }]]).toContainEqual(await waiting);
    expect(await Promise.all(later)).toEqual([[{ name: "later" }], [{ name: "last" }]]);
  });
});

test.concurrent("a transaction ends when a statement that waits for another in it is cancelled", async () => {
  await using client = await openLimited();
  await whileLocked(4, async () => {
    // With a parameter, so that postgres.js does not send the next statement yet.
    const lock = sql`select pg_advisory_xact_lock(${4}::int)`;
    const transaction = client.db.transaction((tx) =>
      Promise.all([tx.execute(lock), tx.execute(sql`select`)]),
    );
    expect(await failure(transaction)).toMatchObject(cancelled);
    await client.expectUsable();
  });
});
