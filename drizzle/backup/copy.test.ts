import { afterAll, beforeAll, expect, test } from "bun:test";
import { using } from "../../tests/support/database/backup.ts";
import { createEmptyTestDatabase, type TestDatabase } from "../../tests/support/database/database.ts";
import { copyIn, copyOut } from "./copy.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createEmptyTestDatabase();
  await using(database.url, (sql) =>
    sql.unsafe(
      "create table numbers (n int primary key); create table later (n int unique deferrable initially deferred)",
    ),
  );
});
afterAll(() => database[Symbol.asyncDispose]());

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

test("returns the server's row count, however large, and keeps the connection usable", async () => {
  await using(database.url, async (sql) => {
    for (const rows of [0, 1, 3, 200_000]) {
      for (let turn = 0; turn < 5; turn += 1) {
        const copy = await copyOut(
          sql,
          `copy (select repeat('x', 50) from generate_series(1, ${rows})) to stdout`,
        );
        let bytes = 0;
        for await (const piece of copy) {
          bytes += piece.length;
          // A slow reader pauses the socket, which must be resumed afterwards.
          if (turn % 2 === 1) await undefined;
        }
        expect([await copy.count, bytes]).toEqual([rows, rows * 51]);
        expect(await sql`select 1 as one`).toMatchObject([{ one: 1 }]);
      }
    }
  });
});

test("throws the server's error, whether it comes at once, in the middle or after the end", async () => {
  await using(database.url, async (sql) => {
    const refused = async (statement: string, ...texts: string[]) =>
      (await copyIn(sql, statement, pieces(...texts)).catch((error) => error)).code;
    expect(await refused("copy nothing from stdin", "1\n")).toBe("42P01");
    expect(await refused("copy numbers from stdin", "x\n", ...Array(200).fill("1\n".repeat(100_000)))).toBe(
      "22P02",
    );
    expect(await refused("copy numbers from stdin", "1\nx\n")).toBe("22P02");
    expect(await refused("copy numbers from stdin", "1\n1\n")).toBe("23505");
    // The constraint is checked only when the statement ends.
    expect(await refused("copy later from stdin", "1\n1\n")).toBe("23505");
    expect(await copyIn(sql, "copy numbers from stdin", pieces("1\n2", "\n3\n"))).toBe(3);
    expect(await copyIn(sql, "copy numbers from stdin", pieces())).toBe(0);
    const out = await copyOut(sql, "copy (select 1 / (n - 2) from numbers order by n) to stdout");
    expect(Array.fromAsync(out)).rejects.toMatchObject({ code: "22012" });
    expect(await sql`select count(*)::int from numbers`).toMatchObject([{ count: 3 }]);
  });
});

test("when reading the rows fails, nothing is written, and the connection stays usable", async () => {
  await using(database.url, async (sql) => {
    const failing = async function* () {
      yield Buffer.from("100\n");
      throw new Error("the file is gone");
    };
    const transaction = sql.begin((inner) => copyIn(inner, "copy numbers from stdin", failing()));
    expect(await transaction.catch((error) => error.message)).toBe("the file is gone");
    expect(await sql`select from numbers where n = 100`).toHaveLength(0);
  });
});
