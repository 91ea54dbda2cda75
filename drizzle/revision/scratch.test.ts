import { expect, test } from "bun:test";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSvc } from "../../tests/support/cli/process.ts";
import { createDatabaseOn } from "../../tests/support/database/backup.ts";
import { testServerUrl } from "../../tests/support/database/database.ts";
import { debianServer } from "../../tests/support/database/debian_postgres.ts";
import { until } from "../../tests/support/process/until.ts";
import { openSql } from "../connection/sql.ts";
import { startEmbeddedPostgres } from "../embedded.ts";
import { withScratchDatabase } from "./scratch.ts";
import { upgrade } from "./upgrade.ts";

test("a killed process's temporary database is dropped by the next one, and nothing else is", async () => {
  // A separate server, because other tests create such databases too.
  const directory = await mkdtemp(join(tmpdir(), "svc-scratch-"));
  const database = await startEmbeddedPostgres({ directory, durable: false, temporary: true });
  await upgrade({ url: database.url });
  const sql = openSql(database.url, { max: 1 });
  const scratches = async () =>
    (await sql`select datname from pg_database where datname like 'svc_check_%'`).map(
      ({ datname }) => datname,
    );
  const others = ["svc_check_me", `svc_check_${process.pid}_123`];
  try {
    const killed = spawnSvc(["database", "check", "--drift"], { SVC_DATABASE_URL: database.url });
    const left = await until("the temporary database", async () => (await scratches())[0]);
    killed.child.kill("SIGKILL");
    await killed.finished;
    for (const name of others) await sql`create database ${sql(name)}`;
    await until("the end of its sessions", async () => {
      const name = String(left).split("_")[2]!;
      const open = await sql`select from pg_stat_activity where datname = ${left} or pid = ${name}::int`;
      return open.length === 0;
    });
    const seen = await withScratchDatabase(database.url, "a test", async (first) => {
      // Two concurrent runs do not drop each other's database.
      await withScratchDatabase(database.url, "a test", async () => {});
      const own = new URL(first).pathname.slice(1);
      expect(await scratches()).toContain(own);
      return scratches();
    });
    expect(seen).not.toContain(left);
    expect((await scratches()).toSorted()).toEqual(others.toSorted());
  } finally {
    await sql.end();
    await database.stop();
  }
}, 60_000);

test.each([
  ["PostgreSQL 15", async () => (await debianServer()).url, "locale_provider icu icu_locale 'de-AT'"],
  ["PostgreSQL 18", testServerUrl, "locale_provider builtin builtin_locale 'C.UTF-8'"],
  ["PostgreSQL 18", testServerUrl, "locale_provider libc encoding sql_ascii"],
])("on %s, a temporary database has the locale of its database: %#", async (_, serverOf, options) => {
  await using database = await createDatabaseOn(
    await serverOf(),
    `template template0 ${options} lc_collate 'C' lc_ctype 'C'`,
  );
  const localeIn = async (url: string) => {
    const sql = openSql(url, { max: 1 });
    const [row] = await sql`
      select datlocprovider::text as provider, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') as locale,
        pg_encoding_to_char(encoding) as encoding
      from pg_database d where datname = current_database()`;
    await sql.end();
    return { ...row };
  };
  expect(await withScratchDatabase(database.url, "a test", localeIn)).toEqual(await localeIn(database.url));
});
