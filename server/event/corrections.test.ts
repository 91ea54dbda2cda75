import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { lockIncident } from "../../core/incident/incident/lock.ts";
import { incident } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { insertEmptyIncident, noPlugins } from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let ids: IncidentIds;
let incidentId: number;
let path: string;
const people: Record<"rita" | "bob" | "root", Person> = {} as typeof people;
beforeAll(async () => {
  server = await startTestServer({}, noPlugins);
  for (const name of ["rita", "bob"] as const) people[name] = await personOf(server, `${name}@example.com`);
  people.root = await personOf(server, "root@example.com", ["admin"]);
  ids = await insertIncident(server.db, server.clock.now());
});
beforeEach(async () => {
  incidentId = await insertEmptyIncident(server.db, ids, server.clock.now());
  path = `/incidents/${incidentId}`;
});
afterAll(() => server[Symbol.asyncDispose]());

type Kind = "note" | "message" | "report";
type Who = keyof typeof people;
const kinds: Kind[] = ["note", "message", "report"];
const lists: Record<Kind, string> = { note: "events", message: "messages", report: "reports" };

const textsOf = (kind: Kind, text: string): Record<string, string> =>
  kind === "report" ? { conditions: text, actions: "", needs: "" } : { description: text };

/** Writes an entry. @returns the id of its event */
async function write(kind: Kind, text: string, who: Who = "rita"): Promise<number> {
  const body = kind === "message" ? { text } : textsOf(kind, text);
  const answer = await people[who].call("POST", `${path}/${lists[kind]}/`, body);
  expect(answer.http).toBe(201);
  return kind === "note" ? answer.body.id : answer.body.event_id;
}
const amend = (id: number, version: number, texts: object, who: Who = "rita") =>
  people[who].call("PUT", `${path}/events/${id}`, { version, ...texts });
const withdraw = (id: number, version: number, who: Who = "rita", headers?: Record<string, string>) =>
  people[who].call("POST", `${path}/events/${id}/withdraw`, { version }, headers);
const read = async (id: number, who: Who = "bob") =>
  (await people[who].call("GET", `${path}/events/${id}`)).body;
const timeline = async (who: Who = "bob") =>
  (await people[who].call("GET", `${path}/events/?sort=id`)).body.items;
const revisions = async (id: number) =>
  (await people.root.call("GET", `${path}/events/${id}/revisions/`)).body.items;
const found = async (word: string, who: Who = "bob") =>
  (await people[who].call("GET", `/search?q=${word}`)).body.items;

const shownText = (kind: Kind, text: string) =>
  kind === "report" ? `Status report:\nConditions: ${text}` : text;

describe.each(kinds)("a %s", (kind) => {
  test("is corrected by its author, which is an event with the new text", async () => {
    const id = await write(kind, "Zebra is down");
    const writtenAt = server.clock.now().toISOString();
    server.clock.advance(60);
    const at = server.clock.now().toISOString();
    const { http, body, headers } = await amend(id, 1, textsOf(kind, "Yak is down"));
    expect([http, headers.get("etag")]).toEqual([200, '"2"']);
    const state = { version: 2, edited_at: at, edited_by: "rita@example.com", withdrawn_at: null };
    const text = shownText(kind, "Yak is down");
    expect(body).toMatchObject({ id, description: text, at: writtenAt, ...state });
    expect(await timeline()).toMatchObject([
      { id, description: text, ...state },
      {
        kind: "corrected",
        actor: "rita@example.com",
        at,
        description: text,
        data: { target_id: id, target_kind: body.kind },
      },
    ]);
    const { items } = (await people.bob.call("GET", `${path}/${lists[kind]}/`)).body;
    expect(items.at(-1)).toMatchObject({ ...state, ...(kind === "note" ? { id } : { event_id: id }) });
    expect(JSON.stringify(items)).not.toContain("Zebra");
    expect(await revisions(id)).toEqual([
      { version: 1, author: "rita@example.com", at: writtenAt, ...textsOf(kind, "Zebra is down") },
    ]);
  });

  test("is found by its new words only", async () => {
    const word = `old${kind}${incidentId}`;
    const id = await write(kind, word);
    expect(await found(word)).toHaveLength(1);
    await amend(id, 1, textsOf(kind, `new${kind}${incidentId}`));
    expect(await found(word)).toEqual([]);
    expect(await found(`new${kind}${incidentId}`)).toHaveLength(1);
  });

  test("that was withdrawn has no text for anybody, and admins read it among the earlier texts", async () => {
    const word = `gone${kind}${incidentId}`;
    const id = await write(kind, "first");
    await amend(id, 1, textsOf(kind, word));
    const at = server.clock.now().toISOString();
    expect(await withdraw(id, 2)).toMatchObject({
      http: 200,
      body: { description: "Withdrawn", version: 3, withdrawn_at: at, edited_by: "rita@example.com" },
    });
    for (const who of ["bob", "rita", "root"] as const) {
      for (const list of ["events", "messages", "reports"])
        expect(JSON.stringify((await people[who].call("GET", `${path}/${list}/`)).body)).not.toContain(word);
      expect(await found(word, who)).toEqual([]);
    }
    expect(
      (await timeline()).map(({ kind, description }: Record<string, string>) => [kind, description]),
    ).toEqual([
      [expect.any(String), "Withdrawn"],
      ["corrected", "Withdrawn"],
      ["withdrawn", expect.stringMatching(/^(Note|Message|Status report) withdrawn$/)],
    ]);
    expect(await revisions(id)).toMatchObject([
      { version: 2, ...textsOf(kind, word) },
      { version: 1, ...textsOf(kind, "first") },
    ]);
    for (const refused of [await amend(id, 3, textsOf(kind, "again")), await withdraw(id, 3)])
      expect(refused).toMatchObject({
        http: 409,
        body: { detail: expect.stringContaining("was withdrawn") },
      });
  });

  test("can be changed by admins, and by nobody else", async () => {
    const id = await write(kind, "a");
    const refused = { http: 403, body: { detail: expect.stringContaining("Only its author and admins") } };
    expect(await amend(id, 1, textsOf(kind, "b"), "bob")).toMatchObject(refused);
    expect(await withdraw(id, 1, "bob")).toMatchObject(refused);
    expect(await amend(id, 1, textsOf(kind, "b"), "root")).toMatchObject({
      http: 200,
      body: { edited_by: "root@example.com" },
    });
    expect((await withdraw(id, 2, "root")).http).toBe(200);
  });

  test("is not corrected with an empty text, the same text, or the fields of another kind", async () => {
    const id = await write(kind, "a");
    const [field] = Object.keys(textsOf(kind, "")) as [string];
    const other = kind === "report" ? "description" : "conditions";
    for (const [texts, named] of [
      [textsOf(kind, " "), field],
      [textsOf(kind, "a"), field],
      [{}, kind === "report" ? "conditions" : "description"],
      [{ ...textsOf(kind, "b"), [other]: "b" }, other],
    ] as const)
      expect(await amend(id, 1, texts)).toMatchObject({ http: 400, body: { field: named } });
    expect(await read(id)).toMatchObject({ version: 1, edited_at: null });
  });

  test("of a closed incident is changed by its author for a day, and then by admins", async () => {
    const id = await write(kind, "a");
    const at = after(server.clock.now(), 1 - 24 * 3600);
    const closed = { status: "Closed", stableAt: at, closedAt: at } as const;
    await server.db.update(incident).set(closed).where(eq(incident.id, incidentId));
    expect((await amend(id, 1, textsOf(kind, "b"))).http).toBe(200);
    server.clock.advance(1);
    const refused = { http: 403, body: { detail: expect.stringContaining("closed more than a day ago") } };
    expect(await amend(id, 2, textsOf(kind, "c"))).toMatchObject(refused);
    expect(await withdraw(id, 2)).toMatchObject(refused);
    expect((await amend(id, 2, textsOf(kind, "c"), "root")).http).toBe(200);
  });
});

