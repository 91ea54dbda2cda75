import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { document, documentContent, documentVersion, event } from "../../drizzle/schema/index.ts";
import { keptVersions } from "../../plugins/markdown/content.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let ids: IncidentIds;
let carol: Person;
let dave: Person;
beforeAll(async () => {
  server = await startTestServer({ pluginDocument: "markdown" });
  ids = await insertIncident(server.db, server.clock.now());
  carol = await personOf(server, "carol@example.com");
  dave = await personOf(server, "dave@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

async function newDocument(values: Partial<typeof document.$inferInsert> = {}): Promise<number> {
  const at = server.clock.now();
  const [row] = await server.db
    .insert(document)
    .values({ name: "Runbook", resourceType: "reference", createdAt: at, updatedAt: at, ...values })
    .returning();
  return row!.id;
}

async function put(id: number, text: string, version: string | null, by = carol): Promise<string> {
  const { http, body } = await by.call("PUT", `/documents/${id}/content`, { text, version });
  expect(http).toBe(200);
  return body.version;
}

const list = (id: number, query = "") => carol.call("GET", `/documents/${id}/versions/${query}`);
const get = (id: number, version: number | string) =>
  carol.call("GET", `/documents/${id}/versions/${version}`);

describe("the versions of a text", () => {
  test("say who wrote each of them and when, newest first, and keep every text", async () => {
    const id = await newDocument({ incidentId: ids.incidentId });
    const written = [server.clock.now().toISOString()];
    await put(id, "one", null);
    for (const [text, version, by] of [
      ["two", "2", dave],
      ["three", "3", carol],
    ] as const) {
      server.clock.advance(60);
      written.push(server.clock.now().toISOString());
      await put(id, text, version, by);
    }
    const [first, second, third] = written;
    expect((await list(id)).body).toEqual({
      items: [
        { version: "4", author: "carol@example.com", at: third, redacted: false },
        { version: "3", author: "dave@example.com", at: second, redacted: false },
        { version: "2", author: "carol@example.com", at: first, redacted: false },
        // Empty: the plugin creates a text before it is written.
        { version: "1", author: "carol@example.com", at: first, redacted: false },
      ],
      next_cursor: null,
    });
    expect((await get(id, 3)).body).toEqual({
      version: "3",
      author: "dave@example.com",
      at: second,
      redacted: false,
      text: "two",
    });
    expect((await get(id, 4)).body.text).toBe("three");
    const events = await server.db.select().from(event).where(eq(event.incidentId, ids.incidentId));
    const versions = events.flatMap(({ kind, data }) => (kind === "document.updated" ? [data.version] : []));
    expect(versions).toEqual(["2", "3", "4"]);
  });

  test("are restored by an ordinary PUT", async () => {
    const id = await newDocument();
    await put(id, "right", null);
    const version = await put(id, "wrong", "2");
    await put(id, (await get(id, 2)).body.text, version);
    expect((await carol.call("GET", `/documents/${id}/content`)).body).toEqual({
      text: "right",
      version: "4",
    });
    expect((await get(id, 3)).body.text).toBe("wrong");
  });

  test("do not grow by a refused change", async () => {
    const id = await newDocument();
    await put(id, "one", null);
    const before = (await list(id)).body;
    const refused = await dave.call("PUT", `/documents/${id}/content`, { text: "two", version: "1" });
    expect(refused.http).toBe(409);
    expect((await list(id)).body).toEqual(before);
  });

  test("begin with the text that a release without versions wrote", async () => {
    const id = await newDocument({ pluginSlug: "markdown", resourceId: crypto.randomUUID() });
    const at = server.clock.now();
    await server.db
      .insert(documentContent)
      .values({ documentId: id, content: "old", hash: Buffer.alloc(32), version: 7, updatedAt: at });
    const old = { version: "7", author: null, at: at.toISOString(), redacted: false };
    expect((await list(id)).body.items).toEqual([old]);
    expect((await get(id, 7)).body).toEqual({ ...old, text: "old" });
    server.clock.advance(60);
    await put(id, "new", "7");
    expect((await list(id)).body.items).toMatchObject([{ version: "8", author: "carol@example.com" }, old]);
    expect((await get(id, 7)).body).toEqual({ ...old, text: "old" });
  });

  test("are the newest thousand, and paged", async () => {
    const id = await newDocument();
    await put(id, "first", null);
    await server.db.execute(sql`
      insert into document_version (document_id, version, content, author, at)
      select ${id}, n, 'text ' || n, 'dave@example.com', now() from generate_series(3, ${keptVersions + 1}) n`);
    await server.db
      .update(documentContent)
      .set({ version: keptVersions + 1 })
      .where(eq(documentContent.documentId, id));
    await put(id, "last", String(keptVersions + 1));
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { body } = await list(id, `?limit=200${cursor && `&cursor=${cursor}`}`);
      seen.push(...body.items.map(({ version }: { version: string }) => version));
      cursor = body.next_cursor;
    }
    expect(seen).toEqual(Array.from({ length: keptVersions }, (_, at) => String(keptVersions + 2 - at)));
    expect((await get(id, 2)).http).toBe(404);
    expect((await list(id, "?sort=version&limit=1")).body.items).toMatchObject([{ version: "3" }]);
  });

  test("are deleted with their document", async () => {
    const id = await newDocument();
    await put(id, "one", null);
    await server.db.delete(document).where(eq(document.id, id));
    const rows = server.db.select().from(documentVersion).where(eq(documentVersion.documentId, id));
    expect(await rows).toEqual([]);
  });
});

describe("404", () => {
  test("for a version that does not exist", async () => {
    const id = await newDocument();
    await put(id, "one", null);
    for (const version of [3, 999_999_999_999_999])
      expect(await get(id, version)).toMatchObject({
        http: 404,
        body: { detail: `Version ${version} of this text is not kept` },
      });
    expect((await get(id, "0")).http).toBe(400);
  });

  test("says why svc keeps no versions", async () => {
    const id = await newDocument();
    const elsewhere = await newDocument({ pluginSlug: "wiki", resourceId: "1" });
    for (const [id_, detail] of [
      [id, "This document has no text, and therefore no versions"],
      [elsewhere, "svc keeps no versions of this document: its text is stored by the plugin wiki"],
    ] as const) {
      expect(await list(id_)).toMatchObject({ http: 404, body: { detail } });
      expect(await get(id_, 1)).toMatchObject({ http: 404, body: { detail } });
    }
  });
});
