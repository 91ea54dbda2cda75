import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { itemsOf, pagesOf } from "../../tests/support/http/pages.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let member: Person;
beforeAll(async () => {
  server = await startTestServer();
  member = await personOf(server, "carol@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

let batch = 0;
/** Inserts documents of a new resource type, so that a test can list only these; returned in id order. */
async function insert(documents: { name: string; description?: string }[], type = `type-${++batch}`) {
  for (const document of documents) {
    const { http } = await member.call("POST", "/documents/", { ...document, resource_type: type });
    expect(http).toBe(201);
  }
  return type;
}

async function page(parameters: Record<string, string>) {
  const { http, body } = await member.call("GET", `/documents/?${new URLSearchParams(parameters)}`);
  expect([http, body]).toMatchObject([200, {}]);
  return body as { items: { id: number; name: string }[]; next_cursor: string | null };
}

/** Returns the names on all pages; `between` runs after each page. */
async function walk(parameters: Record<string, string>, between = async () => {}): Promise<string[]> {
  const names: string[] = [];
  const path = `/documents/?${new URLSearchParams(parameters)}`;
  for await (const { items, next_cursor } of pagesOf(member, path)) {
    names.push(...items.map(({ name }: { name: string }) => name));
    if (next_cursor) await between();
  }
  return names;
}

const letters = [..."gcadbfe"].map((name) => ({ name }));

describe("pages", () => {
  const orders = {
    "-id": "efbdacg",
    id: "gcadbfe",
    name: "abcdefg",
    "-name": "gfedcba",
  };
  test.each(Object.entries(orders))("sorted by %s", async (sort, order) => {
    const resource_type = await insert(letters);
    for (const limit of ["1", "2", "3", "7", "200"])
      expect((await walk({ resource_type, sort, limit })).join("")).toBe(order);
    if (sort === "-id") expect((await walk({ resource_type })).join("")).toBe(order);
  });

  test.each(Object.entries(orders))(
    "sorted by %s, show each once while others are inserted",
    async (sort, order) => {
      const resource_type = await insert(letters);
      let left = 3;
      const all = await walk({ resource_type, sort, limit: "2" }, async () => {
        if (left-- <= 0) return;
        // Before, between and after the documents shown so far.
        await insert([{ name: "A" }, { name: "cc" }, { name: "z" }], resource_type);
      });
      expect(all.filter((name) => order.includes(name)).join("")).toBe(order);
    },
  );

  test("order equal names by id, without repeating or skipping any", async () => {
    const resource_type = await insert(Array.from({ length: 9 }, () => ({ name: "same" })));
    for (const sort of ["name", "-name"]) {
      const path = `/documents/?${new URLSearchParams({ resource_type, sort, limit: "2" })}`;
      const seen = (await itemsOf(member, path)).map(({ id }) => id);
      expect(new Set(seen).size).toBe(9);
      expect(seen).toEqual(seen.toSorted((a, b) => (sort === "name" ? a - b : b - a)));
    }
  });
});

describe("a search", () => {
  test("finds stems and shows the best match first, page by page, while others are inserted", async () => {
    const resource_type = await insert([
      { name: "Notes", description: "databases failed once" },
      { name: "Database failing", description: "databases fail" },
      { name: "Cooking", description: "soup" },
      { name: "Failing over the database" },
      { name: "Notes again", description: "databases failed once" },
    ]);
    const found = await walk({ resource_type, q: "database failing", limit: "1" }, async () => {
      await insert([{ name: "Kitchen", description: "soup" }], resource_type);
    });
    expect(found).toEqual(["Database failing", "Failing over the database", "Notes again", "Notes"]);
    expect(await walk({ resource_type, q: "database failing", sort: "name", limit: "3" })).toEqual(
      found.toSorted(),
    );
    expect(await walk({ resource_type, q: '"databases failed" -notes' })).toEqual(["Database failing"]);
    expect(await walk({ resource_type, q: "soup -kitchen" })).toEqual(["Cooking"]);
  });
});

describe("refuses", () => {
  test.each([
    ["sort", "search"],
    ["q", "a\0b"],
    ["q", "a".repeat(501)],
    ["name", "a\0b"],
    ["resource_type", "a\0b"],
    ["cursor", ""],
    ["cursor", "!!!"],
    ["cursor", "a".repeat(4000)],
  ])("%s=%s", async (field, value) => {
    const answer = await member.call("GET", `/documents/?${new URLSearchParams({ [field]: value })}`);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    if (value.length > 4) expect(JSON.stringify(answer.body)).not.toContain(value);
  });

  test("a cursor of another sort, search or filter", async () => {
    const resource_type = await insert(letters);
    const own = { resource_type, sort: "name" };
    const { next_cursor } = await page({ ...own, limit: "1" });
    const cursor = next_cursor!;
    await page({ ...own, cursor, limit: "3" });
    for (const foreign of [
      { resource_type },
      { resource_type, sort: "-name" },
      { sort: "name" },
      { ...own, q: "a" },
      { ...own, name: "a" },
      { ...own, incident_id: "1" },
      { ...own, resource_type: "other" },
    ]) {
      const query = new URLSearchParams({ ...(foreign as Record<string, string>), cursor });
      expect(await member.call("GET", `/documents/?${query}`)).toMatchObject({
        http: 400,
        body: { field: "cursor" },
      });
    }
  });
});
