import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { openDatabase } from "../drizzle/client.ts";
import { individual } from "../drizzle/schema/index.ts";
import { createTestDatabase } from "../tests/support/database.ts";
import { createLog } from "./log.ts";

test("of a query that failed, neither the SQL nor its parameters are written, and the SQLSTATE is", async () => {
  await using database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 2);
  const logged: string[] = [];
  const log = createLog("trace", { write: (line: string) => void logged.push(line) });
  const failing = db.update(individual).set({ name: "n", email: "s3cret\0" }).where(eq(individual.id, 1));
  const error = await failing.catch((thrown: unknown) => thrown);
  await close();
  expect(String((error as Error).message)).toContain("s3cret");
  log.warn({ err: error }, "it failed");
  log.warn({ err: new Error("around it", { cause: error }) }, "it failed");
  expect(logged).toHaveLength(2);
  for (const line of logged) {
    expect(line).toContain('"code":"');
    expect(line).not.toContain("s3cret");
    expect(line).not.toMatch(/update/i);
  }
});
