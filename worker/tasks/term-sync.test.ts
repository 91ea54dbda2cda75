import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { asc, eq, sql } from "drizzle-orm";
import type { TermItem } from "../../core/plugin.ts";
import { definition, definitionTerm, term } from "../../drizzle/schema/index.ts";
import { fakeTerm } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { refuseRows } from "../../tests/support/database/refused_rows.ts";
import { noteAsked, noteStatements, rowsRead } from "../../tests/support/database/statements.ts";
import { startTaskTest, type TaskTest } from "../../tests/support/domain/scheduled_task.ts";
import { termSync } from "./term-sync.ts";

let its: TaskTest;
beforeAll(async () => {
  its = await startTaskTest();
});
afterAll(() => its[Symbol.asyncDispose]());
beforeEach(async () => {
  await its.db.execute(sql`truncate term, definition cascade`);
});

const item = (externalId: string, text: string, ...definitions: string[]): TermItem => ({
  externalId,
  text,
  definitions: definitions.map((text) => ({ externalId: `d ${text}`, text })),
});
const listing = (...items: TermItem[]) => fakeTerm({ list: () => items }, { slug: "glossary" });
const sync = (...sources: ReturnType<typeof fakeTerm>[]) => its.run(termSync, pluginsOf(...sources));
const terms = async () =>
  (await its.db.select().from(term).orderBy(asc(term.id))).map(
    ({ text, version, deletedAt, discoverable, source }) =>
      `${source ?? "ours"}: ${text}, version ${version}${deletedAt ? ", gone" : ""}${discoverable ? "" : ", quiet"}`,
  );
const meanings = async () => {
  const rows = await its.db
    .select({ term: term.text, means: definition.text, version: definition.version })
    .from(definitionTerm)
    .innerJoin(term, eq(term.id, definitionTerm.termId))
    .innerJoin(definition, eq(definition.id, definitionTerm.definitionId));
  return rows.map(({ term, means, version }) => `${term}: ${means} (${version})`).sort();
};

test("follows terms that appear, change, vanish and return, and writes only changes", async () => {
  expect(await sync(listing(item("1", "leak"), item("2", "pii")))).toEqual({
    result: { done: 2, skipped: 0, failed: 0 },
    faults: [],
  });
  const ids = (await its.db.select({ id: term.id }).from(term).orderBy(asc(term.id))).map(({ id }) => id);
  expect(await sync(listing(item("1", "leak"), item("2", "pii")))).toMatchObject({
    result: { done: 0, skipped: 2 },
  });
  expect(await terms()).toEqual(["glossary: leak, version 1", "glossary: pii, version 1"]);
  await sync(listing(item("1", "data leak")));
  expect(await terms()).toEqual(["glossary: data leak, version 2", "glossary: pii, version 2, gone"]);
  expect((await sync(listing(item("1", "data leak")))).result).toEqual({ done: 0, skipped: 1, failed: 0 });
  await sync(listing(item("1", "data leak"), item("2", "PII")));
  expect(await terms()).toEqual(["glossary: data leak, version 2", "glossary: PII, version 3"]);
  expect((await its.db.select({ id: term.id }).from(term).orderBy(asc(term.id))).map(({ id }) => id)).toEqual(
    ids,
  );
});

describe("definitions", () => {
  test("are shared by terms with the same definition id, follow changes, and are deleted with the last term", async () => {
    await sync(listing(item("1", "leak", "water", "data"), item("2", "spill", "water")));
    expect(await meanings()).toEqual(["leak: data (1)", "leak: water (1)", "spill: water (1)"]);
    expect(
      (await sync(listing(item("1", "leak", "water", "data"), item("2", "spill", "water")))).result.done,
    ).toBe(0);
    await sync(listing(item("1", "leak", "water"), item("2", "spill")));
    expect(await meanings()).toEqual(["leak: water (2)"]);
    expect(await its.db.$count(definition)).toBe(1);
    const other = { externalId: "d water", text: "H2O" };
    await sync(listing({ ...item("1", "leak"), definitions: [other] }));
    expect(await meanings()).toEqual(["leak: H2O (3)"]);
  });

  test("of a vanished term stay for when it returns", async () => {
    await sync(listing(item("1", "leak", "water"), item("2", "pii")));
    await sync(listing(item("2", "pii")));
    expect(await meanings()).toEqual(["leak: water (1)"]);
    await sync(listing(item("1", "leak", "water"), item("2", "pii")));
    expect(await meanings()).toEqual(["leak: water (1)"]);
  });

  test("written by users stay unchanged", async () => {
    await sync(listing(item("1", "leak", "water")));
    const stamps = { createdAt: its.clock.now(), updatedAt: its.clock.now() };
    const [own] = await its.db
      .insert(definition)
      .values({ text: "ours", ...stamps })
      .returning();
    const [leak] = await its.db.select().from(term);
    await its.db.insert(definitionTerm).values({ definitionId: own!.id, termId: leak!.id });
    await its.db.insert(definition).values({ text: "of no term", ...stamps });
    expect((await sync(listing(item("1", "leak")))).result.done).toBe(1);
    expect(await meanings()).toEqual(["leak: ours (1)"]);
    const left = await its.db.select({ text: definition.text }).from(definition);
    expect(left.map(({ text }) => text).sort()).toEqual(["of no term", "ours"]);
  });
});

