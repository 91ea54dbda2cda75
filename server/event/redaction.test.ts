import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, like, sql } from "drizzle-orm";
import { attemptDelivery } from "../../core/incident/delivery/attempt.ts";
import { deliveries, splitDelivery } from "../../core/outbox/deliver.ts";
import { failWork } from "../../core/outbox/work.ts";
import { keepTasks } from "../../core/sync/document_tasks.ts";
import { auditLog, delivery, document, event, flowStep } from "../../drizzle/schema/index.ts";
import { fakeChat, fakeEditing, fakeMailing } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { replaceContent, startContent } from "../../plugins/markdown/content.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { attemptAll, claimAll, endDeliveries } from "../../tests/support/domain/delivery.ts";
import { flowEnded } from "../../tests/support/domain/flow.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { StreamClient } from "../../tests/support/http/stream.ts";
import { recordingLog } from "../../tests/support/log.ts";

const nothing = () => {};
const made = { create: () => ({}), add: nothing, send: nothing };
const plugins = pluginsOf(
  fakeChat(made, { slug: "channel" }),
  fakeEditing({ ...made, edit: nothing, withdraw: nothing }, { slug: "chat" }),
  fakeMailing({ ...made, recipients: () => ["individual-1", "individual-2"] }, { slug: "mail" }),
);

let server: TestServer;
let member: Person;
let admin: Person;
let kind: { incident_type_id: number; incident_priority_id: number };
let incidentId: number;
let path: string;
beforeAll(async () => {
  server = await startTestServer({}, plugins);
  member = await personOf(server, "rita@example.com");
  admin = await personOf(server, "root@example.com", ["admin"]);
  const ids = await insertIncident(server.db, server.clock.now());
  kind = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  incidentId = await report("Elsewhere");
});

const context = () => {
  const { db, clock, config } = server;
  return { db, clock, config, plugins, log: recordingLog().log };
};
/** Reports an incident, whose conversations are then open. */
async function report(description: string, headers?: Record<string, string>): Promise<number> {
  const body = { title: "Disk full", description, visibility: "Open", ...kind };
  const answer = await member.call("POST", "/incidents/", body, headers);
  expect(answer.http).toBe(201);
  await flowEnded(server.db, answer.body.id);
  await endDeliveries(server.db, server.clock.now());
  path = `/incidents/${answer.body.id}`;
  return answer.body.id;
}
const redact = (id: number, who = admin, headers?: Record<string, string>) =>
  who.call("POST", `${path}/events/${id}/redact`, { reason: "A password" }, headers);
const timeline = async () => (await member.call("GET", `${path}/events/?sort=id&limit=200`)).body.items;

/** The tables with a row that contains this word in any column, whatever its type. */
async function tablesWith(word: string): Promise<string[]> {
  const tables = await server.db.execute<{ name: string }>(sql`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')`);
  expect(tables.length).toBeGreaterThan(40);
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await server.db.execute(
      sql`select from ${sql.raw(name)} as one where one::text ilike ${`%${word}%`} limit 1`,
    );
    if (rows.length > 0) found.push(name);
  }
  return found;
}

/** The answers that show this word: lists, the stream, the search, the incident. */
async function answersWith(word: string): Promise<string[]> {
  const found: string[] = [];
  const paths = ["", "/events/", "/messages/", "/reports/"].map((list) => `${path}${list}`);
  for (const who of [member, admin])
    for (const one of [...paths, `/search?q=${word}`, `/incidents/?q=${word}`])
      if (
        JSON.stringify((await who.call("GET", one)).body.items ?? (await who.call("GET", one)).body).includes(
          word,
        )
      )
        found.push(one);
  const events = (await timeline()) as { id: number }[];
  for (const { id } of events)
    for (const one of ["", "/revisions/"])
      if (JSON.stringify((await admin.call("GET", `${path}/events/${id}${one}`)).body).includes(word))
        found.push(`event ${id}${one}`);
  const stream = await StreamClient.open(member, `${path}/stream`, { "last-event-id": "0" });
  for (const { id } of events) {
    const sent = await stream.data();
    expect(sent.id).toBe(id);
    if (JSON.stringify(sent).includes(word)) found.push("stream");
  }
  stream.leave();
  return found;
}

