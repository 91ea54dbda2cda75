import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { lockIncident } from "../../core/incident/incident/lock.ts";
import { conversation, conversationMessage } from "../../drizzle/schema/index.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { uncorrected } from "../../tests/support/http/empty_incident.ts";
import { itemsOf } from "../../tests/support/http/pages.ts";
import {
  insertEmptyIncident,
  insertIndividual,
  letJoin,
  noPlugins,
  timelineOf,
} from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let ids: IncidentIds;
let incidentId: number;
let path: string;
const people: Record<"alice" | "bob" | "carol" | "stranger" | "root", Person> = {} as typeof people;
beforeAll(async () => {
  server = await startTestServer({}, noPlugins);
  for (const name of ["alice", "bob", "carol", "stranger"] as const)
    people[name] = await personOf(server, `${name}@example.com`);
  people.root = await personOf(server, "root@example.com", ["admin"]);
  ids = await insertIncident(server.db, server.clock.now());
});
beforeEach(async () => {
  const at = server.clock.now();
  incidentId = await insertEmptyIncident(server.db, ids, at);
  for (const individualId of [ids.alice, ids.bob]) await letJoin(server.db, incidentId, individualId, at);
  path = `/incidents/${incidentId}/messages`;
});
afterAll(() => server[Symbol.asyncDispose]());

const say = (who: keyof typeof people, body: object) => people[who].call("POST", `${path}/`, body);
const heard = async (who: keyof typeof people): Promise<string> => {
  const { http, body } = await people[who].call("GET", `${path}/`);
  expect(http).toBe(200);
  return body.items.map(({ text }: { text: string }) => text).join(" ");
};
const rows = async () => {
  const [channel] = await server.db
    .select()
    .from(conversation)
    .where(eq(conversation.incidentId, incidentId));
  return server.db
    .select()
    .from(conversationMessage)
    .where(eq(conversationMessage.conversationId, channel!.id))
    .orderBy(conversationMessage.id);
};

