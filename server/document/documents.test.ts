import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { auditLog, document, event, incidentTypeTemplate, task } from "../../drizzle/schema/index.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { insertTask } from "../../tests/support/http/task.ts";

let { server, admin, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, admin, member, ids } = given);
});

const runbook = { name: "Runbook", resource_type: "reference" };
const whole = { ...runbook, description: "", weblink: null };

async function created(values: object = {}): Promise<number> {
  const { http, body } = await member.call("POST", "/documents/", { ...runbook, ...values });
  expect(http).toBe(201);
  return body.id;
}

const timeline = (incidentId: number) =>
  server.db.select().from(event).where(eq(event.incidentId, incidentId)).orderBy(event.id);

describe("POST /documents/", () => {
  test("answers 201 with the document, its Location and its version", async () => {
    const { http, body, headers } = await member.call("POST", "/documents/", {
      ...runbook,
      description: "What to do",
      weblink: "https://wiki.example.com/a b",
    });
    expect(http).toBe(201);
    const at = server.clock.now().toISOString();
    expect(body).toEqual({
      id: expect.any(Number),
      name: "Runbook",
      description: "What to do",
      resource_type: "reference",
      plugin_slug: null,
      resource_id: null,
      weblink: "https://wiki.example.com/a%20b",
      incident_id: null,
      version: 1,
      created_at: at,
      updated_at: at,
      incident_type_ids: [],
      incident_priority_ids: [],
      term_ids: [],
    });
    expect(headers.get("location")).toBe(`/documents/${body.id}`);
    expect(headers.get("etag")).toBe('"1"');
    expect(await member.call("GET", headers.get("location")!)).toMatchObject({ http: 200, body });
  });

  test("appears on its incident's timeline", async () => {
    const id = await created({ incident_id: ids.incidentId });
    expect((await timeline(ids.incidentId)).at(-1)).toMatchObject({
      actor: "carol@example.com",
      source: "core",
      kind: "document.created",
      description: "Document added: Runbook",
      data: { document_id: id },
    });
  });

  test.each([
    ["no name", { name: undefined }, "name"],
    ["an empty name", { name: " \t " }, "name"],
    ["a long name", { name: "a".repeat(501) }, "name"],
    ["a name of two lines", { name: "a\nb" }, "name"],
    ["NUL", { description: "a\0b" }, "description"],
    ["half a pair", { description: "\ud800" }, "description"],
    ["a long description", { description: "a".repeat(20_001) }, "description"],
    ["a script for a link", { weblink: "javascript:alert(1)" }, "weblink"],
    ["a file for a link", { weblink: "file:///etc/passwd" }, "weblink"],
    ["a link with a password", { weblink: "https://a:b@example.com/" }, "weblink"],
    ["a missing incident", { incident_id: 4711 }, "incident_id"],
    ["a negative incident", { incident_id: -1 }, "incident_id"],
    ["a huge incident", { incident_id: 2 ** 60 }, "incident_id"],
    ["a number as text", { incident_id: "1" }, "incident_id"],
    ["an incident as text", { incident_id: "x" }, "incident_id"],
    ["an unknown field", { incidentid: 1 }, "incidentid"],
  ])("refuses %s, naming the field but not the value", async (_, change, field) => {
    const answer = await member.call("POST", "/documents/", { ...runbook, ...change });
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    for (const value of Object.values(change)) {
      if (typeof value === "string" && value.length > 3)
        expect(JSON.stringify(answer.body)).not.toContain(value);
    }
  });

  test("accepts the longest name and description of surrogate pairs", async () => {
    const name = "😀".repeat(250);
    const id = await created({ name, description: "𝒟".repeat(10_000) });
    expect((await member.call("GET", `/documents/${id}`)).body.name).toBe(name);
  });

  test("lets only admins choose where a text is stored, and allows one document per text", async () => {
    const resource = { plugin_slug: "markdown", resource_id: "77" };
    expect(await member.call("POST", "/documents/", { ...runbook, ...resource })).toMatchObject({
      http: 403,
    });
    expect(await admin.call("POST", "/documents/", { ...runbook, ...resource })).toMatchObject({ http: 201 });
    expect(await admin.call("POST", "/documents/", { ...runbook, ...resource })).toMatchObject({
      http: 409,
      body: { code: "conflict" },
    });
    const half = await admin.call("POST", "/documents/", { ...runbook, plugin_slug: "markdown" });
    expect(half).toMatchObject({ http: 400, body: { field: "resource_id" } });
    // Two texts of the maximum length exceed the size of an index row.
    const han = (from: number) => String.fromCharCode(...Array.from({ length: 500 }, (_, i) => from + i * 7));
    const long = { plugin_slug: han(0x4e00), resource_id: han(0x4e01) };
    const refused = await admin.call("POST", "/documents/", { ...runbook, ...long });
    expect(refused).toMatchObject({ http: 400, body: { field: "plugin_slug" } });
    const longId = { ...long, plugin_slug: "a".repeat(40) };
    expect((await admin.call("POST", "/documents/", { ...runbook, ...longId })).http).toBe(201);
    const tooLong = { ...long, plugin_slug: "a".repeat(41) };
    expect((await admin.call("POST", "/documents/", { ...runbook, ...tooLong })).http).toBe(400);
  });
});

