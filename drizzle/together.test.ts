import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createTestDatabase } from "../tests/support/database/database.ts";
import { openDatabase } from "./client.ts";
import { errorCode, withoutQuery } from "./database_error.ts";
import { together } from "./together.ts";

test("of statements that were sent together, the one that failed has the reason", async () => {
  await using database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 1);
  const codeOf = (error: unknown) => errorCode(withoutQuery(error));
  const fails = async (join: typeof together) =>
    db
      .transaction(async (tx) => {
        // It takes longer to hear of the first failure than of the second one.
        const slowly = async () => {
          try {
            return await tx.execute(sql`select 1 / 0`);
          } catch (error) {
            await Bun.sleep(20);
            throw error;
          }
        };
        await join([slowly(), tx.execute(sql`select 1`)]);
      })
      .catch(codeOf);
  expect(await fails((statements) => Promise.all(statements) as never)).toBe("25P02");
  expect(await fails(together)).toBe("22012");
  expect(await db.transaction((tx) => together([tx.execute(sql`select 1 as a`), "b"]))).toEqual([
    expect.objectContaining([{ a: 1 }]),
    "b",
  ] as never);
  await close();
});