type Kind = "note" | "message" | "report";
const lists = { note: "events", message: "messages", report: "reports" };
const bodyOf = (kind: Kind, text: string) =>
  kind === "note"
    ? { description: text }
    : kind === "message"
      ? { text }
      : { conditions: text, actions: text, needs: text };
const changeOf = (kind: Kind, text: string) =>
  kind === "report" ? bodyOf(kind, text) : { description: text };

describe.each(["note", "message", "report"] as Kind[])("a redacted %s", (kind) => {
  const write = (word: string, key: string) =>
    member.call("POST", `${path}/${lists[kind]}/`, bodyOf(kind, word), { "idempotency-key": key });

  test("is in no table, list, stream or search, with its earlier texts and what was sent of it", async () => {
    const word = `zebra${kind}${incidentId}`;
    const key = crypto.randomUUID();
    const { body } = await write(`${word} one`, key);
    const id = kind === "note" ? body.id : body.event_id;
    // Chat has the message, and the mail of one of two people is sent.
    await attemptAll(context());
    await attemptAll(context(), eq(delivery.recipient, "individual-1"));
    const error = `refused: ${word}`;
    await server.db
      .update(delivery)
      .set({ error })
      .where(like(delivery.text, `%${word}%`));
    const put = async (version: number) =>
      expect(
        (
          await member.call("PUT", `${path}/events/${id}`, {
            version,
            ...changeOf(kind, `${word} ${version}`),
          })
        ).http,
      ).toBe(200);
    await put(1);
    // The edit is sent, and the next one waits.
    await attemptAll(context(), eq(delivery.pluginSlug, "chat"));
    await put(2);
    expect(await tablesWith(word)).toContain("public.event_revision");
    const answer = await redact(id);
    expect(answer).toMatchObject({
      http: 200,
      body: {
        event: { description: "Redacted", version: 4, redacted_at: server.clock.now().toISOString() },
        received_by: ["chat", "mail"],
        notice: expect.stringContaining("Backups"),
      },
    });
    expect(await tablesWith(word)).toEqual([]);
    expect(await answersWith(word)).toEqual([]);
    // What is sent from now on does not have it either.
    while ((await attemptAll(context())).length > 0);
    expect(await tablesWith(word)).toEqual([]);
    const again = await write(`${word} one`, key);
    expect(again).toMatchObject({ http: 201, body: { redacted_at: expect.any(String) } });
    expect(JSON.stringify(again.body)).not.toContain(word);
  });

  test("that was withdrawn is removed for admins, too", async () => {
    const word = `yak${kind}${incidentId}`;
    const { body } = await write(word, crypto.randomUUID());
    const id = kind === "note" ? body.id : body.event_id;
    await member.call("POST", `${path}/events/${id}/withdraw`, { version: 1 });
    expect((await redact(id)).body.received_by).toEqual([]);
    expect(await tablesWith(word)).toEqual([]);
  });
});

const note = async (description: string): Promise<number> =>
  (await member.call("POST", `${path}/events/`, { description })).body.id;

test("a redaction says who, when and why on the timeline and in the audit log, and not what", async () => {
  const id = await note("zebra");
  await redact(id);
  const at = server.clock.now();
  expect((await timeline()).at(-1)).toMatchObject({
    kind: "redacted",
    actor: "root@example.com",
    at: at.toISOString(),
    description: "Note redacted: A password",
    data: { target_id: id, target_kind: "note", reason: "A password" },
  });
  const logged = await server.db.select().from(auditLog).where(eq(auditLog.action, "event.redacted"));
  expect(logged.at(-1)).toMatchObject({
    actor: "root@example.com",
    at,
    subject: String(id),
    data: { incident_id: incidentId, kind: "note", reason: "A password" },
  });
});

