import { describe, expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { on } from "../../../tests/support/cli/database.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";

describe("errors that an operator can cause are one line, without the password", () => {
  const commands = [
    ["upgrade"],
    ["downgrade"],
    ["current"],
    ["history"],
    ["sync-triggers"],
    ["populate"],
    ["init"],
  ];
  const faults: [string, (url: URL) => void, RegExp][] = [
    [
      "a wrong password",
      (url) => Object.assign(url, { password: "hunter2" }),
      /refuses this user or password/,
    ],
    ["no server", (url) => Object.assign(url, { port: "9" }), /does not answer/],
    ["no such host", (url) => Object.assign(url, { hostname: "nowhere.invalid" }), /does not answer/],
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