test("keeps what users changed: a silenced term, and their own term with the same text", async () => {
  const stamps = { createdAt: its.clock.now(), updatedAt: its.clock.now() };
  await its.db.insert(term).values({ text: "leak", ...stamps });
  await sync(
    listing({ ...item("1", "leak"), discoverable: true }, { ...item("2", "the"), discoverable: false }),
  );
  await its.db.update(term).set({ discoverable: false }).where(eq(term.externalId, "1"));
  await sync(
    listing({ ...item("1", "leaks"), discoverable: true }, { ...item("2", "the"), discoverable: true }),
  );
  expect(await terms()).toEqual([
    "ours: leak, version 1",
    "glossary: leaks, version 2, quiet",
    "glossary: the, version 1, quiet",
  ]);
});

test("the same ids in two sources are two terms with separate definitions", async () => {
  const of = (slug: string, ...items: TermItem[]) => fakeTerm({ list: () => items }, { slug });
  await sync(
    of("a", item("1", "leak", "water"), item("2", "pii")),
    of("b", item("1", "spill", "water"), item("2", "log")),
  );
  await sync(of("a", item("1", "leak", "data")), of("b", item("1", "spill", "water"), item("2", "log")));
  expect((await terms()).sort()).toEqual([
    "a: leak, version 1",
    "a: pii, version 2, gone",
    "b: log, version 1",
    "b: spill, version 1",
  ]);
  expect(await meanings()).toEqual(["leak: data (1)", "spill: water (1)"]);
});

describe("a failing source changes nothing and does not stop the others", () => {
  test.each([
    ["throws", () => Promise.reject(new Error("secret")), "broken failed: Error"],
    ["lists nothing", () => [], "broken lists no valid items: nothing was changed"],
    ["hangs", () => new Promise<never>(() => {}), "broken did not answer within 0.05 s"],
    ["returns no list", () => ({}) as never, "broken returned an invalid answer: the answer: Expected array"],
    ["lists nothing valid", () => [item("2", " ")], "broken lists no valid items: nothing was changed"],
  ])("%s", async (_, list, reason) => {
    const options = { slug: "broken", timeoutMilliseconds: 50 };
    await sync(fakeTerm({ list: () => [item("1", "kept")] }, options));
    const broken = fakeTerm({ list }, options);
    const { result, faults } = await sync(broken, listing(item("1", "leak")));
    expect(result).toMatchObject({ done: 1 });
    expect(faults).toContainEqual({ item: "broken", reason });
    expect(await terms()).toEqual(["broken: kept, version 1", "glossary: leak, version 1"]);
    await expect(sync(broken)).rejects.toThrow(reason);
  });
});

test("a bad item is a fault, and the stored record with its id stays", async () => {
  await sync(listing(item("1", "leak"), item("2", "pii")));
  const { result, faults } = await sync(
    listing(
      item("1", "two\nlines"),
      item("2", "PII"),
      item("3", "\ud800"),
      item("\ud800", "c"),
      item("2", "again"),
      {
        externalId: "4",
        text: "d",
        definitions: [{ externalId: "x", text: " " }],
      },
      { externalId: "5", text: "e", definitions: [{ externalId: "\ud800", text: "x" }] },
      { externalId: "6", text: "f", definitions: [item("x", "y"), item("x", "z")] },
    ),
  );
  expect(result).toEqual({ done: 1, skipped: 0, failed: 7 });
  expect(faults).toEqual([
    { item: "glossary 1", reason: "The field text must be a single line of text" },
    {
      item: "glossary 3",
      reason: "The field text contains an invalid character (NUL or an unpaired surrogate)",
    },
    {
      item: "glossary \ufffd",
      reason: "The field id contains an invalid character (NUL or an unpaired surrogate)",
    },
    { item: "glossary 2", reason: "It is listed twice" },
    { item: "glossary 4", reason: "The field definitions is empty" },
    {
      item: "glossary 5",
      reason: "The field definitions contains an invalid character (NUL or an unpaired surrogate)",
    },
    { item: "glossary 6", reason: "Two definitions have the same id" },
  ]);
  expect(await terms()).toEqual(["glossary: leak, version 1", "glossary: PII, version 2"]);
});

