import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { rankedOfType } from "../../core/incident/search/search.ts";
import { searchedTypes } from "../../core/incident/search/searched.ts";
import * as schema from "../../drizzle/schema/index.ts";
import type { Person } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { insertTask, insertTwoIncidents, type Place, places } from "../../tests/support/http/task.ts";

let server: TestServer;
let people: Record<string, Person>;
let incidents: Record<Place, number>;
let ids: Awaited<ReturnType<typeof insertTwoIncidents>>["ids"];

beforeAll(async () => {
  server = await startTestServer();
  ({ people, incidents, ids } = await insertTwoIncidents(server));
  const { db, clock } = server;
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const deletedAt = clock.now();
  await db.insert(schema.term).values([
    { text: "quokka", ...stamps },
    { text: "quokka gone", source: "s", externalId: "1", deletedAt, ...stamps },
  ]);
  await db.insert(schema.definition).values({ text: "A quokka is small", ...stamps });
  await db.insert(schema.individual).values({ name: "Quokka", email: "q@example.com", ...stamps });
  await db.insert(schema.team).values({ name: "Quokka team", ...stamps });
  await db.insert(schema.service).values({ name: "Quokka service", ...stamps });
  await db.insert(schema.application).values([
    { name: "quokka app", description: "It feeds the quokka", ...stamps },
    { name: "quokka old", source: "s", externalId: "1", deletedAt, ...stamps },
  ]);
  await db.insert(schema.incidentType).values({ name: "Quokka escape", ...stamps });
  for (const place of places) {
    const incidentId = incidents[place];
    await db.update(schema.incident).set({ title: "quokka" }).where(eq(schema.incident.id, incidentId));
    await db
      .insert(schema.document)
      .values({ name: `quokka ${place}`, resourceType: "reference", incidentId, ...stamps });
    await insertTask(server, { incidentId, description: `Feed the quokka, ${place}` });
    const at = clock.now();
    const told = {
      incidentId,
      at,
      actor: "alice@example.com",
      source: "core",
      description: `A quokka, ${place}`,
    };
    await db.insert(schema.event).values([
      { ...told, kind: "note" },
      // Tells of another record.
      { ...told, kind: "task.created" },
    ]);
    const report = { incidentId, authorId: ids.alice, createdAt: at };
    const texts = { conditions: "", actions: `Catch the quokka, ${place}`, needs: "" };
    await db.insert(schema.statusReport).values({ ...report, ...texts });
    const said = { conversationId: await channelOf(incidentId), at, text: `quokka! ${place}` };
    await db.insert(schema.conversationMessage).values([
      { ...said, authorId: ids.alice },
      // Announces what is found itself.
      said,
    ]);
  }
  const gone = { documentId: ids.documentId, externalId: "9", deletedAt };
  await insertTask(server, { incidentId: incidents.Open, description: "quokka tombstone", ...gone });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Its channel in the database. */
async function channelOf(incidentId: number, pluginSlug = "channel"): Promise<number> {
  const { db, clock } = server;
  await db
    .insert(schema.conversation)
    .values({ incidentId, pluginSlug, createdAt: clock.now() })
    .onConflictDoNothing();
  const rows = await db
    .select()
    .from(schema.conversation)
    .where(eq(schema.conversation.incidentId, incidentId));
  return rows.find((row) => row.pluginSlug === pluginSlug)!.id;
}

interface Item {
  type: string;
  id: number;
  title: string;
  excerpt: string;
  incident_id: number | null;
  rank: number;
}

async function search(person: Person, parameters: Record<string, string>): Promise<Item[]> {
  const { http, body } = await person.call("GET", `/search?${new URLSearchParams(parameters)}`);
  expect([http, body.next_cursor]).toEqual([200, null]);
  return body.items;
}

describe("finds in every type", () => {
  const twice = ["document", "incident", "task", "note", "report", "message"];
  test.each([
    ["member", searchedTypes],
    ["former", searchedTypes],
    ["participant", [...searchedTypes, ...twice]],
    ["admin", [...searchedTypes, ...twice]],
  ])("what a %s may read, without tombstones", async (who, types) => {
    const items = await search(people[who]!, { q: "quokka", limit: "50" });
    expect(items.map(({ type }) => type).sort()).toEqual([...types].sort());
    const hidden = types.length === searchedTypes.length;
    expect(items.some((item) => item.incident_id === incidents.Restricted)).toBe(!hidden);
    expect(JSON.stringify(items)).not.toMatch(/gone|old|tombstone/);
    if (hidden) expect(JSON.stringify(items)).not.toContain("Restricted");
  });

  test("with the best match first, in a stable order", async () => {
    const items = await search(people.admin!, { q: "quokka", limit: "50" });
    expect(items).toEqual(items.toSorted((a, b) => b.rank - a.rank));
    expect(await search(people.admin!, { q: "quokka", limit: "50" })).toEqual(items);
    expect(await search(people.admin!, { q: "quokka", limit: "3" })).toEqual(items.slice(0, 3));
  });

  test("or in the requested types", async () => {
    for (const type of searchedTypes) {
      const items = await search(people.member!, { q: "quokka", type });
      expect(items.map((item) => item.type)).toEqual([type]);
    }
    const some = await search(people.member!, { q: "quokka", type: "team,task,team" });
    expect(some.map(({ type }) => type).sort()).toEqual(["task", "team"]);
  });
});

test("shows title, incident and surrounding words, also for a document's text", async () => {
  const incidentId = incidents.Open;
  const stamps = { createdAt: server.clock.now(), updatedAt: server.clock.now() };
  const [made] = await server.db
    .insert(schema.document)
    .values({ name: "n".repeat(500), resourceType: "incident", incidentId, ...stamps })
    .returning();
  const documentId = made!.id;
  const content = `${"word ".repeat(300)} the <b>numbat</b> sleeps ${"word ".repeat(300)}`;
  const hash = new Bun.CryptoHasher("sha256").update(content).digest();
  await server.db
    .insert(schema.documentContent)
    .values({ documentId, content, hash, updatedAt: server.clock.now() });
  const items = await search(people.member!, { q: "numbats" });
  expect(items).toEqual([
    {
      type: "document",
      id: documentId,
      title: "n".repeat(200),
      incident_id: incidentId,
      excerpt: expect.stringMatching(/^… .*numbat.* …$/s),
      rank: expect.any(Number),
    },
  ]);
  expect(items[0]!.excerpt.length).toBeLessThan(400);
  const [incident] = await search(people.member!, { q: "quokka", type: "incident" });
  expect(incident).toMatchObject({ id: incidentId, incident_id: incidentId });
  expect(incident!.title).toMatch(/^INC-\d+: quokka$/);
});

test("only the newest matches of each type are ranked; a better but older one is left out", async () => {
  const stamps = { createdAt: server.clock.now(), updatedAt: server.clock.now() };
  const add = (name: string, count: number) => {
    const row = { name, resourceType: "reference", ...stamps };
    return server.db.insert(schema.document).values(Array.from({ length: count }, () => row));
  };
  await add("okapi okapi okapi", 1);
  await add("An okapi in the wood", rankedOfType);
  const best = async () => (await search(people.member!, { q: "okapi" }))[0]!.title;
  expect(await best()).toBe("An okapi in the wood");
  await add("okapi okapi", 1);
  expect(await best()).toBe("okapi okapi");
});

describe("unusual queries", () => {
  test.each([
    "the",
    "of and the",
    " ",
    "'",
    '"',
    "a & | ! ( ) <-> :*",
    "'; drop table document; --",
    "\\",
    "% _",
    "-",
    "or or",
    "StopSel=x, StartSel=y",
  ])("%p finds nothing and does not fail", async (q) => {
    expect(await search(people.member!, { q })).toEqual([]);
  });
});

describe("refuses", () => {
  test.each([
    ["q", {}],
    ["q", { q: "" }],
    ["q", { q: "a\0b" }],
    ["q", { q: "a".repeat(501) }],
    ["type", { q: "a", type: "" }],
    ["type", { q: "a", type: "session" }],
    ["type", { q: "a", type: "task,constructor" }],
    ["limit", { q: "a", limit: "51" }],
    ["sort", { q: "a", sort: "id" }],
  ])("%s of %p", async (field, query) => {
    const parameters = new URLSearchParams(query as Record<string, string>);
    expect(await people.member!.call("GET", `/search?${parameters}`)).toMatchObject({
      http: 400,
      body: { code: "invalid_input", field },
    });
  });

  test("a million characters, and keeps running", async () => {
    const status = await people
      .member!.call("GET", `/search?q=${"a".repeat(1_000_000)}`)
      .then(({ http }) => http)
      // The connection may be closed first.
      .catch(() => 431);
    expect([400, 414, 431]).toContain(status);
    expect(await search(people.member!, { q: "quokka", type: "term" })).toHaveLength(1);
  });
});

test("notes, reports and messages show their incident and their words", async () => {
  const found = async (type: string) =>
    (await search(people.member!, { q: "quokka", type })).map(({ title, excerpt, incident_id }) => ({
      title: title.replace(/^INC-\d+/, "INC"),
      excerpt,
      incident_id,
    }));
  const incident_id = incidents.Open;
  expect(await found("note")).toEqual([
    { title: "INC: note by alice@example.com", excerpt: "A quokka, Open", incident_id },
  ]);
  const [report] = await found("report");
  expect(report).toEqual({ title: "INC: status report", excerpt: "Catch the quokka, Open", incident_id });
  expect(await found("message")).toEqual([{ title: "INC: message", excerpt: "quokka! Open", incident_id }]);
});

test("a direct message is found only by its author and its recipient, even among admins", async () => {
  const { db, clock } = server;
  const conversationId = await channelOf(incidents.Open);
  const [authorId, recipientId] = [ids.alice, ids.bob];
  await db
    .insert(schema.conversationMessage)
    .values({ conversationId, at: clock.now(), authorId, recipientId, text: "Meet me at the platypus" });
  // Alice, bob, carol and an admin.
  const seen = () =>
    Promise.all(
      ["participant", "former", "member", "admin"].map(
        async (who) => (await search(people[who]!, { q: "platypus" })).length,
      ),
    );
  expect(await seen()).toEqual([1, 1, 0, 0]);
  // Not in an incident that its recipient may no longer read.
  await db
    .update(schema.conversationMessage)
    .set({ conversationId: await channelOf(incidents.Restricted) })
    .where(eq(schema.conversationMessage.text, "Meet me at the platypus"));
  expect(await seen()).toEqual([1, 0, 0, 0]);
});
