import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type Replicas, startReplicas } from "../../tests/support/database/replicas.ts";
import { until, within } from "../../tests/support/process/until.ts";
import { NoPrimary } from "./primary.ts";
import { openSql, primaryOf, type Sql } from "./sql.ts";

setDefaultTimeout(120_000);

let replicas: Replicas;
let clients: Sql[];
beforeEach(async () => {
  clients = [];
  replicas = await startReplicas();
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.end({ timeout: 0 })));
  await replicas[Symbol.asyncDispose]();
});

function open(url = replicas.url): Sql {
  const client = openSql(url, { max: 3 });
  clients.push(client);
  return client;
}

const portOf = async (sql: Sql) => (await sql`select inet_server_port() as port`)[0]!.port as number;
/** Statements in progress during a failover fail, as with one host. */
const afterFailures = (ask: () => Promise<number>) => until("an answer", () => ask().catch(() => undefined));

test("the server that accepts writes is found at any position in the address", async () => {
  const { primary, standby, url } = replicas;
  const swapped = url.replace(/@([^,]+),([^/]+)/, "@$2,$1");
  for (const address of [url, swapped]) {
    expect(await portOf(open(address))).toBe(primary.port);
    expect((await primaryOf(address)!.find()).port).toBe(primary.port);
  }
  expect(await portOf(open(standby.url))).toBe(standby.port);
});

test("without a primary, the error names each server; after a promotion the same pool works again", async () => {
  const { primary, standby } = replicas;
  const sql = open();
  expect(await portOf(sql)).toBe(primary.port);
  await primary.kill();
  const error = await until("the loss to be known", async () => {
    const failure = await sql`select 1`.catch((cause: unknown) => cause);
    return failure instanceof NoPrimary && failure;
  });
  expect(error.message).toBe(
    `No database server takes writes: 127.0.0.1:${primary.port} does not answer (ECONNREFUSED), 127.0.0.1:${standby.port} is a standby`,
  );
  await standby.promote();
  expect(await afterFailures(() => portOf(sql))).toBe(standby.port);
});

test("a primary that returns after a promotion is ignored, since its timeline is older", async () => {
  const { primary, standby, url } = replicas;
  await primary.kill();
  await standby.promote();
  await primary.start();
  for (let i = 0; i < 3; i++) expect(await portOf(open(url))).toBe(standby.port);
});

test("connections to a frozen primary are cut once another server has taken over", async () => {
  const { primary, standby } = replicas;
  const sql = open();
  await portOf(sql);
  await primary.freeze();
  const hanging = sql`select 1`.then(
    () => "answered",
    () => "cut",
  );
  await standby.promote();
  // Any new connection looks for the primary.
  expect(await afterFailures(() => portOf(open()))).toBe(standby.port);
  expect(await within("the end of the old one", hanging)).toBe("cut");
  expect(await afterFailures(() => portOf(sql))).toBe(standby.port);
});

test("a rejected password is reported; a missing database is left to the caller", async () => {
  const { primary, url } = replicas;
  const wrong = await portOf(open(url.replace(/:[^:@]*@/, ":wrong@"))).catch((error: unknown) => error);
  expect(wrong).toMatchObject({ code: "28P01" });
  const missing = url.replace(/\/svc\?/, "/elsewhere?");
  expect((await primaryOf(missing)!.find()).port).toBe(primary.port);
  expect(await portOf(open(missing)).catch((error: unknown) => error)).toMatchObject({ code: "3D000" });
});
