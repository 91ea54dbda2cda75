import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import * as schema from "../../drizzle/schema/index.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let member: Person;
let n = 0;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

const targets = {
  incident_type_ids: async () => insertRow(server.db, schema.incidentType, { name: `Type ${++n}` }),
  incident_priority_ids: async () =>
    insertRow(server.db, schema.incidentPriority, { name: `Priority ${++n}`, reminderHours: 1 }),
  term_ids: async () => insertRow(server.db, schema.term, { text: `term ${++n}` }),
};
const paths = {
  incident_type_ids: "/incident_types/",
  incident_priority_ids: "/incident_priorities/",
  term_ids: "/terms/",
};
type Kind = keyof typeof targets;
const kinds = Object.keys(targets) as Kind[];

/** The resources with links, and the other fields of their PUT. */
const owners: [path: string, fields: () => Record<string, unknown>, words: string, named: Kind[]][] = [
  ["/individuals/", () => ({ name: "A", email: `a${++n}@example.com` }), "an individual's", kinds],
  ["/teams/", () => ({ name: `Team ${++n}`, description: "", email: null }), "a team's", kinds],
  [
    "/documents/",
    () => ({ name: "A", description: "", resource_type: "reference", weblink: null }),
    "a document's",
    kinds,
  ],
  ["/definitions/", () => ({ text: "A" }), "a definition", ["term_ids"]],
];
const cases = owners.flatMap(([path, fields, words, named]) =>
  named.map((kind) => ({ path, kind, fields, words })),
);

describe.each(cases)("$path with $kind", ({ path, kind, fields, words }) => {
  const rest = Object.fromEntries(
    owners.find(([of]) => of === path)![3].map((other) => [other, [] as number[]]),
  );
  const post = (ids: number[]) => admin.call("POST", path, { ...fields(), ...rest, [kind]: ids });
  const put = (id: number, version: number, ids: number[]) =>
    admin.call("PUT", `${path}${id}`, { ...fields(), ...rest, [kind]: ids, version });
  const shown = async (id: number) => (await member.call("GET", `${path}${id}`)).body[kind] as number[];

  test("lists each link once, in id order; a PUT replaces them", async () => {
    const [a, b, c] = [await targets[kind](), await targets[kind](), await targets[kind]()];
    const { http, body } = await post([c, a, c]);
    expect([http, body[kind]]).toEqual([201, [a, c]]);
    const changed = await put(body.id, 1, [b, c]);
    expect([changed.http, changed.body[kind]]).toEqual([200, [b, c]]);
    expect(await shown(body.id)).toEqual([b, c]);
    const listed = await member.call("GET", `${path}?limit=1`);
    expect(listed.body.items).toEqual([changed.body]);
    expect((await put(body.id, 2, [])).body[kind]).toEqual([]);
  });

  test("refuses more than 200, even if all are the same", async () => {
    const target = await targets[kind]();
    const times = (count: number) => post(Array.from({ length: count }, () => target));
    expect([(await times(200)).http, (await times(201)).http]).toEqual([201, 400]);
  });

  test("changes nothing if one does not exist", async () => {
    const known = await targets[kind]();
    const before = (await member.call("GET", `${path}?limit=1`)).body.items;
    expect(await post([known, 999_999])).toMatchObject({ http: 400, body: { field: kind } });
    expect((await member.call("GET", `${path}?limit=1`)).body.items).toEqual(before);
    const { body } = await post([known]);
    expect(await put(body.id, 1, [999_999])).toMatchObject({ http: 400, body: { field: kind } });
    expect((await member.call("GET", `${path}${body.id}`)).body).toEqual(body);
  });

  test("refuses to delete a linked record until the link is removed", async () => {
    const target = await targets[kind]();
    const { body } = await post([target]);
    const refused = await admin.call("DELETE", `${paths[kind]}${target}`);
    expect([refused.http, refused.body.detail]).toEqual([409, expect.stringContaining(words)]);
    expect((await put(body.id, 1, [])).http).toBe(200);
    expect((await admin.call("DELETE", `${paths[kind]}${target}`)).http).toBe(204);
  });

  test("deletes the link with the record that has it", async () => {
    const target = await targets[kind]();
    const { body } = await post([target]);
    expect((await admin.call("DELETE", `${path}${body.id}`)).http).toBe(204);
    expect((await admin.call("DELETE", `${paths[kind]}${target}`)).http).toBe(204);
  });

  test("if a record is linked and deleted concurrently, one request is refused and none fails", async () => {
    for (let i = 0; i < 10; i += 1) {
      const target = await targets[kind]();
      const [named, deleted] = await Promise.all([
        post([target]),
        admin.call("DELETE", `${paths[kind]}${target}`),
      ]);
      expect(["201 409", "400 204"]).toContain(`${named.http} ${deleted.http}`);
    }
  });
});

