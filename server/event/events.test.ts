import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { recordEvent } from "../../core/incident/timeline/event.ts";
import { document, incident } from "../../drizzle/schema/index.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import {
  type EmptyIncident,
  uncorrected,
  useEmptyIncident,
} from "../../tests/support/http/empty_incident.ts";
import { itemsOf } from "../../tests/support/http/pages.ts";
import { insertEmptyIncident, timelineOf } from "../../tests/support/http/participants.ts";

let { server, member, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("events", (given) => {
  ({ server, member, incidentId, path } = given);
});

const note = (description: unknown, headers?: Record<string, string>) =>
  member.call("POST", `${path}/`, { description }, headers);
const descriptions = async (query: string) => {
  const events = await itemsOf(member, `${path}/?limit=2${query}`);
  return events.map(({ description }) => description).join("");
};

test("POST adds a note to the timeline and answers 201 with it", async () => {
  const { http, body } = await note("The disk is full.\nAgain.");
  expect(http).toBe(201);
  expect(body).toEqual({
    id: expect.any(Number),
    at: server.clock.now().toISOString(),
    data: {},
    actor: "carol@example.com",
    source: "core",
    kind: "note",
    description: "The disk is full.\nAgain.",
    ...uncorrected,
  });
  expect((await member.call("GET", `${path}/`)).body).toEqual({ items: [body], next_cursor: null });
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
  expect(body.items).toMatchObject([{ actor: "worker", source: "incident-cost", data: told.data }]);
});

test.each([
  ["kind", "a\0b"],
  ["kind", "a".repeat(501)],
  ["sort", "description"],
  ["after", "00"],
  ["after", "-1"],
  ["after", "1e3"],
  ["sort", "-kind"],
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
])("POST refuses %p, naming the field but not the value", async (description, field) => {
  const answer = await note(description);
  expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input" } });
  expect(answer.body.field).toBe(field);
  expect(JSON.stringify(answer.body)).not.toContain("zebra");
  expect(await timelineOf(server.db, incidentId)).toEqual([]);
});

test("the kind and author of a note cannot be chosen", async () => {
  for (const more of [{ kind: "incident.closed" }, { actor: "bob" }, { data: {} }])
    expect((await member.call("POST", `${path}/`, { description: "a", ...more })).http).toBe(400);
});

test("an old event does not name documents that are deleted or belong to another incident", async () => {
  const { db } = server;
  const [kind] = await db.select().from(incident).where(eq(incident.id, incidentId));
  const other = await insertEmptyIncident(db, kind!, server.clock.now(), "Restricted");
  const propose = async (name: string, of: number | null, gone = false) => {
    const id = await insertRow(db, document, { name, resourceType: "reference", incidentId: of });
    await recordEvent(db, {
      incidentId,
      at: server.clock.now(),
      actor: "system",
      source: "resolver",
      kind: "document.proposed",
      description: `Document proposed: ${name}`,
      data: { document_id: id },
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

describe("a backdated note", () => {
  const noted = (at: unknown) => member.call("POST", `${path}/`, { description: "Seen", at });
  const day = 86_400_000;
  const earlier = (milliseconds: number) =>
    new Date(server.clock.now().getTime() - milliseconds).toISOString();

  test("is listed at its time, and says when it was written", async () => {
    server.clock.advance(60);
    await note("Now");
    const { http, body } = await noted(earlier(30_000));
    expect(http).toBe(201);
    expect(body).toMatchObject({
      at: earlier(30_000),
      kind: "note",
      actor: "carol@example.com",
      data: { noted_at: server.clock.now().toISOString() },
    });
    expect(await descriptions("&sort=at")).toBe("SeenNow");
    expect(await descriptions("&sort=id")).toBe("NowSeen");
  });

  test("of this moment is an ordinary one", async () => {
    expect(await noted(server.clock.now().toISOString())).toMatchObject({ http: 201, body: { data: {} } });
  });

  test("takes a time in another zone", async () => {
    const { body } = await noted("2026-11-20T01:00:00+05:30");
    expect(body.at).toBe("2026-11-19T19:30:00.000Z");
  });

  test("may be up to 30 days older than the report, and not in the future", async () => {
    const [{ reportedAt }] = (await server.db.select().from(incident).where(eq(incident.id, incidentId))) as [
      typeof incident.$inferSelect,
    ];
    const bound = reportedAt.getTime() - 30 * day;
    expect((await noted(new Date(bound).toISOString())).http).toBe(201);
    const refused = { http: 400, body: { code: "invalid_input", field: "at" } };
    expect(await noted(new Date(bound - 1).toISOString())).toMatchObject(refused);
    expect(await noted(earlier(-1))).toMatchObject(refused);
    expect(await timelineOf(server.db, incidentId)).toHaveLength(1);
  });

  test.each(["", "yesterday", "2026-02-30T00:00:00Z", "2026-11-20", 1, null, "9".repeat(50)])(
    "refuses the time %p",
    async (at) => {
      expect(await noted(at)).toMatchObject({ http: 400, body: { field: "at" } });
      expect(await timelineOf(server.db, incidentId)).toEqual([]);
    },
  );

  test("of a hidden incident does not tell its time", async () => {
    const [kind] = await server.db.select().from(incident).where(eq(incident.id, incidentId));
    const hidden = await insertEmptyIncident(server.db, kind!, server.clock.now(), "Restricted");
    const body = { description: "Seen", at: earlier(40 * day) };
    expect((await member.call("POST", `/incidents/${hidden}/events/`, body)).http).toBe(404);
  });
});

test("a reader shows the newest events, and goes on after the last id, whatever the times are", async () => {
  for (const description of "abcd") await note(description);
  const newest = await member.call("GET", `${path}/?sort=-id&limit=2`);
  expect(newest.body.items.map(({ description }: { description: string }) => description)).toEqual([
    "d",
    "c",
  ]);
  const last: number = newest.body.items[0].id;
  expect((await member.call("GET", `${path}/?after=${last}`)).body.items).toEqual([]);
  const at = new Date(server.clock.now().getTime() - 3600_000).toISOString();
  await member.call("POST", `${path}/`, { description: "e", at });
  for (const description of "fgh") await note(description);
  expect(await descriptions(`&after=${last}`)).toBe("efgh");
  expect(await descriptions(`&after=${last}&sort=-id`)).toBe("hgfe");
  expect(await descriptions(`&after=${last}&sort=at`)).toBe("efgh");
  expect(await descriptions(`&after=${last}&kind=reminder.sent`)).toBe("");
  expect(await descriptions("&after=999999999999999")).toBe("");
  expect(await descriptions("&after=0")).toBe(await descriptions("&sort=id"));
});

test("a cursor belongs to its `after`", async () => {
  for (const description of "abc") await note(description);
  const { body } = await member.call("GET", `${path}/?after=1&limit=1`);
  const query = `limit=1&cursor=${body.next_cursor}`;
  expect((await member.call("GET", `${path}/?after=1&${query}`)).http).toBe(200);
  expect((await member.call("GET", `${path}/?after=2&${query}`)).http).toBe(400);
});
