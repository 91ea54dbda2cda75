import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, chown } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { openDatabase, openSql, type Sql } from "../../../drizzle/client.ts";
import { chooseAccount } from "../../../drizzle/embedded/account.ts";
import { failed } from "../../../tests/support/cli/database.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { temporaryDirectory } from "../../../tests/support/database/backup.ts";
import { startDebianPostgres } from "../../../tests/support/database/debian_postgres.ts";
import { openSpoiltWay } from "../../../tests/support/database/spoilt_way.ts";
import { until, within } from "../../../tests/support/process/until.ts";

let debian: Awaited<ReturnType<typeof startDebianPostgres>>;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const at = (name: string) => join(directory.path, name);

/** A self-signed certificate, with the name of the user instead of a host. */
async function certificate(name: string): Promise<void> {
  const { success, stderr } = Bun.spawnSync(
    [
      "openssl",
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=svc",
      "-keyout",
      at(`${name}.key`),
      "-out",
      at(`${name}.crt`),
    ],
    { stderr: "pipe" },
  );
  if (!success) throw new Error(stderr.toString());
  const { owner } = chooseAccount();
  await chmod(at(`${name}.key`), 0o600);
  if (owner) await chown(at(`${name}.key`), owner.uid, owner.gid);
}

/** Reloads the server's settings, and waits until new connections use them. */
async function settle(sql: Sql, setting: string, value: string): Promise<void> {
  await sql`select pg_reload_conf()`;
  for (;;) {
    const fresh = openSql(sqlUrl(), { max: 1 });
    const [row] = await fresh`select current_setting(${setting}) as value`.finally(() => fresh.end());
    if (row?.value === value) return;
    await Bun.sleep(20);
  }
}

