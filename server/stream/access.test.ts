import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { changesAfter } from "../../core/incident/stream/board.ts";
import { flowEnded } from "../../tests/support/domain/flow.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { insertIndividual, noPlugins } from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { StreamClient } from "../../tests/support/http/stream.ts";
import { within } from "../../tests/support/process/until.ts";

// Who sees what in a stream, and when it ends.

let server: TestServer;
let kinds: { incident_type_id: number; incident_priority_id: number };
let admin: Person;
let outsider: Person;
let participant: Person;
/** The participant's. */
let individualId: number;
let names = 0;

beforeAll(async () => {
  server = await startTestServer({}, noPlugins);
  const ids = await insertIncident(server.db, server.clock.now());
  kinds = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
  admin = await personOf(server, "root@example.com", ["admin"]);
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  outsider = await personOf(server, `outsider${++names}@example.com`);
  individualId = await insertIndividual(server.db, server.clock.now(), `insider${names}`);
  participant = await personOf(server, `insider${names}@example.com`);
});

interface Reported {
  id: number;
  name: string;
  path: string;
  participantId: number;
}

/** An incident of the admin's, with the participant in it. */
async function report(visibility: "Open" | "Restricted"): Promise<Reported> {
  const made = await admin.call("POST", "/incidents/", {
    title: "Slow",
    description: "",
    visibility,
    ...kinds,
  });
  expect(made.http).toBe(201);
  const { id, name } = made.body;
  await flowEnded(server.db, id);
  const path = `/incidents/${id}`;
  const joined = await admin.call("POST", `${path}/participants/`, { individual_id: individualId });
  expect(joined.http).toBe(201);
  return { id, name, path, participantId: joined.body.id };
}

async function change({ path }: Reported, fields: object): Promise<void> {
  const { body } = await admin.call("GET", path);
  const { title, description, status, visibility, resolution, version } = body;
  const whole = { title, description, status, visibility, resolution, version, ...kinds };
  expect(await admin.call("PUT", path, { ...whole, ...fields })).toMatchObject({ http: 200 });
}

async function note({ path }: Reported, description: string): Promise<number> {
  const { http, body } = await admin.call("POST", `${path}/events/`, { description });
  expect(http).toBe(201);
  return body.id;
}

async function leave({ path, participantId }: Reported, by = participant): Promise<void> {
  expect((await by.call("POST", `${path}/participants/${participantId}/leave`)).http).toBe(200);
}

const follow = (person: Person, { path }: Reported) => StreamClient.open(person, `${path}/stream`);
async function board(person: Person): Promise<StreamClient> {
  const stream = await StreamClient.open(person, "/incidents/stream");
  // Hints of what happened just before.
  await toldBy(stream);
  return stream;
}

const lasts = new Set<string>();
/** The names that a board has received until now. */
async function toldBy(stream: StreamClient): Promise<string[]> {
  const wanted = { title: "The last", description: "", visibility: "Open", ...kinds };
  const { body: last } = await admin.call("POST", "/incidents/", wanted);
  lasts.add(last.name);
  const told: string[] = [];
  for (;;) {
    const data = await stream.data();
    if (data === undefined) throw new Error(`the stream ended after ${told.join(", ")}`);
    expect(Object.keys(data)).toEqual(["id", "name"]);
    if (data.name === last.name) return told;
    if (!lasts.has(data.name)) told.push(data.name);
  }
}

/** The descriptions up to the end of the stream. @throws Error when it does not end */
async function untilEnd(stream: StreamClient): Promise<string[]> {
  const blocks = await within("the end of the stream", stream.rest());
  return blocks.flatMap(({ data }) => (data === undefined ? [] : [JSON.parse(data).description]));
}

describe.each(["Open", "Restricted"] as const)("the stream of one incident that is %s", (visibility) => {
  test("shows its events to those who may read it, and is not found by others", async () => {
    const incident = await report(visibility);
    const readers = visibility === "Open" ? [outsider, participant, admin] : [participant, admin];
    const streams = await Promise.all(readers.map((reader) => follow(reader, incident)));
    await note(incident, "seen");
    for (const stream of streams) {
      expect(await stream.data()).toMatchObject({ description: "seen" });
      stream.leave();
    }
    if (visibility === "Restricted") {
      const refused = await outsider.call("GET", `${incident.path}/stream`);
      const missing = await outsider.call("GET", "/incidents/999999/stream");
      expect(refused).toMatchObject({ http: 404 });
      expect(refused.body).toEqual({ ...missing.body, request_id: refused.body.request_id });
    }
  });
});

test("the stream of all incidents names only those that the user may read", async () => {
  const open = await report("Open");
  const restricted = await report("Restricted");
  const streams = [await board(outsider), await board(participant), await board(admin)];
  await note(restricted, "secret");
  await note(open, "seen");
  await note(restricted, "secret");
  const told: string[][] = [];
  for (const stream of streams) told.push(await toldBy(stream));
  expect(new Set(told[0])).toEqual(new Set([open.name]));
  expect(new Set(told[1])).toEqual(new Set([open.name, restricted.name]));
  expect(new Set(told[2])).toEqual(new Set([open.name, restricted.name]));
  for (const stream of streams) stream.leave();
});

