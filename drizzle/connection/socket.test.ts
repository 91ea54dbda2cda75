import { expect, spyOn, test } from "bun:test";
import { testServerUrl } from "../../tests/support/database/database.ts";
import { openSpoiltWay } from "../../tests/support/database/spoilt_way.ts";
import { until, within } from "../../tests/support/process/until.ts";
import { DatabaseSocket, UnreachableRetry } from "./socket.ts";
import { openSql } from "./sql.ts";

const lookUpFailed = () => Object.assign(new Error("getaddrinfo ENOTFOUND db"), { code: "ENOTFOUND" });
const gone = { code: "ENOTFOUND" };

/** A pool, the network that its connections meet, and the clock. */
async function openPool(hosts = (url: URL) => url.href) {
  const network = { failures: 0, attempts: 0, time: 0 };
  const { connect } = DatabaseSocket.prototype;
  const spy = spyOn(DatabaseSocket.prototype, "connect").mockImplementation(function (
    this: DatabaseSocket,
    ...args: unknown[]
  ) {
    network.attempts += 1;
    if (network.failures === 0) return connect.apply(this, args as never);
    network.failures -= 1;
    return this.destroy(lookUpFailed());
  } as typeof connect);
  const retry = new UnreachableRetry(() => network.time);
  const sql = openSql(hosts(new URL(await testServerUrl())), { max: 2, retry });
  const dispose = async () => {
    await sql.end({ timeout: 0 });
    spy.mockRestore();
  };
  return { network, sql, [Symbol.asyncDispose]: dispose };
}

/** Both hosts of the address are the same server. The first attempt is for the primary that was known, the next two search. */
const twice = (url: URL) => url.href.replace(url.host, `${url.host},${url.host}`);

test.each([
  ["one host", undefined, 3],
  ["several hosts", twice, 3],
] as const)("a statement waits while %s cannot be found for a moment", async (_, hosts, failures) => {
  await using pool = await openPool(hosts);
  const { sql, network } = pool;
  await sql.begin(async (tx) => {
    await tx`select 1`;
    network.failures = failures;
    expect([...(await within("an answer", sql`select 2 as n`))]).toEqual([{ n: 2 }]);
    expect(network.failures).toBe(0);
  });
});

test("a host that cannot be found for long is reported, then at once", async () => {
  await using pool = await openPool();
  const { sql, network } = pool;
  await sql.begin(async (tx) => {
    await tx`select 1`;
    network.failures = Number.POSITIVE_INFINITY;
    const first = sql`select 2`.catch((error: unknown) => error);
    network.attempts = 0;
    await until("some attempts", () => network.attempts >= 3);
    network.time += 8000;
    expect(await within("the error", first)).toMatchObject(gone);
    network.attempts = 0;
    expect(await sql`select 3`.catch((error: unknown) => error)).toMatchObject(gone);
    expect(network.attempts).toBe(1);
  });
  network.failures = 0;
  expect([...(await sql`select 4 as n`)]).toEqual([{ n: 4 }]);
});

test("a host that was never reached is reported at once", async () => {
  await using pool = await openPool();
  const { sql, network } = pool;
  network.failures = Number.POSITIVE_INFINITY;
  expect(await sql`select 1`.catch((error: unknown) => error)).toMatchObject(gone);
  expect(network.attempts).toBe(1);
});

test("statements that are sent while their connection closes leave the next connection usable", async () => {
  using way = await openSpoiltWay(await testServerUrl());
  using to = spyOn(DatabaseSocket.prototype, "to");
  const sql = openSql(way.url, { max: 1 });
  await sql.unsafe("select 1");
  way.silence();
  const sent: Promise<unknown>[] = [];
  const sending = (async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      sent.push(sql.unsafe("select 1").catch(() => {}));
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  // After the loop has begun, so that each turn sends before the socket's own steps.
  (to.mock.results[0]!.value as DatabaseSocket).destroy();
  await sending;
  await within("their answers or errors", Promise.all(sent), 20);
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }]);
  await sql.end();
});
