import { describe, expect, test } from "bun:test";
import { pagesOf } from "./pages.ts";
import type { ApiAnswer } from "./people.ts";
import type { ResourceCase, SuiteContext } from "./resource_suite.ts";

/** The part of `resourceSuite` for lists. */
export function listSuite(resource: ResourceCase, context: () => SuiteContext): void {
  const { path, text } = resource;
  const get = async (parameters: Record<string, string>): Promise<ApiAnswer> =>
    context().member.call("GET", `${path}?${new URLSearchParams(parameters)}`);
  const page = async (parameters: Record<string, string>) => {
    const { http, body } = await get(parameters);
    expect([http, body]).toMatchObject([200, {}]);
    return body as { items: Record<string, unknown>[]; next_cursor: string | null };
  };

  describe("the list", () => {
    test.each(resource.sorts.flatMap((sort) => [sort, `-${sort}`]))(
      "sorted by %s, shows each record once and in order during inserts",
      async (sort) => {
        const { create } = context();
        const ids: unknown[] = [];
        for (let i = 0; i < 5; i += 1) ids.push((await create()).id);
        const seen: Record<string, unknown>[] = [];
        let left = 3;
        for await (const { items, next_cursor } of pagesOf(
          context().member,
          `${path}?sort=${sort}&limit=3`,
        )) {
          seen.push(...items);
          if (next_cursor && left-- > 0) await create();
        }
        const shown = seen.map(({ id }) => id);
        expect(new Set(shown).size).toBe(shown.length);
        expect(shown).toEqual(expect.arrayContaining(ids));
        const [field, backwards] = sort.startsWith("-") ? [sort.slice(1), -1] : [sort, 1];
        const keys = seen.map((item) => item[field] as string | number);
        if (field === "id")
          expect(keys).toEqual(keys.toSorted((a, b) => (Number(a) - Number(b)) * backwards));
      },
    );

    const sortedByText = resource.sorts.filter((sort) => sort === text);
    test.each(sortedByText)("sorts by %s in both directions", async (sort) => {
      const { create, next } = context();
      const n = next();
      for (const letter of "cab") await create({ [text]: `${letter}${letter} ${n}` });
      const order = async (by: string) =>
        (await page({ sort: by, limit: "200" })).items
          .map((item) => String(item[text]))
          .filter((shown) => shown.endsWith(` ${n}`) && shown.length === 3 + String(n).length);
      expect(await order(sort)).toEqual(["aa", "bb", "cc"].map((letters) => `${letters} ${n}`));
      expect(await order(`-${sort}`)).toEqual(["cc", "bb", "aa"].map((letters) => `${letters} ${n}`));
    });

    test("starts with the newest record, with the same fields as a GET", async () => {
      const { create } = context();
      const made = await create();
      const { items, next_cursor } = await page({ limit: "1" });
      expect(items).toEqual([made]);
      expect(next_cursor).toBeString();
      const without = await context().member.call("GET", path.slice(0, -1));
      expect(without.body).toEqual(await page({}));
    });

    test.each(resource.filters)("filtered by %s shows only matching records", async (filter) => {
      const { create } = context();
      const made = await create();
      await create();
      const value = String(made[filter]);
      const { items } = await page({ [filter]: value, limit: "200" });
      expect(items).toContainEqual(made);
      for (const item of items) expect(String(item[filter])).toBe(value);
      expect((await page({ [filter]: "nobody@nowhere.example" })).items).toEqual([]);
      expect(await get({ [filter]: "a\0b" })).toMatchObject({ http: 400, body: { field: filter } });
      const { next_cursor } = await page({ limit: "1" });
      expect(await get({ [filter]: value, cursor: next_cursor! })).toMatchObject({
        http: 400,
        body: { field: "cursor" },
      });
    });

    if (resource.searched) {
      test("finds words, with the best match first", async () => {
        const { create, next } = context();
        const word = `zebra${next()}`;
        const once = await create({ [text]: `One ${word} crossing` });
        const twice = await create({ [text]: `${word} ${word} crossing` });
        const { items } = await page({ q: word });
        expect(items.map(({ id }) => id).sort()).toEqual([once.id, twice.id].sort());
        expect(items[0]?.id).toBe(twice.id);
        expect((await page({ q: `${word} -one` })).items.map(({ id }) => id)).toEqual([twice.id]);
        for (const q of ["", " "]) expect(await page({ q })).toEqual(await page({}));
      });
    } else {
      test("does not support search", async () => {
        expect(await get({ q: "x" })).toMatchObject({ http: 400, body: { field: "q" } });
      });
    }

    test.each([
      ["sort", "search"],
      ["sort", "constructor"],
      ["sort", ""],
      ["cursor", "x"],
      ["cursor", ""],
    ])("refuses %s=%p", async (field, value) => {
      expect(await get({ [field]: value })).toMatchObject({ http: 400, body: { field } });
    });
  });
}
