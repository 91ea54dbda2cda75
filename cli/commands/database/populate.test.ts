import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { runHere } from "../../../tests/support/cli/io.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";

test("prints a line for each new record, once", async () => {
  await using database = await createTestDatabase();
  const env = { SVC_DATABASE_URL: database.url };
  const stdout = `Created incident type Availability
Created incident type Data Loss
Created incident type Security
Created incident type Vulnerability
Created incident type Simulation
Created incident type Other
Created incident priority Info
Created incident priority Low
Created incident priority Medium
Created incident priority High
Created cost formula 1
`;
  expect(await runHere(["database", "populate"], env)).toEqual({ code: 0, stdout, stderr: "" });
  const nothing = { code: 0, stdout: "Nothing to do: all defaults exist\n", stderr: "" };
  expect(await runHere(["database", "populate"], env)).toEqual(nothing);
  const sql = openSql(database.url, { max: 1 });
  await sql`update incident_priority set reminder_hours = 1 where name = 'High'`;
  expect(await runHere(["database", "populate"], env)).toEqual(nothing);
  expect(await sql`select reminder_hours from incident_priority where name = 'High'`).toMatchObject([
    { reminder_hours: 1 },
  ]);
  await sql.end();
});

test("without the tables, one line says how to create them", async () => {
  await using database = await createEmptyTestDatabase();
  expect(await runHere(["database", "populate"], { SVC_DATABASE_URL: database.url })).toEqual({
    code: 1,
    stdout: "",
    stderr: "svc: The database schema is out of date: svc database upgrade\n",
  });
});

test("reports a missing database in one line", async () => {
  const stderr =
    "svc: SVC_DATABASE_URL is not set: set it to postgres://user:password@host:5432/name, or start a trial with an embedded database: npm start\n";
  expect(await runHere(["database", "populate"])).toEqual({ code: 1, stdout: "", stderr });
});
