import { beforeAll, expect, test } from "bun:test";
import { and, eq, inArray } from "drizzle-orm";
import { document, incident } from "../../drizzle/schema/index.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { mayReadOf } from "../incident/visibility/visibility.ts";
import { type List, rankedMatches, startPage } from "./page.ts";

const at = new Date("2026-12-01T12:00:00Z");
const member = { user: "carol@example.com", admin: false };

const client = useDatabase(2);
let restricted: number;
beforeAll(async () => {
  ({ incidentId: restricted } = await insertIncident(client.db, at));
  await client.db.update(incident).set({ visibility: "Restricted" });
});

/** Returns their ids, oldest first. */
async function insert(count: number, name: string, incidentId: number | null = null): Promise<number[]> {
  const rows = Array.from({ length: count }, () => ({
    name,
    incidentId,
    resourceType: "reference",
    createdAt: at,
    updatedAt: at,
  }));
  const made = await client.db.insert(document).values(rows).returning({ id: document.id });
  return made.map(({ id }) => id).sort((a, b) => a - b);
}

const documents: List<"id"> = {
  name: "documents",
  id: document.id,
  search: document.search,
  defaultSort: "id",
  sorts: { id: { by: document.id, kind: "id" } },
};

async function read(q: string, cursor?: string, limit = 80, filter?: ReturnType<typeof eq>) {
  const page = startPage(documents, { q, limit, cursor }, { filter: filter && "given" });
  const rows = await client.db
    .select({ item: { id: document.id }, key: page.key })
    .from(document)
    .where(page.within(and(mayReadOf(member, document.incidentId), filter)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}

/** Returns the ids on all pages. `between` runs after each page. */
async function walk(q: string, between = async () => {}): Promise<number[]> {
  const seen: number[] = [];
  let cursor: string | undefined;
  do {
    const { items, next_cursor } = await read(q, cursor);
    seen.push(...items.map(({ id }) => id));
    cursor = next_cursor ?? undefined;
    if (cursor) await between();
  } while (cursor);
  return seen;
}

test("ranks only the newest matches", async () => {
  const [best] = await insert(1, "walrus walrus walrus");
  const rest = await insert(rankedMatches, "a walrus beside the sea");
  const seen = await walk("walrus");
  expect(seen).toEqual(rest.toReversed());
  expect(seen).not.toContain(best);
  // Within the window, the best match comes first.
  const [newer] = await insert(1, "walrus walrus walrus");
  expect(await walk("walrus")).toEqual([newer!, ...rest.slice(1).toReversed()]);
});

test("hidden and filtered records do not count towards the window", async () => {
  const seen = await insert(3, "otter");
  await insert(rankedMatches, "otter", restricted);
  expect(await walk("otter")).toEqual(seen.toReversed());
  const { items } = await read("otter", undefined, 80, inArray(document.id, [seen[0]!]));
  expect(items.map(({ id }) => id)).toEqual([seen[0]!]);
});

test("pages show each match once while matches are inserted and deleted", async () => {
  const window = await insert(rankedMatches + 20, "a heron beside the lake");
  const added: number[] = [];
  const seen = await walk("heron", async () => {
    added.push(...(await insert(5, "heron heron")), ...(await insert(5, "a heron beside a very long lake")));
    // These are not shown yet, and older than everything ranked.
    await client.db.delete(document).where(inArray(document.id, window.splice(0, 5)));
  });
  expect(seen).toEqual(window.slice(-rankedMatches).toReversed());
  expect(seen.filter((id) => added.includes(id))).toEqual([]);
});

test("a match that commits late with an older id displaces none", async () => {
  const window = await insert(rankedMatches, "a stork beside the river");
  const gap = window[rankedMatches - 100]!;
  await client.db.update(document).set({ name: "something else" }).where(eq(document.id, gap));
  const late = () =>
    client.db.update(document).set({ name: "a stork beside the river" }).where(eq(document.id, gap));
  await insert(1, "a stork beside the river");
  const seen = await walk("stork", async () => void (await late()));
  expect(seen).toContain(window[0]!);
  expect(new Set(seen).size).toBe(seen.length);
});
