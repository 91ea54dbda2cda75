import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { parseWords, wordsOf } from "../../core/list/page.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { personOf } from "../../tests/support/http/people.ts";
import "../../tests/support/seed.ts";
import { startTestServer } from "../../tests/support/http/server.ts";

const client = useDatabase(1);

test.each([
  "-".repeat(500),
  "- ".repeat(40),
  `${"-!".repeat(40)}disk`,
  `disk ${"-(".repeat(40)}full`,
  "-<".repeat(60),
  `a ${"-".repeat(33)}b`,
])("a search for %p does not fail", async (q) => {
  await using server = await startTestServer();
  const member = await personOf(server, "carol@example.com");
  for (const path of ["/search", "/documents/", "/incidents/"])
    expect((await member.call("GET", `${path}?q=${encodeURIComponent(q)}`)).http).toBe(200);
});

/** All ASCII characters except letters and NUL, plus spaces and signs of other alphabets. */
const signs = [
  ...Array.from({ length: 127 }, (_, at) => String.fromCharCode(at + 1)).filter((sign) =>
    /[^a-z]/i.test(sign),
  ),
  ..."\u0085\u00a0\u00ab\u0301\u1680\u2003\u2013\u2028\u202e\u3000\ufeff\uff01\uff1c😀",
];

/** Fails if PostgreSQL cannot parse the query. */
async function parsed(q: string): Promise<void> {
  await client.db.execute(sql`select ${wordsOf(parseWords(q))}`);
}

test("PostgreSQL can parse any character between hyphens", async () => {
  for (const sign of signs) {
    for (const some of [`-${sign}`, `--${sign}`, `-${sign} `, `-!${sign}`])
      await parsed(`a or b ${some.repeat(Math.floor(480 / some.length))}`);
  }
});

test("PostgreSQL can parse any mix of hyphens, signs and words", async () => {
  const sign = fc.oneof(fc.constantFrom(..."!&|()< "), fc.constantFrom(...signs));
  const part = (some: readonly string[]) =>
    fc.oneof(
      { weight: 100, arbitrary: fc.constantFrom("-", ...some.map((one) => `-${one}`)) },
      { weight: 1, arbitrary: fc.constantFrom("a", "or", "disk full", '"a -b"') },
    );
  const q = fc
    .uniqueArray(sign, { minLength: 1, maxLength: 3 })
    .chain((some) => fc.array(part(some), { minLength: 40, maxLength: 200 }))
    .map((parts) => parts.join("").slice(0, 480));
  await fc.assert(
    fc.asyncProperty(
      q.filter((text) => text.isWellFormed()),
      parsed,
    ),
    { numRuns: 500 },
  );
});

test("a few hyphens are left unchanged", () => {
  for (const q of [
    "disk -full -test",
    "a--b",
    "-a -b -c -d -e -f -g -h -i -j -k",
    '-"-"-"-"-"-"-"-"-"-"-"-"',
  ])
    expect(parseWords(q)).toBe(q);
});