describe("with one bad item in a list, the others are stored and the bad one is named:", () => {
  const others = [item("1", "leak"), item("2", "pii")];
  test.each<[string, unknown, string, string]>([
    ["a NUL", item("3", "b\0"), "glossary 3", "text: has a character that no text has (NUL)"],
    [
      "a NUL in a definition",
      item("3", "b", "c\0"),
      "glossary 3",
      "definitions 0 externalId: has a character that no text has (NUL)",
    ],
    [
      "a text that exceeds the limit",
      item("3", "x".repeat(201)),
      "glossary 3",
      "text: Expected string length less or equal to 200",
    ],
    ["no text", { externalId: "3" }, "glossary 3", "text: Expected required property"],
    [
      "an item that its source cannot read",
      { externalId: "3", unreadable: "line 7" },
      "glossary 3",
      "line 7",
    ],
  ])("%s", async (_, bad, name, reason) => {
    await sync(listing(...others, item("3", "kept"), item("4", "gone")));
    const { result, faults } = await sync(listing(others[0]!, bad as TermItem, item("2", "PII")));
    expect(faults).toEqual([{ item: name, reason }]);
    expect(result).toMatchObject({ done: 2, failed: 1 });
    expect((await terms()).toSorted()).toEqual([
      "glossary: PII, version 2",
      "glossary: gone, version 2, gone",
      "glossary: kept, version 1",
      "glossary: leak, version 1",
    ]);
  });

  test.each<[string, unknown, string]>([
    ["not an object", "hunter2", "Invalid item: Expected object"],
    ["no id", { text: "b", definitions: [] }, "externalId: Expected required property"],
    ["an item that its source cannot read", { unreadable: "line 7" }, "line 7"],
  ])("%s: its id is unknown, so no record counts as gone", async (_, bad, reason) => {
    await sync(listing(...others, item("3", "kept")));
    const { result, faults } = await sync(listing(others[0]!, bad as TermItem));
    expect(faults).toEqual([{ item: "glossary item 2 of its list", reason }]);
    expect(result).toMatchObject({ done: 0, failed: 1 });
    expect(await terms()).toHaveLength(3);
    expect((await terms()).join()).not.toContain("gone");
  });
});

test("a term or definition that PostgreSQL rejects does not affect the others", async () => {
  const refuse = (table: string) => refuseRows(its.db, table, "new.text like '%bad%'");
  const list = listing(item("1", "leak", "water"), item("2", "bad", "x"), item("3", "pii", "bad"));
  for (const [table, failed] of [
    ["term", "glossary 2"],
    ["definition", "glossary d bad"],
  ] as const) {
    await its.db.execute(sql`truncate term, definition cascade`);
    await using _ = await refuse(table);
    const { result, faults } = await sync(list);
    expect(faults).toEqual([{ item: failed, reason: "PostgreSQL rejects it" }]);
    expect(result).toEqual({ done: 5, skipped: 0, failed: 1 });
    expect(await meanings()).toContain("leak: water (1)");
  }
});

describe("a locked row is postponed, and does not affect the others:", () => {
  const list = (n: number, ...ids: number[]) =>
    listing(...ids.map((id) => item(`${id}`, `term ${id} of ${n}`, `meaning ${id} of ${n}`)));
  const lines = (...ids: number[]) => ids.map((id) => `glossary: term ${id} of 2, version 2`);
  test.each([
    ["a term", "term", "2", [1, 2, 3]],
    ["a vanished term", "term", "2", [1, 3]],
    ["a vanished definition", "definition", "d meaning 2 of 1", [1, 2, 3]],
  ] as const)("%s", async (_, table, externalId, ids) => {
    await sync(list(1, 1, 2, 3));
    await whileLocked(table, externalId, async () => {
      const { result, faults } = await sync(list(2, ...ids));
      const reason = "Another transaction kept it locked";
      expect(faults).toContainEqual({ item: `glossary ${externalId}`, reason });
      expect(faults.filter(({ item }) => !item.includes("2"))).toEqual([]);
      expect(result.failed).toBe(faults.length);
    });
    expect(await terms()).toEqual(expect.arrayContaining(lines(1, 3)));
    // The next run catches up.
    await sync(list(2, ...ids));
    expect(await terms()).toEqual(expect.arrayContaining(lines(...ids)));
    // A term that is gone keeps its definitions.
    const of = (id: number) => ((ids as readonly number[]).includes(id) ? 2 : 1);
    expect(await meanings()).toEqual(
      [1, 2, 3].map((id) => `term ${id} of ${of(id)}: meaning ${id} of ${of(id)} (1)`),
    );
    expect(await its.db.$count(definition)).toBe(3);
  });
});

