import { describe, expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { on } from "../../../tests/support/cli/database.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";

describe("errors that an operator can cause are one line, without the password", () => {
  const commands = [["upgrade"], ["current"], ["populate"], ["init"], ["dump"]];
  const faults: [string, (url: URL) => void, RegExp][] = [
    [
      "a wrong password",
      (url) => Object.assign(url, { password: "hunter2" }),
      / at 127.0.0.1:\d+, database \S+, refuses this user or password/,
    ],
    [
      "no server",
      (url) => Object.assign(url, { port: "9" }),
      / at 127.0.0.1:9, database \S+, does not answer: connection refused/,
    ],
    [
      "no such host",
      (url) => Object.assign(url, { hostname: "nowhere.invalid" }),
      / at nowhere.invalid:\d+, database \S+, does not answer: there is no such host/,
    ],
  ];
  test.each(faults)("%s", async (_, harm, expected) => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    harm(url);
    for (const command of commands) {
      const { code, stdout, stderr } = await on(url.href)(...command);
      expect({ command, code, stdout, lines: stderr.split("\n").length }).toEqual({
        command,
        code: 1,
        stdout: "",
        lines: 2,
      });
      expect(stderr).toMatch(expected);
      expect(stderr).not.toContain(url.password);
    }
  });

  test.each(["p/ss", "12/ss", "p#ss", "12#ss", "12?ss", "p@ss/word", "p@ss#word", "p%ss"])(
    "the password %s, written without escapes",
    async (password) => {
      const { code, stderr } = await on(`postgres://svc:${password}@127.0.0.1:5432/svc`)("current");
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining("write special characters of user and password as"),
      ]);
      expect(stderr.split("\n")).toHaveLength(2);
      for (const part of ["ss@", "12", "word"])
        expect(stderr).not.toContain(part === "word" ? "ss/word" : part);
    },
  );

  test("a database that does not exist", async () => {
    await using database = await createEmptyTestDatabase();
    const url = Object.assign(new URL(database.url), { pathname: "/nowhere" });
    expect(await on(url.href)("current")).toMatchObject({
      code: 1,
      stderr: `svc: The database nowhere at 127.0.0.1:${url.port} does not exist: svc database init creates it (see SVC_DATABASE_URL)\n`,
    });
  });

  test.each(["127.0.0.1:99999", "127.0.0.1:abc", "::1:5432", "[::1:5432"])(
    "the host and port %s",
    async (host) => {
      const { code, stderr } = await on(`postgres://svc:hunter2@${host}/svc`)("current");
      expect([code, stderr]).toEqual([1, expect.stringContaining("check host and port")]);
      expect(stderr).not.toContain("hunter2");
    },
  );

  test("no answer in time", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
    const address = `postgres://svc:hunter2@127.0.0.1:${silent.port}/incidents?connect_timeout=1`;
    const { stderr } = await on(address)("current");
    silent.stop(true);
    expect(stderr).toBe(
      `svc: PostgreSQL at 127.0.0.1:${silent.port}, database incidents, does not answer: no answer in time (see SVC_DATABASE_URL)\n`,
    );
  });

  test("missing rights, and a read-only database", async () => {
    await using database = await createTestDatabase();
    const url = new URL(database.url);
    const sql = openSql(database.url, { max: 1 });
    const name = url.pathname.slice(1);
    await sql.unsafe(
      `create role "${name}" login password 'guest'; grant connect on database "${name}" to "${name}"`,
    );
    Object.assign(url, { username: name, password: "guest" });
    for (const command of [["upgrade"], ["populate"], ["drop", "--yes"], ["downgrade"]]) {
      const { code, stderr } = await on(url.href)(...command);
      expect({ command, code }).toEqual({ command, code: 1 });
      expect(stderr).toMatch(/^svc: PostgreSQL does not let this user do that.*\n$/);
    }
    await sql.unsafe(
      `drop owned by "${name}"; drop role "${name}"; alter database "${name}" set default_transaction_read_only = on`,
    );
    await sql.end();
    for (const command of [["populate"], ["downgrade"], ["stamp", "base"], ["drop", "--yes"]]) {
      const { code, stderr } = await on(database.url)(...command);
      expect({ command, code, stderr }).toEqual({
        command,
        code: 1,
        stderr: "svc: This database is read-only (a replica?): run this against the primary\n",
      });
    }
  });
});