test("of two corrections at once, one gets 409 with the version of the other", async () => {
  const id = await write("note", "a");
  const both = server.db.transaction(async (tx) => {
    await lockIncident(tx, "worker", incidentId);
    const calls = ["b", "c"].map((text) => amend(id, 1, { description: text }));
    await somebodyWaits(server.db, 2);
    return calls;
  });
  const answers = await Promise.all(await both);
  expect(answers.map(({ http }) => http).sort()).toEqual([200, 409]);
  const refused = answers.find(({ http }) => http === 409)!;
  expect(refused.body.detail).toContain("it is now at version 2");
  expect(await revisions(id)).toHaveLength(1);
});

test("an entry of another incident is not found, whatever the request", async () => {
  const id = await write("note", "a");
  const elsewhere = `/incidents/${await insertEmptyIncident(server.db, ids, server.clock.now())}/events`;
  const detail = `The incident has no entry e${id}`;
  for (const answer of [
    await people.rita.call("GET", `${elsewhere}/${id}`),
    await people.rita.call("PUT", `${elsewhere}/${id}`, { version: 1, description: "b" }),
    await people.rita.call("POST", `${elsewhere}/${id}/withdraw`, { version: 1 }),
    await people.root.call("GET", `${elsewhere}/${id}/revisions/`),
  ])
    expect(answer).toMatchObject({ http: 404, body: { detail } });
});

test("what svc recorded cannot be corrected, even by an admin", async () => {
  const id = await write("note", "a");
  await amend(id, 1, { description: "b" });
  const corrected = (await timeline()).at(-1).id;
  const refused = { http: 400, body: { field: "event_id" } };
  expect(await amend(corrected, 1, { description: "c" }, "root")).toMatchObject(refused);
  expect(await withdraw(corrected, 1, "root")).toMatchObject(refused);
});

test("a message to one person has no event, and cannot be corrected", async () => {
  const body = { text: "psst", recipient_id: ids.alice };
  const { body: of } = await people.rita.call("POST", `${path}/participants/`, { individual_id: ids.alice });
  expect(of.individual.id).toBe(ids.alice);
  const said = await people.rita.call("POST", `${path}/messages/`, body);
  expect(said).toMatchObject({ http: 201, body: { event_id: null, version: 1 } });
  expect((await people.rita.call("GET", `${path}/messages/`)).body.items[0]).toEqual(said.body);
});

test("a correction needs the version as If-Match or in the body, and a withdrawal with one key is done once", async () => {
  const id = await write("note", "a");
  const put = (match: string) =>
    people.rita.call("PUT", `${path}/events/${id}`, { version: 1, description: "b" }, { "if-match": match });
  expect((await put('"2"')).http).toBe(400);
  expect((await put('"1"')).http).toBe(200);
  const key = { "idempotency-key": `withdraw-${id}` };
  const first = await withdraw(id, 2, "rita", key);
  expect(first).toMatchObject({ http: 200, body: { version: 3 } });
  expect(await withdraw(id, 2, "rita", key)).toMatchObject({ http: 200, body: first.body });
  expect(first.headers.get("etag")).toBe('"3"');
});

test("a note may be sent back as it was read, with another text", async () => {
  const id = await write("note", "a");
  expect(
    (await people.rita.call("PUT", `${path}/events/${id}`, { ...(await read(id)), description: "b" })).http,
  ).toBe(200);
});