/** The server's address with these parameters. */
function sqlUrl(parameters: Record<string, string> = {}): string {
  const url = new URL(debian.url);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

function run(parameters: Record<string, string>, command = "current") {
  const env = { SVC_DATABASE_URL: sqlUrl(parameters), PATH: debian.tools };
  return svc(["database", command], env, directory.path);
}

/** Whether a server's or worker's connection can be opened there. */
async function reaches(parameters: Record<string, string>): Promise<boolean> {
  const client = openSql(sqlUrl(parameters), { max: 1 });
  const reached = await client`select 1`.then(
    () => true,
    () => false,
  );
  await client.end();
  return reached;
}

beforeAll(async () => {
  [debian, directory] = await Promise.all([startDebianPostgres(), temporaryDirectory()]);
  // The server must be able to read its files.
  await chmod(directory.path, 0o755);
  expect((await run({}, "upgrade")).code).toBe(0);
});
afterAll(async () => {
  await debian.stop();
  await directory[Symbol.asyncDispose]();
});

test("TLS follows the parameters of libpq", async () => {
  const { host, pathname } = new URL(debian.url);
  const server = `PostgreSQL at ${host}, database ${pathname.slice(1)},`;
  expect(await run({ sslmode: "require" })).toEqual(
    failed(`${server} does not offer TLS, but sslmode in SVC_DATABASE_URL requires it`),
  );
  for (const [sslmode, reached] of [
    ["disable", true],
    ["prefer", true],
    ["require", false],
  ] as const)
    expect([sslmode, await reaches({ sslmode })]).toEqual([sslmode, reached]);
  await Promise.all([certificate("server"), certificate("other")]);
  const sql = openSql(debian.url, { max: 1 });
  for (const [setting, value] of Object.entries({
    ssl_cert_file: at("server.crt"),
    ssl_key_file: at("server.key"),
    ssl_ca_file: at("server.crt"),
    ssl: "on",
  }))
    await sql.unsafe(`alter system set ${setting} = '${value}'`);
  await settle(sql, "ssl", "on");
  const [hba] = await sql`show hba_file`;
  const admit = async (rule: string) => {
    await Bun.write(String(hba!.hba_file), `hostssl all all 127.0.0.1/32 scram-sha-256 ${rule}\n`);
    await sql`select pg_reload_conf()`;
  };
  await admit("");
  while (await reaches({ sslmode: "disable" })) await Bun.sleep(20);
  expect(await reaches({ sslmode: "prefer" })).toBe(true);
  await admit("clientcert=verify-full");
  await sql.end();

  const own = { sslcert: at("server.crt"), sslkey: at("server.key") };
  const untrusted = failed(
    `The certificate of ${server} is not trusted: set sslrootcert in SVC_DATABASE_URL to the file of its authority`,
  );
  while (await reaches({ sslmode: "require" })) await Bun.sleep(20);
  expect(await run({})).toEqual(failed(`${server} requires TLS: add sslmode=require to SVC_DATABASE_URL`));
  expect((await run({ sslmode: "require" })).code).toBe(1);
  expect((await run({ ...own, sslmode: "require" })).code).toBe(0);
  expect(await reaches({})).toBe(false);
  expect(await reaches({ ...own, sslmode: "require" })).toBe(true);
  expect(await run({ ...own, sslmode: "verify-ca", sslrootcert: at("other.crt") })).toEqual(untrusted);
  expect(await run({ ...own, sslmode: "require", sslrootcert: at("other.crt") })).toEqual(untrusted);
  const trusted = { ...own, sslmode: "verify-ca", sslrootcert: at("server.crt") };
  expect((await run(trusted)).code).toBe(0);
  expect(await reaches(trusted)).toBe(true);
  expect(await reaches({ ...trusted, sslrootcert: at("other.crt") })).toBe(false);
  // The certificate does not contain the host's name.
  expect(await run({ ...trusted, sslmode: "verify-full" })).toEqual(
    failed(`The certificate of ${server} is for another host name (see SVC_DATABASE_URL)`),
  );
  expect((await run(trusted, "dump")).stdout).toStartWith("Wrote svc-backup.dump (");
});

// The first test has turned TLS on.
test("with TLS too, a long statement is cancelled, and a connection that goes silent is closed", async () => {
  const way = await openSpoiltWay(
    sqlUrl({ sslmode: "require", sslcert: at("server.crt"), sslkey: at("server.key") }),
  );
  const { db, close } = openDatabase(way.url, 1, undefined, { limitSeconds: 2 });
  const ask = async () => [
    ...(await db.execute(sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`)),
  ];
  expect(await ask()).toEqual([{ ssl: true }]);
  const long = async () => [...(await db.execute(sql`select pg_sleep(50)`))];
  const cancelled = { cause: { code: "57014" } };
  await expect(within("the query to end", long())).rejects.toMatchObject(cancelled);
  way.silence();
  const lost = { cause: { code: "CONNECTION_CLOSED" } };
  await expect(within("the query to end", ask())).rejects.toMatchObject(lost);
  expect(await ask()).toEqual([{ ssl: true }]);
  await close();
  way.close();
}, 60_000);

test("with TLS too, a connection that is reset does not keep the statement that is sent next", async () => {
  const own = { sslmode: "require", sslcert: at("server.crt"), sslkey: at("server.key") };
  const admin = openSql(sqlUrl(own), { max: 1 });
  const way = await openSpoiltWay(sqlUrl(own));
  const { db, close } = openDatabase(way.url, 1);
  const ask = async (n: number): Promise<unknown> => (await db.execute(sql`select ${n}::int as n`))[0]?.n;
  expect(await ask(0)).toBe(0);
  const running = db.execute(sql`select pg_sleep(60)`).then(
    () => undefined,
    () => ask(1).catch(() => "rejected"),
  );
  await until(
    "the statement",
    async () => (await admin`select from pg_stat_activity where query = 'select pg_sleep(60)'`).length === 1,
  );
  way.reset();
  expect<unknown[]>(["rejected", 1]).toContain(await within("the next statement", running));
  const others: Promise<unknown[]> = Promise.all([2, 3, 4].map(ask));
  expect(await within("the others", others)).toEqual([2, 3, 4]);
  await close(0);
  way.close();
  await admin.end();
}, 60_000);

test("with TLS too, a fatal error is reported once", async () => {
  const own = { sslmode: "require", sslcert: at("server.crt"), sslkey: at("server.key") };
  const { db, close } = openDatabase(sqlUrl(own), 1);
  const ask = async (text: string) => [...(await db.execute(sql.raw(text)))];
  const fatal = { cause: { code: "57P01", severity: "FATAL" } };
  await expect(ask("select pg_terminate_backend(pg_backend_pid())")).rejects.toMatchObject(fatal);
  expect(await ask("select 1 as n")).toEqual([{ n: 1 }]);
  await close();
});
