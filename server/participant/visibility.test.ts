import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { participant, statusReport } from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import {
  insertEmptyIncident,
  insertIndividual,
  letJoin,
  noPlugins,
  type Visibility,
} from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

// docs/permissions.md lists who may do what with parts of incidents.

const places = ["Open", "Restricted"] as const satisfies Visibility[];

let server: TestServer;
const people: Record<string, Person> = {};
const incidents = {} as Record<Visibility, number>;
const authors: Record<string, number> = {};

beforeAll(async () => {
  server = await startTestServer({}, noPlugins);
  const { db, clock } = server;
  const at = clock.now();
  const ids = await insertIncident(db, at);
  for (const name of ["participant", "commander"]) authors[name] = await insertIndividual(db, at, name);
  for (const place of places) {
    incidents[place] = await insertEmptyIncident(db, ids, at, place);
    await letJoin(db, incidents[place], authors.participant!, at, ["participant"]);
    await letJoin(db, incidents[place], authors.commander!, at, ["commander"]);
  }
  people.member = await personOf(server, "member@example.com", ["oncall"]);
  people.admin = await personOf(server, "root@example.com", ["admin"]);
  for (const name of Object.keys(authors)) people[name] = await personOf(server, `${name}@example.com`);
});
afterAll(() => server[Symbol.asyncDispose]());

interface Request {
  method: string;
  path: string;
  body?: object;
}

const report = { conditions: "Full", actions: "", needs: "" };

/** Builds the named request about a person or report that no other request touches. */
async function requestOf(name: string, place: Visibility): Promise<Request> {
  const { db, clock } = server;
  const incidentId = incidents[place];
  const at = clock.now();
  const somebody = await insertIndividual(db, at);
  const takesPart = () => letJoin(db, incidentId, somebody, at, ["scribe"]);
  const of = `/incidents/${incidentId}`;
  const to = async (rest: string) => `${of}/participants/${await takesPart()}${rest}`;
  switch (name) {
    case "invite":
      return { method: "POST", path: `${of}/participants/`, body: { individual_id: somebody } };
    case "take out":
      return { method: "POST", path: await to("/leave") };
    case "get report": {
      const values = { incidentId, authorId: somebody, ...report, createdAt: at };
      const [row] = await db.insert(statusReport).values(values).returning();
      return { method: "GET", path: `${of}/reports/${row!.id}` };
    }
    case "report":
      return { method: "POST", path: `${of}/reports/`, body: report };
    case "note":
      return { method: "POST", path: `${of}/events/`, body: { description: "Seen" } };
    case "say":
      return { method: "POST", path: `${of}/messages/`, body: { text: "Hello" } };
    default:
      throw new Error(`no such request: ${name}`);
  }
}

test("the commander of a Restricted incident can remove others, other participants cannot", async () => {
  const { method, path } = await requestOf("take out", "Restricted");
  expect(await people.participant!.call(method, path)).toMatchObject({
    http: 403,
    body: { detail: expect.stringContaining("the commander or an admin") },
  });
  expect((await people.commander!.call(method, path)).http).toBe(200);
});

test("a person who leaves a Restricted incident gets a success, and can no longer see it", async () => {
  const { db, clock } = server;
  const name = "leaver";
  const person = await personOf(server, `${name}@example.com`);
  const somebody = await insertIndividual(db, clock.now(), name);
  const id = await letJoin(db, incidents.Restricted, somebody, clock.now(), ["scribe"]);
  const path = `/incidents/${incidents.Restricted}/participants/${id}`;
  const answer = await person.call("POST", `${path}/leave`);
  expect(answer).toMatchObject({ http: 200, body: { id, left_at: clock.now().toISOString() } });
  expect((await person.call("GET", path)).http).toBe(404);
  expect((await person.call("POST", `${path}/leave`)).http).toBe(404);
});

test("a part of one incident is not found under another", async () => {
  const { db, clock } = server;
  const somebody = await insertIndividual(db, clock.now());
  const id = await letJoin(db, incidents.Restricted, somebody, clock.now(), ["scribe"]);
  const other = `/incidents/${incidents.Open}/participants/${id}`;
  const nothing = { http: 404, body: { detail: "There is no such participant" } };
  for (const person of [people.member!, people.participant!, people.admin!]) {
    expect(await person.call("GET", other)).toMatchObject(nothing);
    expect(await person.call("POST", `${other}/roles`, { role: "liaison" })).toMatchObject(nothing);
    expect(await person.call("POST", `${other}/renounce`, { role: "scribe" })).toMatchObject(nothing);
    expect(await person.call("POST", `${other}/leave`)).toMatchObject(nothing);
  }
  await db.update(participant).set({ leftAt: clock.now() }).where(eq(participant.id, id));
  expect(await people.admin!.call("DELETE", other)).toMatchObject(nothing);
  const { path } = await requestOf("get report", "Restricted");
  const foreign = path.replace(`/${incidents.Restricted}/`, `/${incidents.Open}/`);
  expect(await people.admin!.call("GET", foreign)).toMatchObject({
    http: 404,
    body: { detail: "There is no such status report" },
  });
});

const readBehindTheIncident = [
  ["participants", "participant_role"],
  ["reports", "status_report"],
  ["events", "event"],
  ["messages", "conversation_message"],
] as const;

test.each(readBehindTheIncident)(
  "%s of an incident that becomes Restricted meanwhile are not shown",
  async (list, table) => {
    const { db } = server;
    const of = `/incidents/${incidents.Open}`;
    for (const name of ["report", "note", "say"]) {
      const { method, path, body } = await requestOf(name, "Open");
      await people.participant!.call(method, path, body);
    }
    const become = (visibility: Visibility) =>
      sql`update incident set visibility = ${visibility} where id = ${incidents.Open}`;
    const listed = await db.transaction(async (tx) => {
      await tx.execute(sql`lock table ${sql.identifier(table)} in access exclusive mode`);
      await tx.execute(become("Restricted"));
      // It still finds the incident Open, and then waits for this transaction.
      const listed = people.member!.call("GET", `${of}/${list}/`);
      const waits = sql`select 1 from pg_locks where relation = ${table}::regclass and not granted`;
      while ((await tx.execute(waits)).length === 0) await Bun.sleep(5);
      return { listed };
    });
    expect(await listed.listed).toMatchObject({ http: 200, body: { items: [] } });
    expect((await people.member!.call("GET", `${of}/${list}/`)).http).toBe(404);
    await db.execute(become("Open"));
    expect((await people.member!.call("GET", `${of}/${list}/`)).body.items).not.toEqual([]);
  },
);