test("only admins redact, once, with a reason, and what they redacted cannot be corrected", async () => {
  const id = await note("zebra");
  expect((await redact(id, member)).http).toBe(403);
  for (const reason of ["", " ", "two\nlines"])
    expect(await admin.call("POST", `${path}/events/${id}/redact`, { reason })).toMatchObject({
      http: 400,
      body: { field: "reason" },
    });
  const key = { "idempotency-key": `redact-${id}` };
  const first = await redact(id, admin, key);
  expect(await redact(id, admin, key)).toMatchObject({ http: 200, body: first.body });
  const refused = { http: 409, body: { detail: expect.stringContaining("was redacted") } };
  expect(await redact(id)).toMatchObject(refused);
  for (const version of [1, 2]) {
    const correction = { version, description: "yak" };
    expect(await member.call("PUT", `${path}/events/${id}`, correction)).toMatchObject(refused);
  }
});

test("documents that have the text are looked for after the redaction, while others write", async () => {
  const id = await note("zebra");
  const { redacting, written } = await server.db.transaction(async (tx) => {
    await tx.execute(sql`lock table document_content`);
    const redacting = redact(id, admin, { "idempotency-key": crypto.randomUUID() });
    await somebodyWaits(server.db);
    return { redacting, written: await note("yak") };
  });
  expect((await redacting).body.cited_by).toEqual([]);
  expect((await timeline()).slice(-2)).toMatchObject([{ kind: "redacted" }, { id: written }]);
});

test("a message that is being sent counts as received, and is sent again without its text", async () => {
  const id = await note("zebra is here");
  const [claim] = await claimAll(context(), eq(delivery.pluginSlug, "mail"));
  expect((await redact(id)).body.received_by).toEqual(["mail"]);
  expect(await attemptDelivery(context(), claim!)).toBe("split");
  expect(await tablesWith("zebra is here")).toEqual([]);
});

test("the error of an attempt that ends after the redaction is not stored, because it may have the text", async () => {
  const id = await note("zebra is here");
  const [claim] = await claimAll(context(), eq(delivery.pluginSlug, "chat"));
  await redact(id);
  await failWork(server.db, deliveries, claim!, server.clock.now(), { reason: "refused: zebra is here" });
  expect(await tablesWith("zebra is here")).toEqual([]);
  const [row] = await server.db.select().from(delivery).where(eq(delivery.key, claim!.key));
  expect(row!.error).toBe("It failed while its text was changed");
});

test("an earlier description and resolution are removed from the event that has them, and from messages", async () => {
  const key = { "idempotency-key": crypto.randomUUID() };
  incidentId = await report("lemur *description*", key);
  const put = async (change: object) => {
    const { body } = await member.call("GET", path);
    expect((await member.call("PUT", path, { ...body, ...change })).http).toBe(200);
  };
  await put({ status: "Closed", resolution: "lemur *resolution*" });
  await attemptAll(context());
  const error = "refused: lemur *description*";
  for (const table of [delivery, flowStep])
    await server.db.update(table).set({ error }).where(eq(table.incidentId, incidentId));
  const failed = { at: server.clock.now(), actor: "worker", source: "core", kind: "step.failed" };
  await server.db.insert(event).values({ ...failed, incidentId, description: error });
  await put({ description: "Yak", resolution: "Yak" });
  const [changed] = (await timeline()).filter(({ data }: { data: object }) =>
    JSON.stringify(data).includes("lemur"),
  );
  const { http, body } = await redact(changed.id);
  expect([http, body.received_by]).toEqual([200, ["chat", "mail"]]);
  expect(body.event.data).toMatchObject({
    description: { from: "Redacted" },
    resolution: { from: "Redacted" },
  });
  expect(await tablesWith("lemur")).toEqual([]);
  expect(await answersWith("lemur")).toEqual([]);
});

test("a message that is being split when its earlier text is redacted has it for no recipient", async () => {
  const put = async (change: object) => {
    const { body } = await member.call("GET", path);
    expect((await member.call("PUT", path, { ...body, ...change })).http).toBe(200);
  };
  await put({ status: "Closed", resolution: "lemur" });
  const [claim] = await claimAll(context(), eq(delivery.pluginSlug, "mail"));
  await put({ resolution: "yak" });
  const [changed] = (await timeline()).filter(({ data }: { data: object }) =>
    JSON.stringify(data).includes("lemur"),
  );
  const { redacting } = await server.db.transaction(async (tx) => {
    await splitDelivery({ ...context(), db: tx as unknown as typeof server.db }, claim!, ["individual-1"]);
    const redacting = redact(changed.id);
    await somebodyWaits(server.db);
    return { redacting };
  });
  expect((await redacting).http).toBe(200);
  expect(await tablesWith("lemur")).toEqual([]);
});

