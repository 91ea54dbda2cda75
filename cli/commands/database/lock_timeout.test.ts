import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { ids } from "../../../tests/support/cli/database.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { temporaryDirectory } from "../../../tests/support/database/backup.ts";
import { createTestDatabase } from "../../../tests/support/database/database.ts";

test("--lock-timeout 0 names the holder of the lock immediately; others say what they wait for", async () => {
  await using database = await createTestDatabase();
  await using directory = await temporaryDirectory();
  const run = (...args: string[]) =>
    svc(["database", ...args], { SVC_DATABASE_URL: database.url }, directory.path);
  expect((await run("dump")).code).toBe(0);
  expect((await run("downgrade")).code).toBe(0);
  const holder = openSql(database.url, { max: 1, connection: { application_name: "somebody else" } });
  await holder`select pg_advisory_lock(7798563)`;
  const commands = [
    ["init"],
    ["upgrade"],
    ["downgrade"],
    ["stamp", ids[0]!],
    ["repair", ids[0]!, "--accept"],
    ["sync-triggers"],
    ["restore", "--yes"],
    ["restore", "--example", "--yes"],
    ["drop", "--yes"],
  ];
  for (const command of commands) {
    const { code, stdout, stderr } = await run(...command, "--lock-timeout", "0");
    expect({ command, code, stdout }).toEqual({ command, code: 1, stdout: "" });
    expect(stderr).toMatch(
      /^svc: Another schema change has been running for over 0 s: somebody else, backend \d+ from 127\.0\.0\.1\n$/,
    );
  }
  const waits = async (command: string[]) => {
    const { code, stderr } = await run(...command, "--lock-timeout", "1");
    expect({ command, code, stderr }).toEqual({
      command,
      code: 1,
      stderr: expect.stringMatching(
        /^(svc: .+\n)*svc: waiting for another schema change: somebody else, .+\nsvc: Another schema .+ over 1 s: .+\n$/,
      ),
    });
  };
  await Promise.all(commands.map(waits));
  await holder.end();
  expect((await run("upgrade", "--lock-timeout", "0")).code).toBe(0);
  for (const seconds of ["soon", "-1", "1.5"]) {
    expect((await run("upgrade", `--lock-timeout=${seconds}`)).code).toBe(2);
  }
});
