import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import * as schema from "../../drizzle/schema/index.ts";
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

const source = "glossary";
const of = () => ({ source, externalId: String(++n) });

describe("a record of a source", () => {
  test("shows its source, and can be listed by it", async () => {
    const id = await insertRow(server.db, schema.term, { text: "leak", ...of() });
    await insertRow(server.db, schema.term, { text: "own" });
    const { body } = await member.call("GET", `/terms/${id}`);
    expect(body).toMatchObject({ source, external_id: String(n) });
    expect((await member.call("GET", `/terms/?source=${source}`)).body.items).toEqual([body]);
  });

  test.each([
    [
      "/definitions/",
      () => insertRow(server.db, schema.definition, { text: "What it means", ...of() }),
      { text: "What it means", term_ids: [] },
    ],
    [
      "/applications/",
      () => insertRow(server.db, schema.application, { name: "Shop", ...of() }),
      { name: "Shop", description: "", uri: null },
    ],
  ] as const)("%s is changed there and not here", async (path, insert, same) => {
    const id = await insert();
    const before = (await member.call("GET", `${path}${id}`)).body;
    const answer = await admin.call("PUT", `${path}${id}`, { ...same, version: 1 });
    expect(answer).toMatchObject({ http: 409, body: { code: "conflict" } });
    expect(answer.body.detail).toEndWith(` comes from ${source}: change it there`);
    const late = await admin.call("PUT", `${path}${id}`, { ...same, version: 2 });
    expect(late.body.detail).toContain("version 1");
    expect((await member.call("GET", `${path}${id}`)).body).toEqual(before);
    expect((await member.call("GET", `${path}?source=${source}`)).body.items).toEqual([before]);
  });

  test("/terms/: whether it is discoverable is set here, its text in the source", async () => {
    const id = await insertRow(server.db, schema.term, { text: "export", ...of() });
    const put = (text: string, version: number) =>
      member.call("PUT", `/terms/${id}`, { text, discoverable: false, version });
    expect(await put("Export", 1)).toMatchObject({
      http: 409,
      body: { detail: `This term comes from ${source}: change it there` },
    });
    expect(await put("export", 1)).toMatchObject({ http: 200, body: { discoverable: false, version: 2 } });
  });

  test("may have the same name as one that a user created", async () => {
    await insertRow(server.db, schema.term, { text: "twice", ...of() });
    const post = () => member.call("POST", "/terms/", { text: "twice" });
    expect([(await post()).http, (await post()).http]).toEqual([201, 409]);
  });
});

describe("a tombstone", () => {
  const deletedAt = new Date("2026-11-20T12:00:00Z");
  test.each([
    [
      "/terms/",
      () => insertRow(server.db, schema.term, { text: "ghost", deletedAt, ...of() }),
      { text: "ghost", discoverable: true },
    ],
    [
      "/applications/",
      () => insertRow(server.db, schema.application, { name: "ghost", deletedAt, ...of() }),
      { name: "ghost", description: "", uri: null },
    ],
  ] as const)("%s answers as for a missing record", async (path, insert, whole) => {
    const id = await insert();
    for (const [method, body] of [["GET"], ["PUT", { ...whole, version: 1 }], ["DELETE"]] as const) {
      const hidden = await admin.call(method, `${path}${id}`, body);
      const nothing = await admin.call(method, `${path}999999`, body);
      expect(hidden.http).toBe(404);
      expect({ ...hidden.body, request_id: "" }).toEqual({ ...nothing.body, request_id: "" });
    }
    for (const query of ["", "?q=ghost", `?source=${source}`]) {
      const { items } = (await admin.call("GET", path + query)).body as { items: { id: number }[] };
      expect(items.map((item) => item.id)).not.toContain(id);
    }
    // Nobody could see why the name would be taken.
    expect((await member.call("POST", path, whole)).http).toBe(201);
  });
});

describe("a term", () => {
  const document = () => insertRow(server.db, schema.document, { name: "A", resourceType: "reference" });
  const linked = async (termId: number, how: "Found" | "Given") =>
    void (await server.db
      .insert(schema.documentTerm)
      .values({ documentId: await document(), termId, source: how }));
  const links = (termId: number) =>
    server.db.select().from(schema.documentTerm).where(eq(schema.documentTerm.termId, termId));

  test("only found in documents can be deleted", async () => {
    const id = await insertRow(server.db, schema.term, { text: "noise" });
    await linked(id, "Found");
    expect((await admin.call("DELETE", `/terms/${id}`)).http).toBe(204);
    expect(await links(id)).toEqual([]);
  });

  test("added to a document by a user cannot be deleted, and its found links stay", async () => {
    const id = await insertRow(server.db, schema.term, { text: "signal" });
    await linked(id, "Found");
    await linked(id, "Given");
    expect(await admin.call("DELETE", `/terms/${id}`)).toMatchObject({
      http: 409,
      body: { detail: "This term is referred to by a document's terms" },
    });
    expect(await links(id)).toHaveLength(2);
  });

  test("shows its definitions", async () => {
    const { body: term } = await member.call("POST", "/terms/", { text: "outage" });
    const define = () => member.call("POST", "/definitions/", { text: "It is down", term_ids: [term.id] });
    const ids = [(await define()).body.id, (await define()).body.id];
    expect((await member.call("GET", `/terms/${term.id}`)).body).toEqual({ ...term, definition_ids: ids });
    expect((await member.call("GET", "/terms/?text=outage")).body.items[0].definition_ids).toEqual(ids);
  });
});
