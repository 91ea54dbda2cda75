import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { recordEvent } from "../../core/incident/timeline/event.ts";
import { document, incident } from "../../drizzle/schema/index.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { insertEmptyIncident, timelineOf } from "../../tests/support/http/participants.ts";

let { server, member, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("events", (given) => {
  ({ server, member, incidentId, path } = given);
});

const note = (description: unknown, headers?: Record<string, string>) =>
  member.call("POST", `${path}/`, { description }, headers);
const descriptions = async (query: string) => {
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const more: string = cursor === null ? "" : `&cursor=${cursor}`;
    const { http, body } = await member.call("GET", `${path}/?limit=2${query}${more}`);
    expect(http).toBe(200);
    seen.push(...body.items.map(({ description }: { description: string }) => description));
    cursor = body.next_cursor;
  } while (cursor);
  return seen.join("");
};

test("POST adds a note to the timeline and answers 201 with it", async () => {
  const { http, body } = await note("The disk is full.\nAgain.");
  expect(http).toBe(201);
  expect(body).toEqual({
    ...{ id: expect.any(Number), at: server.clock.now().toISOString(), data: {} },
    ...{ actor: "carol@example.com", source: "core", kind: "note" },
    description: "The disk is full.\nAgain.",
  });
  expect((await member.call("GET", `${path}/`)).body).toEqual({ items: [body], next_cursor: null });
});

test("events cannot be changed or deleted", async () => {
  const { body } = await note("a");
  for (const method of ["PUT", "PATCH", "DELETE", "GET"])
    expect((await member.call(method, `${path}/${body.id}`)).http).toBe(404);
});

test("the list is sorted by time and id, newest first, and can be filtered by kind", async () => {
  for (const description of "abc") expect((await note(description)).http).toBe(201);
  server.clock.advance(60);
  // Added late with an earlier time: another machine's clock.
  const at = new Date(server.clock.now().getTime() - 3600_000);
  const told = { incidentId, at, actor: "worker", source: "incident-cost", data: { a: { b: [1, null] } } };
  await recordEvent(server.db, { ...told, kind: "reminder.sent", description: "0" });
  expect((await note("d")).http).toBe(201);
  expect(await descriptions("")).toBe("dcba0");
  expect(await descriptions("&sort=at")).toBe("0abcd");
  expect(await descriptions("&kind=note")).toBe("dcba");
  expect(await descriptions("&kind=reminder.sent")).toBe("0");
  expect(await descriptions("&kind=Note")).toBe("");
  const { body } = await member.call("GET", `${path}/?kind=reminder.sent`);
  expect(body.items).toMatchObject([{ ...{ actor: "worker", source: "incident-cost" }, data: told.data }]);
});

test.each([
  ["kind", "a\0b"],
  ["kind", "a".repeat(501)],
  ["sort", "id"],
  ["sort", "-kind"],
  ["limit", "201"],
  ["cursor", "!!!"],
])("the list refuses %s=%p", async (field, value) => {
  const answer = await member.call("GET", `${path}/?${new URLSearchParams({ [field]: value })}`);
  expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
});

test.each([
  [undefined, "description"],
  ["", "description"],
  [" \n ", "description"],
  ["zebra".repeat(4001), "description"],
  ["zebra\0", "description"],
  ["zebra\udc00", "description"],
  [1, "description"],
  [{ toString: 1 }, undefined],
])("POST refuses %p, naming the field but not the value", async (description, field) => {
  const answer = await note(description);
  expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input" } });
  expect(answer.body.field).toBe(field);
  expect(JSON.stringify(answer.body)).not.toContain("zebra");
  expect(await timelineOf(server.db, incidentId)).toEqual([]);
});

test("the kind, time and author of a note cannot be chosen", async () => {
  for (const more of [
    { kind: "incident.closed" },
    { at: "2026-01-01T00:00:00Z" },
    { actor: "bob" },
    { data: {} },
  ])
    expect((await member.call("POST", `${path}/`, { description: "a", ...more })).http).toBe(400);
});

test.each([
  "'; drop table event; --",
  "<img src=x onerror=alert(1)>",
  "\\x00 \u202e\u0301\u{10ffff}",
  '","kind":"incident.closed',
])("%p is stored as plain text", async (text) => {
  const { http, body } = await note(text);
  expect([http, body.description, body.kind]).toEqual([201, text, "note"]);
});

test("with one Idempotency-Key, it is noted once", async () => {
  const headers = { "idempotency-key": "note-1" };
  const first = await note("once", headers);
  expect(await note("once", headers)).toMatchObject({ http: 201, body: first.body });
  expect(await descriptions("")).toBe("once");
});

test("an old event does not name documents that are deleted or belong to another incident", async () => {
  const { db } = server;
  const [kind] = await db.select().from(incident).where(eq(incident.id, incidentId));
  const other = await insertEmptyIncident(db, kind!, server.clock.now(), "Restricted");
  const propose = async (name: string, of: number | null, gone = false) => {
    const id = await insertRow(db, document, { name, resourceType: "reference", incidentId: of });
    await recordEvent(db, {
      ...{
        incidentId,
        at: server.clock.now(),
        actor: "system",
        source: "resolver",
        kind: "document.proposed",
      },
      ...{ description: `Document proposed: ${name}`, data: { document_id: id } },
    });
    if (gone) await db.delete(document).where(eq(document.id, id));
    server.clock.advance(1);
    return id;
  };
  const ids = [
    await propose("Runbook", null),
    await propose("Its own", incidentId),
    await propose("Acquisition of Initech", other),
    await propose("Layoffs", other, true),
  ];
  const { items } = (await member.call("GET", `${path}/?sort=at`)).body;
  expect(items.map(({ description }: { description: string }) => description)).toEqual([
    "Document proposed: Runbook",
    "Document proposed: Its own",
    "Document proposed: a deleted document",
    "Document proposed: a deleted document",
  ]);
  const [runbook, own] = ids;
  expect(items.map(({ data }: { data: object }) => data)).toEqual([
    { document_id: runbook },
    { document_id: own },
    {},
    {},
  ]);
});
