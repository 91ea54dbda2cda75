import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEmptyTestDatabase, testServerUrl } from "../../tests/support/database/database.ts";
import { listen } from "../../tests/support/listen.ts";
import { within } from "../../tests/support/process/until.ts";
import { openSql } from "./sql.ts";

test("after an outage, PostgreSQL is contacted again soon, however many attempts failed", async () => {
  const real = new URL(await testServerUrl());
  const proxy = createServer((near) => {
    const far = connect(Number(real.port), real.hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => {});
  });
  const port = await listen(proxy);
  await new Promise((closed) => proxy.close(closed));
  const url = new URL(real);
  url.port = String(port);
  const sql = openSql(url.href, { max: 10 });
  const all = () => Array.from({ length: 10 }, () => sql`select`);
  const away = await Promise.allSettled(all());
  expect(away.map(({ status }) => status)).toEqual(away.map(() => "rejected"));
  await listen(proxy, { port });
  // postgres.js alone would wait for at least 10 s.
  await within("PostgreSQL to be asked again", Promise.all(all()), 8);
  await sql.end();
  proxy.close();
});

test("connects to an IPv6 address", async () => {
  const real = new URL(await testServerUrl());
  const proxy = createServer((near) => void near.pipe(connect(Number(real.port), real.hostname)).pipe(near));
  const url = new URL(real);
  url.host = `[::1]:${await listen(proxy, { host: "::1" })}`;
  const sql = openSql(url.href, { max: 1 });
  expect([...(await sql`select 1 as one`)]).toEqual([{ one: 1 }]);
  await sql.end();
  proxy.close();
});

test("connects to a Unix socket, in both ways to write its directory", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-socket-"));
  const real = new URL(await testServerUrl());
  const proxy = createServer((near) => void near.pipe(connect(Number(real.port), real.hostname)).pipe(near));
  await new Promise<void>((ready) => void proxy.listen(join(directory, ".s.PGSQL.5433"), ready));
  const user = `${real.username}:${real.password}`;
  for (const address of [
    `postgres://${user}@${encodeURIComponent(directory)}:5433/svc?sslmode=require`,
    `postgres://${user}@localhost/svc?host=${directory}&port=5433`,
  ]) {
    const sql = openSql(address, { max: 1 });
    expect([...(await sql`select 1 as one`)]).toEqual([{ one: 1 }]);
    await sql.end();
  }
  proxy.close();
  await rm(directory, { recursive: true });
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

test("arrays are read and sent as they are, without asking for their types", async () => {
  await using database = await createEmptyTestDatabase();
  const admin = openSql(database.url, { max: 1 });
  const role = `${new URL(database.url).pathname.slice(1)}_user`;
  await admin.unsafe(
    `create role ${role} login password 'secret'; revoke select on pg_catalog.pg_type from public`,
  );
  const sql = openSql(Object.assign(new URL(database.url), { username: role, password: "secret" }).href);
  const texts = ["", "NULL", "null", '"', "\\", "a,b", "{", "}", " ", "\n", '\\"', "é", "😀"];
  const numbers = [0, -1, 2 ** 31 - 1];
  const [row] = await sql`
    select ${texts}::text[] as texts, ${[...texts, null]}::varchar[] as nulls, ${[]}::text[] as none,
      ${numbers}::int[] as numbers, ${[7, 9]}::bigint[] as big, '{"x"}'::name[] as names,
      array['00000000-0000-0000-0000-000000000001']::uuid[] as uuids, '[2:3]={a,b}'::text[] as bounds, null::text[] as missing`;
  expect(row).toEqual({
    texts,
    nulls: [...texts, null],
    none: [],
    numbers,
    big: ["7", "9"],
    names: ["x"],
    uuids: ["00000000-0000-0000-0000-000000000001"],
    bounds: ["a", "b"],
    missing: null,
  });
  await sql.end();
  await admin.unsafe(`drop role ${role}`);
  await admin.end();
});

test("a statement that fails in the middle of its rows leaves nothing to the next one", async () => {
  const sql = openSql(await testServerUrl(), { max: 1 });
  const failing = sql`select 1 / (500 - n) from generate_series(1, 1000) n`;
  await expect(failing.execute()).rejects.toMatchObject({ code: "22012" });
  expect([...(await sql`select 1 as n`)]).toEqual([{ n: 1 }]);
  expect(await sql`select n from generate_series(1, 3) n`.values()).toMatchObject([[1], [2], [3]]);
  expect(await sql.unsafe("select 1 as n; select 2 as n")).toMatchObject([[{ n: 1 }], [{ n: 2 }]]);
  const pages: number[][] = [];
  for await (const rows of sql`select n from generate_series(1, 3) n`.cursor(2))
    pages.push(rows.map(({ n }) => n));
  expect(pages).toEqual([[1, 2], [3]]);
  await sql.end();
});

test.each(["", "HTTP/1.1 400 Bad Request\r\n\r\n"])(
  "a port that answers %p and closes each connection is asked once for each statement",
  async (answer) => {
    let connections = 0;
    const server = createServer((near) => {
      connections += 1;
      near.on("error", () => {}).once("data", () => void near.end(answer));
    });
    const sql = openSql(`postgres://svc@127.0.0.1:${await listen(server)}/svc`, { max: 1 });
    for (const expected of [1, 2]) {
      const outcome = sql`select`.catch((error: unknown) => error);
      expect(await within("an answer", outcome)).toMatchObject({ code: "CONNECTION_CLOSED" });
      expect(connections).toBe(expected);
    }
    await sql.end();
    server.close();
  },
);
