import { describe, expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { failed, head, ok, on } from "../../../tests/support/cli/database.ts";
import { createEmptyTestDatabase } from "../../../tests/support/database/database.ts";

describe("init", () => {
  test("creates the database, its schema and the defaults; a second run changes nothing", async () => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    const name = `${url.pathname.slice(1)}_new`;
    url.pathname = `/${name}`;
    const admin = openSql(database.url, { max: 1 });
    try {
      const run = on(url.href);
      const { code, stdout } = await run("init");
      expect(code).toBe(0);
      expect(stdout).toContain(`Applied ${head}\nCreated database ${name}\nCreated incident type `);
      expect(await run("init")).toEqual(
        ok(`Nothing to do: the schema is at ${head}, and all defaults exist\n`),
      );
    } finally {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
    }
  });

  test("three concurrent runs all succeed", async () => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    const name = `${url.pathname.slice(1)}_three`;
    url.pathname = `/${name}`;
    const admin = openSql(database.url, { max: 1 });
    try {
      for (const command of ["init", "upgrade", "populate", "sync-triggers"]) {
        const runs = await Promise.all([1, 2, 3].map(() => on(url.href)(command)));
        expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
          Array(3).fill({ code: 0, stderr: expect.any(String) }),
        );
      }
      expect((await on(url.href)("init")).stdout).toStartWith("Nothing to do");
    } finally {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
    }
  });
});

test("init reports a missing database name, or a missing right to create one", async () => {
  await using database = await createEmptyTestDatabase();
  const url = new URL(database.url);
  url.pathname = "/";
  expect(await on(url.href)("init")).toEqual(
    failed("SVC_DATABASE_URL names no database: postgres://user:password@host/name"),
  );
  const role = `guest_${crypto.randomUUID().slice(0, 8)}`;
  const admin = openSql(database.url, { max: 1 });
  await admin.unsafe(`create role ${role} login password 'guest'`);
  Object.assign(url, { username: role, password: "guest", pathname: `/${role}` });
  expect((await on(url.href)("init")).stderr).toContain("alter role NAME createdb");
  await admin.unsafe(`drop role ${role}`);
  await admin.end();
});