describe("a term that vanished from its source", () => {
  const vanished = (id: number, deletedAt: Date | null) =>
    server.db
      .update(schema.term)
      .set({ source: "glossary", externalId: String(id), deletedAt })
      .where(eq(schema.term.id, id));

  test.each(owners)(
    "is not shown by %s, and is linked again when it returns",
    async (path, fields, _, named) => {
      const rest = Object.fromEntries(named.map((kind) => [kind, [] as number[]]));
      const [gone, other] = [await targets.term_ids(), await targets.term_ids()];
      const { body } = await admin.call("POST", path, { ...fields(), ...rest, term_ids: [gone] });
      await vanished(gone, server.clock.now());
      expect((await member.call("GET", `${path}${body.id}`)).body.term_ids).toEqual([]);
      const change = { ...fields(), ...rest, term_ids: [other], version: 1 };
      const changed = await admin.call("PUT", `${path}${body.id}`, change);
      expect([changed.http, changed.body.term_ids]).toEqual([200, [other]]);
      const again = { ...change, ...fields(), term_ids: [gone], version: 2 };
      expect(await admin.call("PUT", `${path}${body.id}`, again)).toMatchObject({
        http: 400,
        body: { field: "term_ids" },
      });
      await vanished(gone, null);
      expect((await member.call("GET", `${path}${body.id}`)).body.term_ids).toEqual([gone, other]);
    },
  );
});

describe("a document's terms", () => {
  const linkOf = async (documentId: number, termId: number) => {
    const { documentTerm: link } = schema;
    const [row] = await server.db
      .select({ source: link.source })
      .from(link)
      .where(and(eq(link.documentId, documentId), eq(link.termId, termId)));
    return row?.source;
  };
  const whole = { name: "A", description: "", resource_type: "reference", weblink: null };
  const put = (id: number, version: number, change: object) =>
    member.call("PUT", `/documents/${id}`, { ...whole, ...change, version });

  test("leave out those that the worker found, which stay whatever a PUT contains", async () => {
    const [found, given] = [await targets.term_ids(), await targets.term_ids()];
    const { body } = await member.call("POST", "/documents/", { ...whole, term_ids: [given] });
    await server.db
      .insert(schema.documentTerm)
      .values({ documentId: body.id, termId: found, source: "Found" });
    expect((await member.call("GET", `/documents/${body.id}`)).body.term_ids).toEqual([given]);
    expect((await put(body.id, 1, { term_ids: [] })).body.term_ids).toEqual([]);
    expect([await linkOf(body.id, found), await linkOf(body.id, given)]).toEqual(["Found", undefined]);
  });

  test("include a found one once a user adds it; when removed, the worker reads the text again", async () => {
    const term = await targets.term_ids();
    const { body } = await member.call("POST", "/documents/", whole);
    await server.db
      .insert(schema.documentTerm)
      .values({ documentId: body.id, termId: term, source: "Found" });
    const read = new Uint8Array(32);
    const hashes = { contentHash: read, termContentHash: read };
    await server.db.update(schema.document).set(hashes).where(eq(schema.document.id, body.id));
    const hash = async () => {
      const [row] = await server.db.select().from(schema.document).where(eq(schema.document.id, body.id));
      return row!.termContentHash;
    };
    expect((await put(body.id, 1, { term_ids: [term] })).body.term_ids).toEqual([term]);
    expect((await put(body.id, 2, { term_ids: [term] })).body.term_ids).toEqual([term]);
    expect([await linkOf(body.id, term), await hash()]).toEqual(["Given", read]);
    expect((await put(body.id, 3, { term_ids: [] })).body.term_ids).toEqual([]);
    expect([await linkOf(body.id, term), await hash()]).toEqual([undefined, null]);
  });

  test("and types and priorities stay if a PUT omits them", async () => {
    const links = {
      incident_type_ids: [await targets.incident_type_ids()],
      incident_priority_ids: [await targets.incident_priority_ids()],
      term_ids: [await targets.term_ids()],
    };
    const { body } = await member.call("POST", "/documents/", { ...whole, ...links });
    expect(body).toMatchObject(links);
    expect((await put(body.id, 1, { name: "B" })).body).toMatchObject({ ...links, name: "B", version: 2 });
    expect((await put(body.id, 2, { term_ids: [] })).body).toMatchObject({ ...links, term_ids: [] });
  });
});

test("statistics from when there were two terms do not make lists read all records for each", async () => {
  const { db } = server;
  /** Numbered definitions and terms, of which each defines, and has, two. */
  const insert = (from: number, to: number) =>
    db.execute(sql`
      with means as (
        insert into definition (text, created_at, updated_at)
        select n::text, now(), now() from generate_series(${from}::int, ${to}::int) as n returning id, text),
      named as (
        insert into term (text, created_at, updated_at)
        select n::text, now(), now() from generate_series(${from}::int, ${to}::int) as n returning id, text)
      insert into definition_term (definition_id, term_id)
      select means.id, named.id from means join named on means.text::int / 2 = named.text::int / 2`);
  await db.execute(sql`truncate term, definition cascade`);
  await insert(0, 1);
  await db.execute(sql`analyze term, definition, definition_term`);
  await insert(2, 3001);
  const asked = noteAsked(db);
  for (const path of ["/terms/?sort=-id", "/definitions/"]) {
    const { definition_ids = [], term_ids = definition_ids } = (await member.call("GET", path)).body.items[0];
    expect(term_ids).toHaveLength(2);
  }
  const reading = asked.filter(({ text }) => text.includes('from "definition_term"'));
  expect(reading).toHaveLength(2);
  for (const one of reading) expect(await rowsRead(db, one)).toBeLessThan(10_000);
});
