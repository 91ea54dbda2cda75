import { afterAll, beforeAll, expect, test } from "bun:test";
import { createEmptyTestDatabase, type TestDatabase } from "../../tests/support/database/database.ts";
import { openSql, type Sql } from "../client.ts";
import { triggers } from "./index.ts";

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createEmptyTestDatabase();
  sql = openSql(database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end();
  await database[Symbol.asyncDispose]();
});

const { value } = triggers.find(({ name }) => name === "svc_term_search")!.fill!;
/** The words of a term's text. */
const words = async (text: string) => {
  const rows = await sql.unsafe<{ words: string[] }[]>(
    `select tsvector_to_array(${value}) as words from (select $1::text as text) term`,
    [text],
  );
  return rows[0]!.words;
};

test.each(["a_", "a@1", "~/", "./", "<!--", "<!-- ", "a_\u00a0"])(
  "the words of a text of %j are found in time that grows with its length",
  async (part) => {
    // The least of several, because a busy machine only adds time.
    const times = [4000, 16_000, 64_000].map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round < 3; round += 1)
      for (const [at, size] of [4000, 16_000, 64_000].entries()) {
        const from = performance.now();
        await words(part.repeat(size / part.length));
        times[at] = Math.min(times[at]!, performance.now() - from);
      }
    const [small, medium, large] = times as [number, number, number];
    // Four times the text takes four times as long; quadratic work takes sixteen times as long.
    expect(medium < 15 || medium < 9 * small).toBe(true);
    expect(large < 15 || large < 9 * medium).toBe(true);
  },
);

test("words are found in comments, and before and after a long run", async () => {
  const found = await words(`first <!-- hidden --> ${"a_".repeat(2000)} last see https://example.com/way`);
  for (const word of ["first", "hidden", "last", "example.com", "example.com/way"])
    expect(found).toContain(word);
});
