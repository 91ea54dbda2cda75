import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../../tests/support/database/backup.ts";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { openSql } from "../client.ts";
import { readApplied } from "./store.ts";

test("the statement of a killed process is cancelled and does not take effect", async () => {
  await using directory = await temporaryDirectory();
  await using database = await createEmptyTestDatabase();
  const folder = join(directory.path, "1");
  await mkdir(folder);
  await writeFile(join(folder, "up.sql"), "create table a (id int); select pg_sleep(30)");
  await writeFile(join(folder, "down.sql"), "drop table a");
  await writeFile(join(folder, "manifest.json"), JSON.stringify({ parents: [] }));
  const program = join(import.meta.dir, "../../tests/support/database/upgrade_program.ts");
  const child = Bun.spawn([process.execPath, program, directory.path], {
    env: { PATH: process.env.PATH, SVC_DATABASE_URL: database.url },
    stdio: ["ignore", "ignore", "ignore"],
  });
  const sql = openSql(database.url, { max: 1 });
  const others = async () => {
    const rows = await sql`
      select wait_event from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and backend_type = 'client backend'`;
    return rows.map(({ wait_event }) => wait_event);
  };
  while (!(await others()).includes("PgSleep")) await Bun.sleep(20);
  child.kill("SIGKILL");
  while ((await others()).length > 0) await Bun.sleep(50);
  expect(await sql`select to_regclass('a') as a`).toMatchObject([{ a: null }]);
  expect(await readApplied(sql)).toEqual([]);
  await sql.end();
});