describe("POST", () => {
  test("answers 201 with the message, which everybody can read, also on the timeline", async () => {
    const { http, body } = await say("carol", { text: "Disk full?\nAgain?" });
    expect(http).toBe(201);
    expect(body).toEqual({
      id: expect.any(Number),
      at: server.clock.now().toISOString(),
      text: "Disk full?\nAgain?",
      author: { id: expect.any(Number), name: "carol", email: "carol@example.com" },
      recipient: null,
      event_id: expect.any(Number),
      ...uncorrected,
    });
    for (const who of ["alice", "carol", "stranger", "root"] as const)
      expect((await people[who].call("GET", `${path}/`)).body).toEqual({ items: [body], next_cursor: null });
    const timeline = await people.stranger.call("GET", `/incidents/${incidentId}/events/?limit=1`);
    expect(timeline.body.items).toEqual([
      {
        id: expect.any(Number),
        at: body.at,
        actor: "carol@example.com",
        source: "core",
        kind: "message.sent",
        description: "Disk full?\nAgain?",
        data: { message_id: body.id },
        ...uncorrected,
      },
    ]);
  });

  test("to one person can be read by them and the author only, not even by an admin", async () => {
    const { http, body } = await say("carol", { text: "secret", recipient_id: ids.alice });
    expect(http).toBe(201);
    expect(body.recipient).toEqual({ id: ids.alice, name: "alice", email: "alice@example.com" });
    await say("carol", { text: "public", recipient_id: null });
    expect(await heard("alice")).toBe("public secret");
    expect(await heard("carol")).toBe("public secret");
    for (const who of ["bob", "stranger", "root"] as const) expect(await heard(who)).toBe("public");
    const said = (await timelineOf(server.db, incidentId)).filter(({ kind }) => kind === "message.sent");
    expect(said.map(({ data }) => data.message_id)).not.toContain(body.id);
    expect(said).toHaveLength(1);
    expect((await people.alice.call("GET", `${path}/`)).body.items[1]).toEqual(body);
  });

  test("to one person does not make its author known to others", async () => {
    const dave = await personOf(server, "dave@example.com");
    const known = async () => {
      const { body } = await people.stranger.call("GET", "/individuals/?email=dave@example.com");
      return body.items.length;
    };
    expect((await dave.call("POST", `${path}/`, { text: "secret", recipient_id: ids.alice })).http).toBe(201);
    expect(await known()).toBe(0);
    expect((await dave.call("POST", `${path}/`, { text: "public" })).http).toBe(201);
    expect(await known()).toBe(1);
  });

  test("from the service to one person can be read by them only", async () => {
    const [channel] = await server.db
      .select()
      .from(conversation)
      .where(eq(conversation.incidentId, incidentId));
    const from = { conversationId: channel!.id, at: server.clock.now() };
    await server.db.insert(conversationMessage).values([
      { ...from, text: "welcome" },
      { ...from, text: "reminder", recipientId: ids.bob },
    ]);
    expect(await heard("bob")).toBe("reminder welcome");
    for (const who of ["alice", "stranger", "root"] as const) expect(await heard(who)).toBe("welcome");
    expect((await people.bob.call("GET", `${path}/`)).body.items[0].author).toBeNull();
  });

  test("accepts current participants only as recipients", async () => {
    const at = server.clock.now();
    const outsider = await insertIndividual(server.db, at);
    await letJoin(server.db, ids.incidentId, outsider, at);
    const left = await insertIndividual(server.db, at);
    const id = await letJoin(server.db, incidentId, left, at);
    await people.alice.call("POST", `/incidents/${incidentId}/participants/${id}/leave`);
    for (const recipient_id of [outsider, left, 4_711_000]) {
      expect(await say("alice", { text: "zebra", recipient_id })).toMatchObject({
        http: 400,
        body: { field: "recipient_id", detail: "No participant of the incident has this id" },
      });
    }
    expect(await rows()).toEqual([]);
  });

  test("works again in the incident's own channel once it is reopened", async () => {
    const at = server.clock.now();
    const archived = { incidentId, archivedAt: at, createdAt: at };
    await server.db.insert(conversation).values({ ...archived, pluginSlug: "webhook" });
    const of = eq(conversation.incidentId, incidentId);
    await server.db.update(conversation).set({ archivedAt: at }).where(of);
    const { incidentTypeId: incident_type_id, incidentPriorityId: incident_priority_id } = ids;
    const kind = { incident_type_id, incident_priority_id, visibility: "Open" };
    const put = async (status: string, version: number) => {
      const whole = { ...kind, title: "Slow", description: "", resolution: null, status, version };
      expect((await people.carol.call("PUT", `/incidents/${incidentId}`, whole)).http).toBe(200);
    };
    await put("Closed", 1);
    expect((await say("carol", { text: "Hello" })).http).toBe(409);
    await put("Active", 2);
    expect((await say("carol", { text: "Hello" })).http).toBe(201);
    const open = await server.db.select().from(conversation).where(of);
    expect(open.filter(({ archivedAt }) => archivedAt === null).map(({ pluginSlug }) => pluginSlug)).toEqual([
      "channel",
    ]);
  });

  test("is 409 without a channel or with an archived one, which can still be read", async () => {
    await say("alice", { text: "before" });
    const change = server.db.update(conversation);
    await change.set({ archivedAt: server.clock.now() }).where(eq(conversation.incidentId, incidentId));
    expect(await say("alice", { text: "after" })).toMatchObject({
      http: 409,
      body: { detail: "The channel of this incident is archived" },
    });
    expect(await heard("alice")).toBe("before");
    await server.db
      .update(conversation)
      .set({ pluginSlug: "webhook", archivedAt: null })
      .where(eq(conversation.incidentId, incidentId));
    expect(await say("alice", { text: "after" })).toMatchObject({
      http: 409,
      body: { detail: "This incident has no channel in svc" },
    });
    expect(await heard("alice")).toBe("");
  });

  test("waits for a concurrent archiving of the channel, and is then too late", async () => {
    let late: ReturnType<typeof say> | undefined;
    await server.db.transaction(async (tx) => {
      await lockIncident(tx, "worker", incidentId);
      late = say("alice", { text: "after" });
      await somebodyWaits(server.db);
      const archived = { archivedAt: server.clock.now() };
      await tx.update(conversation).set(archived).where(eq(conversation.incidentId, incidentId));
    });
    expect((await late)?.http).toBe(409);
    expect(await rows()).toEqual([]);
  });

  test.each([
    ["no text", {}, "text"],
    ["an empty text", { text: "" }, "text"],
    ["a text of spaces", { text: " \n " }, "text"],
    ["a long text", { text: "zebra".repeat(4001) }, "text"],
    ["NUL", { text: "zebra\0" }, "text"],
    ["half a pair", { text: "zebra\ud800" }, "text"],
    ["a recipient as text", { text: "zebra", recipient_id: "1" }, "recipient_id"],
    ["a negative recipient", { text: "zebra", recipient_id: -1 }, "recipient_id"],
    ["a huge recipient", { text: "zebra", recipient_id: 2 ** 60 }, "recipient_id"],
    ["another author", { text: "zebra", author_id: 1 }, "author_id"],
  ])("refuses %s, naming the field but not the value", async (_, body, field) => {
    const answer = await say("alice", body);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    expect(JSON.stringify(answer.body)).not.toContain("zebra");
    expect(await rows()).toEqual([]);
  });
});

test("the list is paged, and omits messages to others", async () => {
  for (const text of "abcdefg") {
    await say("bob", text < "d" ? { text } : { text, recipient_id: ids.alice });
    if (text === "b") server.clock.advance(60);
  }
  const walk = async (who: keyof typeof people, sort: string) => {
    const messages = await itemsOf(people[who], `${path}/?limit=2&sort=${sort}`);
    return messages.map(({ text }) => text).join("");
  };
  expect(await walk("alice", "-at")).toBe("gfedcba");
  expect(await walk("alice", "at")).toBe("abcdefg");
  expect(await walk("stranger", "at")).toBe("abc");
  expect(await walk("root", "-at")).toBe("cba");
});