describe("the text of a document", () => {
  let documentId: number;
  const word = () => `okapi${documentId}`;
  const put = (text: string, version: string) =>
    replaceContent(context(), { documentId, text, version, author: "carol@example.com" });
  const redactText = (body: object, who = admin) =>
    who.call("POST", `/documents/${documentId}/redact`, { reason: "A password", ...body });
  const textOf = async (version: string) =>
    (await admin.call("GET", `/documents/${documentId}/versions/${version}`)).body.text;
  beforeEach(async () => {
    const at = server.clock.now();
    const named = { name: "Notes", resourceType: "reference", incidentId };
    const [row] = await server.db
      .insert(document)
      .values({ ...named, pluginSlug: "markdown", createdAt: at, updatedAt: at })
      .returning();
    documentId = row!.id;
    await startContent(context(), { documentId, text: `${word()} one` });
    expect(await put(`${word()} two`, "1")).toBe(2);
  });

  test("is removed with all its versions, and whoever edits it gets a conflict", async () => {
    expect(await tablesWith(word())).toEqual([
      "public.document",
      "public.document_content",
      "public.document_version",
    ]);
    const answer = await redactText({});
    expect(answer).toMatchObject({ http: 200, body: { version: "3", texts: 2 } });
    expect(answer.body.notice).toContain("Backups");
    expect(await tablesWith(word())).toEqual([]);
    expect(await answersWith(word())).toEqual([]);
    await expect(replaceContent(context(), { documentId, text: "zebra", version: "2" })).rejects.toThrow(
      "changed",
    );
    expect(await put("zebra", "3")).toBe(4);
    expect(await Promise.all(["1", "2", "3"].map(textOf))).toEqual(["Redacted", "Redacted", "Redacted"]);
  });

  test("does not come back by tasks that were read before", async () => {
    const [row] = await server.db.select().from(document).where(eq(document.id, documentId));
    const place = { ...row!, incidentId, pluginSlug: "markdown" };
    const keep = () =>
      server.db.transaction((tx) => keepTasks(tx, place, { found: [], cursor: "2", clock: server.clock }));
    await redactText({});
    expect(await keep()).toBeUndefined();
  });

  test("loses one earlier version, and keeps the others", async () => {
    expect(await put("three", "2")).toBe(3);
    expect(await redactText({ version: "3" })).toMatchObject({
      http: 409,
      body: { detail: expect.stringContaining("current text") },
    });
    expect(await redactText({ version: "9" })).toMatchObject({ http: 404 });
    expect(await redactText({ version: "2" })).toMatchObject({ http: 200, body: { version: "3", texts: 1 } });
    const texts = [`${word()} one`, "Redacted", "three"];
    expect(await Promise.all(["1", "2", "3"].map(textOf))).toEqual(texts);
    expect(await redactText({ version: "2" })).toMatchObject({ http: 409 });
  });

  test("is redacted by admins only, who say why on the timeline and in the audit log", async () => {
    expect((await redactText({}, member)).http).toBe(403);
    expect((await redactText({ reason: " " })).http).toBe(400);
    await redactText({});
    const data = { document_id: documentId, reason: "A password" };
    expect((await timeline()).at(-1)).toMatchObject({
      kind: "document.redacted",
      actor: "root@example.com",
      description: "Text of a document redacted: Notes: A password",
      data,
    });
    const logged = await server.db.select().from(auditLog).where(eq(auditLog.action, "document.redacted"));
    expect(logged.at(-1)).toMatchObject({ actor: "root@example.com", subject: String(documentId), data });
    expect(await redactText({})).toMatchObject({ http: 409 });
  });
});

test("an event without a text is not redacted", async () => {
  const [reported] = await timeline();
  expect(await redact(reported.id)).toMatchObject({ http: 400, body: { field: "event_id" } });
});