/** Runs `work` while another transaction has the record of this id locked. */
async function whileLocked<T>(table: string, externalId: string, work: () => Promise<T>): Promise<T> {
  const [held, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const other = its.db.transaction(async (tx) => {
    await tx.execute(sql`select from ${sql.identifier(table)} where external_id = ${externalId} for update`);
    held.resolve();
    await end.promise;
  });
  await held.promise;
  try {
    return await work();
  } finally {
    end.resolve();
    await other;
  }
}

test("10,000 terms take a few statements", async () => {
  const many = Array.from({ length: 10_000 }, (_, i) => item(String(i), `term ${i}`, `means ${i % 5000}`));
  const statements = noteStatements(its.db);
  expect((await sync(listing(...many))).result.done).toBe(15_000);
  expect((await sync(listing(...many))).result).toEqual({ done: 0, skipped: 10_000, failed: 0 });
  await sync(listing(many[0]!));
  expect(statements.length).toBeLessThan(50);
  expect(await its.db.$count(term, sql`deleted_at is null`)).toBe(1);
});

test("statistics from when there was one term do not make it compare all with all", async () => {
  await sync(listing(item("0", "term 0", "means 0")));
  await its.db.execute(sql`analyze term, definition, definition_term`);
  const many = Array.from({ length: 2000 }, (_, i) => item(String(i), `term ${i}`, `means ${i % 1000}`));
  await sync(listing(...many));
  const asked = noteAsked(its.db);
  await sync(listing(...many));
  const reading = asked.filter(({ text }) => /^select /.test(text));
  expect(reading.length).toBeGreaterThan(3);
  for (const one of reading) expect(await rowsRead(its.db, one)).toBeLessThan(20_000);
});

test("2,000 links are removed without comparing each with each", async () => {
  const listed = (shift: number) =>
    Array.from({ length: 2000 }, (_, i) => item(String(i), `term ${i}`, `means ${(i + shift) % 2000}`));
  await sync(listing(...listed(0)));
  const asked = noteAsked(its.db);
  await sync(listing(...listed(1)));
  const deletions = asked.filter(({ text }) => text.startsWith('delete from "definition_term"'));
  expect(await its.db.$count(definitionTerm)).toBe(2000);
  // Not a list of pairs, which PostgreSQL compares with each row.
  expect(deletions.map(({ values }) => values.length)).toEqual(deletions.map(() => 2));
  expect(deletions.length).toBeGreaterThan(0);
});

test("two concurrent runs create each term once", async () => {
  const items = Array.from({ length: 500 }, (_, i) => item(String(i), `term ${i}`, "same"));
  const runs = await Promise.all(Array.from({ length: 4 }, () => sync(listing(...items))));
  expect(runs.map(({ result }) => result.done).sort((a, b) => a - b)).toEqual([0, 0, 0, 501]);
  expect(await its.db.$count(term, eq(term.version, 1))).toBe(500);
});

test("a run that ends half-way has changed nothing", async () => {
  const source = listing(item("1", "leak", "water"));
  const crash: Parameters<TaskTest["run"]>[2] = {
    transaction: (work) =>
      its.db.transaction(async (tx) => {
        await work(tx);
        throw new Error("the worker is gone");
      }),
  };
  await expect(its.run(termSync, pluginsOf(source), crash)).rejects.toThrow("Unexpected error");
  expect([await its.db.$count(term), await its.db.$count(definition)]).toEqual([0, 0]);
  await sync(source);
  expect(await meanings()).toEqual(["leak: water (1)"]);
});

test("does nothing without a source", async () => {
  expect((await sync()).result).toEqual({ done: 0, skipped: 0, failed: 0 });
});
