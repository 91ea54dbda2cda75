import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import type { ActivePlugin } from "../../core/plugin/call.ts";
import { document, documentContent, event, incident, participant } from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let ids: IncidentIds;
const people = {} as Record<"nobody" | "member" | "former" | "participant" | "admin", Person>;

beforeAll(async () => {
  server = await startTestServer({ pluginDocument: "markdown" });
  ids = await insertIncident(server.db, server.clock.now());
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, ids.incidentId));
  await server.db
    .update(participant)
    .set({ leftAt: server.clock.now() })
    .where(eq(participant.individualId, ids.bob));
  people.nobody = await personOf(server);
  people.member = await personOf(server, "carol@example.com", ["oncall"]);
  people.former = await personOf(server, "bob@example.com");
  people.participant = await personOf(server, "alice@example.com");
  people.admin = await personOf(server, "root@example.com", ["admin"]);
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

const put = (id: number, text: string, version: string | null) =>
  people.member.call("PUT", `/documents/${id}/content`, { text, version });
const rowOf = async (id: number) => (await server.db.select().from(document).where(eq(document.id, id)))[0]!;

describe("a document without a text", () => {
  test("is shown without one, and gets one from the first document plugin", async () => {
    const id = await newDocument();
    expect(await people.member.call("GET", `/documents/${id}/content`)).toMatchObject({ http: 409 });
    expect(await put(id, "# Hello", "1")).toMatchObject({ http: 409 });
    expect(await put(id, "# Hello", null)).toMatchObject({
      http: 200,
      body: { text: "# Hello", version: "2" },
    });
    expect((await people.member.call("GET", `/documents/${id}/content`)).body).toEqual({
      text: "# Hello",
      version: "2",
    });
    // What the document shows has changed, so its version must.
    expect(await rowOf(id)).toMatchObject({ pluginSlug: "markdown", resourceId: String(id), version: 2 });
  });

  test("gets it from one of twenty concurrent requests", async () => {
    const id = await newDocument();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => put(id, `text ${i}`, null)));
    const won = answers.filter(({ http }) => http === 200);
    expect(answers.every(({ http }) => http === 200 || http === 409)).toBe(true);
    expect(won).toHaveLength(1);
    expect((await people.member.call("GET", `/documents/${id}/content`)).body.text).toBe(won[0]!.body.text);
  });

  test("stays without one if no plugin stores documents", async () => {
    const id = await newDocument();
    const another = await server.another({ pluginDocument: "none" });
    const member = await personOf(another, "carol@example.com");
    expect(await member.call("PUT", `/documents/${id}/content`, { text: "a", version: null })).toMatchObject({
      http: 409,
      body: { detail: expect.stringContaining("no document plugin is enabled") },
    });
    await another[Symbol.asyncDispose]();
  });
});

