import { expect, test } from "bun:test";
import { connect, createServer } from "node:net";
import { createEmptyTestDatabase, testServerUrl } from "../../tests/support/database/database.ts";
import { within } from "../../tests/support/process/until.ts";
import { openSql } from "./sql.ts";

test("after an outage, PostgreSQL is contacted again soon, however many attempts failed", async () => {
  const real = new URL(await testServerUrl());
  const proxy = createServer((near) => {
    const far = connect(Number(real.port), real.hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => {});
  });
  const listen = (port: number) =>
    new Promise<void>((ready) => void proxy.listen(port, "127.0.0.1", () => ready()));
  await listen(0);
  const { port } = proxy.address() as { port: number };
  await new Promise((closed) => proxy.close(closed));
  const url = new URL(real);
  url.port = String(port);
  const sql = openSql(url.href, { max: 10 });
  const all = () => Array.from({ length: 10 }, () => sql`select`);
  const away = await Promise.allSettled(all());
  expect(away.map(({ status }) => status)).toEqual(away.map(() => "rejected"));
  await listen(port);
  // postgres.js alone would wait for at least 10 s.
  await within("PostgreSQL to be asked again", Promise.all(all()), 8);
  await sql.end();
  proxy.close();
}, 30_000);

test("connects to an IPv6 address", async () => {
  const real = new URL(await testServerUrl());
  const proxy = createServer((near) => void near.pipe(connect(Number(real.port), real.hostname)).pipe(near));
  await new Promise<void>((ready) => void proxy.listen(0, "::1", ready));
  const url = new URL(real);
  url.host = `[::1]:${(proxy.address() as { port: number }).port}`;
  const sql = openSql(url.href, { max: 1 });
  expect([...(await sql`select 1 as one`)]).toEqual([{ one: 1 }]);
  await sql.end();
  proxy.close();
});

test("times and bytes are read in the formats of any database", async () => {
  await using database = await createEmptyTestDatabase();
  const admin = openSql(database.url, { max: 1 });
  const [{ name }] = await admin<[{ name: string }]>`select current_database() as name`;
  await admin`alter database ${admin(name)} set bytea_output = 'escape'`;
  await admin`alter database ${admin(name)} set datestyle = 'German'`;
  await admin.end();
  // Also with settings of its own.
  const sql = openSql(database.url, { max: 1, connection: { application_name: "test" } });
  const bytes = Uint8Array.from({ length: 512 }, (_, at) => (at < 256 ? at : 92));
  const [row] =
    await sql`select ${bytes}::bytea as bytes, '\\x'::bytea as none, current_setting('datestyle') as style`;
  expect(row).toMatchObject({
    bytes: Buffer.from(bytes),
    none: Buffer.of(),
    style: expect.stringMatching(/^ISO\b/),
  });
  await sql.end();
});
