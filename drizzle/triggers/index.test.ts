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

/**
 * Milliseconds for each text: the least of some rounds, because a busy machine only adds time. More rounds until they are
 * what the test expects.
 */
async function times(texts: readonly string[], isExpected: (least: number[]) => boolean): Promise<number[]> {
  const least = texts.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < 20 && !(round >= 3 && isExpected(least)); round += 1)
    for (const [at, text] of texts.entries()) {
      const from = performance.now();
      await words(text);
      least[at] = Math.min(least[at]!, performance.now() - from);
    }
  return least;
}

test.each(["a_", "a@1", "~/", "./", "<!--", "<!-- ", "a_\u00a0", "x"])(
  "the words of a text of %j are found in time that grows with its length",
  async (part) => {
    const texts = [4000, 16_000, 64_000].map((size) => part.repeat(size / part.length));
    // Four times the text takes four times as long; quadratic work takes sixteen times as long.
    const grows = (small: number, large: number) => large < 15 || large < 9 * small;
    const isLinear = ([small, medium, large]: number[]) => grows(small!, medium!) && grows(medium!, large!);
    const least = await times(texts, isLinear);
    expect([least, isLinear(least)]).toEqual([least, true]);
  },
);

test("a long run of letters takes no longer than words", async () => {
  const length = 190_000;
  const texts = ["x".repeat(length), "restarting db-2, ".repeat(length / 17)];
  const isShort = ([run, prose]: number[]) => run! < 2 * prose!;
  const least = await times(texts, isShort);
  expect([least, isShort(least)]).toEqual([least, true]);
});

test("words are found in comments, and before and after a long run", async () => {
  const found = await words(`first\n<!-- hidden -->\t${"a_".repeat(2000)}\nlast see https://example.com/way`);
  for (const word of ["first", "hidden", "last", "example.com", "example.com/way"])
    expect(found).toContain(word);
});