test("the stream of all incidents names new ones, and those that the user joins", async () => {
  const stream = await board(participant);
  const incident = await report("Restricted");
  expect(new Set(await toldBy(stream))).toEqual(new Set([incident.name]));
  stream.leave();
});

describe("becoming Restricted", () => {
  test("ends the streams of people who may no longer read the incident, before any later event", async () => {
    const incident = await report("Open");
    const [out, inside, root] = await Promise.all(
      [outsider, participant, admin].map((person) => follow(person, incident)),
    );
    await change(incident, { visibility: "Restricted" });
    await note(incident, "secret");
    expect(await untilEnd(out!)).toEqual([]);
    for (const stream of [inside!, root!]) {
      expect((await stream.data()).kind).toBe("incident.updated");
      expect((await stream.data()).description).toBe("secret");
      stream.leave();
    }
    expect((await outsider.call("GET", `${incident.path}/stream`)).http).toBe(404);
  });

  test("is announced once to everybody who could read it until then", async () => {
    const incident = await report("Open");
    const stream = await board(outsider);
    await change(incident, { visibility: "Restricted" });
    expect(await toldBy(stream)).toEqual([incident.name]);
    await note(incident, "secret");
    expect(await toldBy(stream)).toEqual([]);
    await change(incident, { visibility: "Open" });
    expect(await toldBy(stream)).toEqual([incident.name]);
    stream.leave();
  });
});

describe("leaving a Restricted incident", () => {
  test.each([
    ["by oneself", () => participant],
    ["by an admin", () => admin],
  ] as const)("%s ends the stream, before it shows anything later", async (_, by) => {
    const incident = await report("Restricted");
    const stream = await follow(participant, incident);
    await leave(incident, by());
    await note(incident, "secret");
    expect(await untilEnd(stream)).toEqual([]);
    expect((await participant.call("GET", `${incident.path}/stream`)).http).toBe(404);
  });

  test("is the last event that the person who left gets", async () => {
    const incident = await report("Restricted");
    const stream = await board(participant);
    await leave(incident);
    expect(await toldBy(stream)).toEqual([incident.name]);
    await note(incident, "secret");
    expect(await toldBy(stream)).toEqual([]);
    stream.leave();
  });

  test("is announced to that person also when the participation is deleted before the announcement", async () => {
    const incident = await report("Restricted");
    const before = await note(incident, "before");
    await leave(incident);
    const left = await note(incident, "secret");
    const deleted = await admin.call("DELETE", `${incident.path}/participants/${incident.participantId}`);
    expect(deleted.http).toBe(204);
    const readers = async (after: number) =>
      (await changesAfter(server.db, new Map([[incident.id, after]])))[0]!.readers;
    expect(await readers(before)).toContain(`insider${names}@example.com`);
    expect(await readers(left)).not.toContain(`insider${names}@example.com`);
  });

  test("does not end streams of an Open one", async () => {
    const incident = await report("Open");
    const stream = await follow(participant, incident);
    await leave(incident);
    await note(incident, "seen");
    expect((await stream.data()).kind).toBe("participant.left");
    expect((await stream.data()).description).toBe("seen");
    stream.leave();
  });

  test("without an event or a hint ends the stream within seconds", async () => {
    const incident = await report("Restricted");
    const stream = await follow(participant, incident);
    await server.db.execute(`update participant set left_at = now() where id = ${incident.participantId}`);
    expect(await untilEnd(stream)).toEqual([]);
  });
});

describe.each([
  ["one incident", follow],
  ["all incidents", board],
] as const)("the stream of %s", (what, open) => {
  test("ends within seconds after sign-out", async () => {
    const incident = await report("Open");
    const again = await personOf(server, `insider${names}@example.com`);
    const [stream, other] = [await open(participant, incident), await open(again, incident)];
    expect((await participant.call("DELETE", "/tokens/current")).http).toBe(204);
    expect(await untilEnd(stream)).toEqual([]);
    expect((await participant.call("GET", `${incident.path}/stream`)).http).toBe(401);
    await note(incident, "seen");
    expect(await other.data()).toBeDefined();
    other.leave();
  });

  test("ends when the token expires", async () => {
    const later = await startTestServer({}, noPlugins);
    const ids = await insertIncident(later.db, later.clock.now());
    const person = await personOf(later, "alice@example.com");
    const path = `/incidents/${ids.incidentId}`;
    const client = await StreamClient.open(
      person,
      what === "all incidents" ? "/incidents/stream" : `${path}/stream`,
    );
    later.clock.advance(365 * 24 * 3600);
    expect(await untilEnd(client)).toEqual([]);
    await later[Symbol.asyncDispose]();
  });
});

test("deleting an incident ends its streams", async () => {
  const incident = await report("Open");
  const stream = await follow(outsider, incident);
  expect((await admin.call("DELETE", incident.path)).http).toBe(204);
  expect(await untilEnd(stream)).toEqual([]);
});