describe("PUT", () => {
  test("replaces the text at its version; of twenty concurrent requests, one succeeds", async () => {
    const id = await newDocument();
    await put(id, "one", null);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => put(id, `text ${i}`, "2")));
    expect(answers.filter(({ http }) => http === 200)).toHaveLength(1);
    expect(answers.filter(({ http }) => http === 409)).toHaveLength(19);
    const late = await put(id, "late", "2");
    expect(late).toMatchObject({
      http: 409,
      body: { detail: expect.stringContaining("it is now at version 3") },
    });
  });

  test("conflicts without the version of an existing text, or with one that is not a number", async () => {
    const id = await newDocument();
    await put(id, "one", null);
    for (const version of [null, "", "x", "2.0", "1e0", "99999999999999999999"]) {
      expect(await put(id, "two", version)).toMatchObject({ http: 409 });
    }
  });

  test("marks the document for the next search for terms", async () => {
    const id = await newDocument();
    await put(id, "data loss", null);
    const hash = new Bun.CryptoHasher("sha256").update("data loss").digest();
    expect((await rowOf(id)).contentHash).toEqual(new Uint8Array(hash));
  });

  test("appears on the incident's timeline", async () => {
    const path = `/documents/${ids.documentId}/content`;
    const { body } = await people.participant.call("GET", path);
    expect(body).toEqual({ text: "# Notes\n\n- [ ] Free some @alice", version: "1" });
    expect(await people.participant.call("PUT", path, { ...body, text: "" })).toMatchObject({ http: 200 });
    const told = await server.db
      .select()
      .from(event)
      .where(and(eq(event.incidentId, ids.incidentId), eq(event.kind, "document.updated")));
    expect(told).toMatchObject([{ actor: "alice@example.com", data: { document_id: ids.documentId } }]);
  });

  test.each([
    ["no version", { text: "a" }],
    ["no text", { version: null }],
    ["a number for a version", { text: "a", version: 1 }],
    ["a long version", { text: "a", version: "1".repeat(201) }],
    ["NUL", { text: "a\0b", version: null }],
    ["half a pair", '{"text": "\\ud800", "version": null}'],
    ["an unknown field", { text: "a", version: null, name: "b" }],
  ])("is refused with %s", async (_, body) => {
    const id = await newDocument();
    expect(await people.member.call("PUT", `/documents/${id}/content`, body)).toMatchObject({ http: 400 });
    expect((await rowOf(id)).pluginSlug).toBeNull();
  });
});

test("a document never shows another's text, whatever its resource id", async () => {
  const id = await newDocument({ pluginSlug: "markdown", resourceId: `${ids.documentId}0` });
  expect(await people.member.call("GET", `/documents/${id}/content`)).toMatchObject({
    http: 404,
    body: { detail: "The text of this document is gone" },
  });
});

describe("a plugin that", () => {
  const withPlugin = async (methods: ActivePlugin["methods"], slug = "markdown") => {
    const plugin = {
      slug,
      title: "",
      type: "document",
      methods,
      secrets: [],
      timeoutMilliseconds: 1000,
    } as const;
    const plugins = {
      ofType: () => [plugin],
      find: (_: string, of: string) => (of === slug ? plugin : undefined),
    };
    const other = await startTestServer({}, plugins as never);
    const at = other.clock.now();
    const values = {
      name: "n",
      resourceType: "r",
      pluginSlug: "markdown",
      resourceId: "7",
      createdAt: at,
      updatedAt: at,
    };
    const [row] = await other.db.insert(document).values(values).returning();
    const person = await personOf(other, "carol@example.com");
    const path = `/documents/${row!.id}/content`;
    const answers = [
      await person.call("GET", path),
      await person.call("PUT", path, { text: "a", version: null }),
    ];
    expect(await other.db.select().from(documentContent)).toEqual([]);
    await other[Symbol.asyncDispose]();
    return answers;
  };
  const fail = () => {
    throw Object.assign(new Error("hunter2"), { detail: "the wiki answers 500" });
  };

  test("fails causes 503 with its message", async () => {
    for (const { http, body } of await withPlugin({ text: fail, get: () => ({ name: "n" }), update: fail })) {
      expect([http, body.detail]).toEqual([503, "markdown failed: the wiki answers 500"]);
    }
  });

  test("has no versions overwrites the text", async () => {
    const texts: unknown[] = [];
    const [got, set] = await withPlugin({
      text: () => ({ text: "old" }),
      get: () => ({ name: "n" }),
      update: (call) => {
        texts.push((call as { text: string }).text);
        return {};
      },
    });
    expect([got!.body, set!.body, texts]).toEqual([
      { text: "old", version: null },
      { text: "a", version: null },
      ["a"],
    ]);
  });

  test("no longer has the text causes 404", async () => {
    const gone = () => null;
    for (const { http } of await withPlugin({ text: gone, get: gone, update: fail })) expect(http).toBe(404);
  });

  test("is not in use causes 503", async () => {
    for (const { http, body } of await withPlugin({}, "other")) {
      expect([http, body.detail]).toEqual([503, expect.stringContaining("not enabled")]);
    }
  });
});
