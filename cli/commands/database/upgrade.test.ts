import { expect, test } from "bun:test";
import { svc } from "../../../tests/support/cli/process.ts";
import { createEmptyTestDatabase } from "../../../tests/support/database/database.ts";

test("applies pending revisions once", async () => {
  await using database = await createEmptyTestDatabase();
  const env = { SVC_DATABASE_URL: database.url };
  const first = await svc(["database", "upgrade"], env);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const applied = first.stdout.trim().split("\n");
  for (const line of applied) expect(line).toMatch(/^Applied \S+$/);
  const head = applied.at(-1)!.slice("Applied ".length);
  const stdout = `Nothing to do: the schema is at ${head}\n`;
  expect(await svc(["database", "upgrade"], env)).toEqual({ code: 0, stdout, stderr: "" });
});

test("names the variable if the address is missing or invalid", async () => {
  const stderr =
    "svc: SVC_DATABASE_URL is not set: set it to postgres://user:password@host:5432/name, or start a trial with an embedded database: npm start\n";
  expect(await svc(["database", "upgrade"])).toEqual({ code: 1, stdout: "", stderr });
  const bad = await svc(["database", "upgrade"], { SVC_DATABASE_URL: "mysql://root:hunter2@db/x" });
  expect(bad).toMatchObject({ code: 1, stdout: "" });
  expect(bad.stderr).toMatch(/^svc: SVC_DATABASE_URL: .*\n$/);
  expect(bad.stderr).not.toContain("hunter2");
});

test("reports an unreachable database in one line, without the password", async () => {
  const { code, stdout, stderr } = await svc(["database", "upgrade"], {
    SVC_DATABASE_URL: "postgres://svc:hunter2@127.0.0.1:1/svc",
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^svc: .*\n$/);
  expect(stderr).not.toContain("hunter2");
});