describe("PUT /documents/{document_id}", () => {
  test("replaces the given version, and increments it", async () => {
    const id = await created({ incident_id: ids.incidentId });
    const change = { ...whole, name: "Renamed", description: "New", version: 1 };
    const { http, body, headers } = await member.call("PUT", `/documents/${id}`, change);
    expect({ http, body }).toMatchObject({ http: 200, body: { ...change, version: 2 } });
    expect(headers.get("etag")).toBe('"2"');
    expect((await member.call("GET", `/documents/${id}`)).body).toEqual(body);
    expect((await timeline(ids.incidentId)).at(-1)).toMatchObject({
      kind: "document.updated",
      data: { document_id: id },
    });
  });

  test("with another version is 409 and changes neither the document nor the timeline", async () => {
    const id = await created({ incident_id: ids.incidentId });
    const before = (await timeline(ids.incidentId)).length;
    for (const version of [2, 99, 2_147_483_646]) {
      const answer = await member.call("PUT", `/documents/${id}`, { ...whole, name: "Lost", version });
      expect(answer).toMatchObject({ http: 409, body: { code: "conflict" } });
      expect(answer.body.detail).toContain("version 1");
    }
    expect((await member.call("GET", `/documents/${id}`)).body).toMatchObject({
      name: "Runbook",
      version: 1,
    });
    expect((await timeline(ids.incidentId)).length).toBe(before);
  });

  test("of twenty concurrent requests, one succeeds and the others get 409", async () => {
    const id = await created({ incident_id: ids.incidentId });
    const before = (await timeline(ids.incidentId)).length;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        member.call("PUT", `/documents/${id}`, { ...whole, name: `Name ${i}`, version: 1 }),
      ),
    );
    const https = answers.map(({ http }) => http).sort();
    expect(https).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
    const { body } = await member.call("GET", `/documents/${id}`);
    expect(body).toEqual(answers.find(({ http }) => http === 200)!.body);
    expect((await timeline(ids.incidentId)).length).toBe(before + 1);
  });

  test.each([0, -1, 1.5, "x", "1", null, 2 ** 31, 1e300])("refuses the version %p", async (version) => {
    const id = await created();
    const answer = await member.call("PUT", `/documents/${id}`, { ...whole, version });
    expect(answer).toMatchObject({ http: 400, body: { field: "version" } });
  });

  test.each(["name", "description", "resource_type", "weblink", "version"])(
    "without %s is refused, since an omitted field would be lost",
    async (field) => {
      const id = await created();
      const answer = await member.call("PUT", `/documents/${id}`, {
        ...whole,
        version: 1,
        [field]: undefined,
      });
      expect(answer).toMatchObject({ http: 400, body: { field } });
    },
  );
});

describe("DELETE /documents/{document_id}", () => {
  test("deletes it with an audit entry; a second call is 404", async () => {
    const id = await created({ incident_id: ids.incidentId });
    expect(await admin.call("DELETE", `/documents/${id}`)).toMatchObject({ http: 204, body: undefined });
    expect((await admin.call("GET", `/documents/${id}`)).http).toBe(404);
    expect((await admin.call("DELETE", `/documents/${id}`)).http).toBe(404);
    const noted = await server.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.subject, String(id)));
    expect(noted).toMatchObject([
      { actor: "root@example.com", action: "document.deleted", address: "127.0.0.1" },
    ]);
    expect((await timeline(ids.incidentId)).at(-1)).toMatchObject({
      kind: "document.deleted",
      description: "Document deleted: Runbook",
      data: { document_id: id },
    });
  });

  test("deletes the hidden tombstones of its tasks", async () => {
    const { incidentId } = ids;
    const documentId = await created({ incident_id: incidentId });
    const gone = { incidentId, documentId, externalId: "1", deletedAt: server.clock.now() };
    const taskId = await insertTask(server, gone);
    const there = await insertTask(server, { ...gone, externalId: "2", deletedAt: null });
    expect((await admin.call("DELETE", `/documents/${documentId}`)).http).toBe(409);
    expect(await server.db.select().from(task).where(eq(task.id, taskId))).toHaveLength(1);
    expect((await admin.call("DELETE", `/tasks/${there}`)).http).toBe(204);
    expect((await admin.call("DELETE", `/documents/${documentId}`)).http).toBe(204);
    expect(await server.db.select().from(task).where(eq(task.id, taskId))).toEqual([]);
  });

  test("of a referenced document is 409 and names the reference", async () => {
    const answer = await admin.call("DELETE", `/documents/${ids.documentId}`);
    expect(answer).toMatchObject({ http: 409, body: { detail: "This document is referred to by a task" } });
    const id = await created();
    await server.db
      .insert(incidentTypeTemplate)
      .values({ incidentTypeId: ids.incidentTypeId, resourceType: "incident", documentId: id });
    expect((await admin.call("DELETE", `/documents/${id}`)).body.detail).toBe(
      "This document is referred to by an incident type's templates",
    );
    const kept = await server.db.select({ id: document.id }).from(document).where(eq(document.id, id));
    expect(kept).toHaveLength(1);
    const noted = await server.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.subject, String(id)));
    expect(noted).toEqual([]);
  });
});
