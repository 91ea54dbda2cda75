import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/connection/sql.ts";
import { failed, head, ok, on } from "../../../tests/support/cli/database.ts";
import { createTestDatabase } from "../../../tests/support/database/database.ts";

test("accepts parameters that only libpq uses", async () => {
  await using database = await createTestDatabase();
  const parameters =
    "sslmode=prefer&channel_binding=prefer&gssencmode=disable&target_session_attrs=any&keepalives=1&keepalives_idle=30&connect_timeout=5&application_name=release&options=-c%20work_mem%3D8MB";
  const url = `${database.url}?${parameters}`;
  expect(await on(url)("current")).toEqual(ok(`${head} (head)\n`));
  const sql = openSql(url, { max: 1 });
  expect(
    await sql`select current_setting('application_name') as name, current_setting('work_mem') as memory`,
  ).toMatchObject([{ name: "release", memory: "8MB" }]);
  expect(sql.options.connect_timeout).toBe(5);
  await sql.end();
});

test("an unsupported parameter is one line that names only the parameter", async () => {
  await using database = await createTestDatabase();
  const refusals: [string, string][] = [
    [
      "channel_binding=require",
      "asks for a channel_binding that svc does not support: use one of disable, prefer",
    ],
    ["gssencmode=require", "asks for a gssencmode that svc does not support: use one of disable, prefer"],
    [
      "target_session_attrs=hunter2",
      "asks for a target_session_attrs that svc does not support: use one of any, read-write, read-only, primary, standby, prefer-standby",
    ],
    [
      "sslmode=hunter2",
      "asks for a sslmode that svc does not support: use one of disable, allow, prefer, require, verify-ca, verify-full",
    ],
    [
      "sslmode=verify-ca&sslrootcert=/hunter2",
      "names a file in sslrootcert that cannot be read: the file does not exist",
    ],
  ];
  for (const [parameters, refusal] of refusals) {
    expect(await on(`${database.url}?${parameters}`)("current")).toEqual(
      failed(`SVC_DATABASE_URL: this value ${refusal}`),
    );
  }
  for (const [parameter, which] of [
    ["passfile=hunter2", "the parameter passfile"],
    ["work_mem=hunter2", "the parameter work_mem"],
    ["hunter2=1", "a parameter"],
  ]) {
    expect(await on(`${database.url}?${parameter}`)("current")).toEqual(
      failed(`PostgreSQL refuses ${which} of SVC_DATABASE_URL: correct it, or leave it out`),
    );
  }
});
