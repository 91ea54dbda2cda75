import { expect, test } from "bun:test";
import { eq, inArray } from "drizzle-orm";
import { incident } from "../../drizzle/schema/index.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { insertEmptyIncident, timelineOf, type Visibility } from "../../tests/support/http/participants.ts";

let { server, member, admin, incidentId, path } = {} as EmptyIncident;
let ids: EmptyIncident["ids"];
useEmptyIncident("links", (given) => {
  ({ server, member, admin, incidentId, path, ids } = given);
});

const another = (visibility: Visibility = "Open") =>
  insertEmptyIncident(server.db, ids, server.clock.now(), visibility);
const link = (other: unknown, kind: unknown = "related", of = path, headers?: Record<string, string>) =>
  member.call(
    "POST",
    `${of}/`,
    { incident: typeof other === "number" ? String(other) : other, kind },
    headers,
  );
const listOf = async (id: number, person = member) => {
  const { body } = await person.call("GET", `/incidents/${id}/links/`);
  return body.items.map((one: { kind: string; incident: { id: number } }) => [one.kind, one.incident.id]);
};
const linksIn = async (id: number) =>
  (await timelineOf(server.db, id)).filter(({ kind }) => kind.startsWith("incident."));

test("related incidents are shown from both sides, and on both timelines", async () => {
  const other = await another();
  const { http, body } = await link(other);
  expect(http).toBe(201);
  expect(body).toEqual({
    id: expect.any(Number),
    kind: "related",
    created_at: server.clock.now().toISOString(),
    incident: { id: other, name: expect.stringMatching(/^INC-/), title: "Slow", status: "Active" },
  });
  expect(await listOf(incidentId)).toEqual([["related", other]]);
  expect(await listOf(other)).toEqual([["related", incidentId]]);
  for (const id of [incidentId, other])
    expect(await linksIn(id)).toMatchObject([{ kind: "incident.linked" }]);
});

test("a duplicate has a direction", async () => {
  const other = await another();
  const [row] = await server.db.select().from(incident).where(eq(incident.id, other));
  expect((await link(row!.name.toLowerCase(), "duplicate")).body.kind).toBe("duplicate_of");
  expect(await listOf(incidentId)).toEqual([["duplicate_of", other]]);
  expect(await listOf(other)).toEqual([["duplicated_by", incidentId]]);
});

test("two incidents are linked once, in whichever direction", async () => {
  const other = await another();
  const back = `/incidents/${other}/links`;
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, at) => (at % 2 ? link(other) : link(incidentId, "duplicate", back))),
  );
  expect(answers.map(({ http }) => http).sort()).toEqual([201, ...Array(9).fill(409)]);
  expect(await listOf(incidentId)).toHaveLength(1);
  expect(await linksIn(other)).toHaveLength(1);
});

test("a hidden incident cannot be linked, and a link to one is not shown", async () => {
  const other = await another();
  const { body } = await link(other);
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, other));
  expect(await listOf(incidentId)).toEqual([]);
  expect(await listOf(incidentId, admin)).toEqual([["related", other]]);
  expect((await member.call("DELETE", `${path}/${body.id}`)).http).toBe(404);
  const [row] = await server.db.select().from(incident).where(eq(incident.id, other));
  const { items } = (await member.call("GET", `/incidents/${incidentId}/events/`)).body;
  expect(JSON.stringify(items)).not.toContain(row!.name);
  expect(JSON.stringify(items)).not.toContain(`"incident_id":${other}`);
  const refused = { http: 400, body: { field: "incident", detail: "There is no such incident" } };
  for (const hidden of [String(other), row!.name, "INC-999999", "999999"])
    expect(await link(hidden)).toMatchObject(refused);
  expect((await link(incidentId, "related", `/incidents/${other}/links`)).http).toBe(404);
});

test("a Restricted incident leaves no trace in the timeline of another one", async () => {
  const [other, third] = [await another(), await another()];
  const hidden = [incidentId, third];
  await server.db.update(incident).set({ visibility: "Restricted" }).where(inArray(incident.id, hidden));
  const ofOther = `/incidents/${other}/links`;
  const asAdmin = (of: string, linked: number, kind = "related") =>
    admin.call("POST", `${of}/`, { incident: String(linked), kind });
  const links = [
    await asAdmin(path, other, "duplicate"),
    await asAdmin(path, third),
    await asAdmin(ofOther, third),
  ];
  expect(links.map(({ http }) => http)).toEqual([201, 201, 201]);
  for (const [at, of] of [path, path, ofOther].entries())
    expect((await admin.call("DELETE", `${of}/${links[at]!.body.id}`)).http).toBe(204);
  expect(await linksIn(other)).toEqual([]);
  for (const id of hidden)
    expect((await linksIn(id)).map(({ kind }) => kind)).toEqual(["incident.linked", "incident.unlinked"]);
});

test.each([
  ["", "incident"],
  ["INC-0", "incident"],
  ["disk", "incident"],
  [null, "incident"],
])("refuses the incident %p", async (other, field) => {
  expect(await link(other)).toMatchObject({ http: 400, body: { field } });
});

test("refuses an unknown kind, and an incident linked with itself", async () => {
  expect(await link(await another(), "duplicated_by")).toMatchObject({ http: 400, body: { field: "kind" } });
  expect(await link(incidentId)).toMatchObject({ http: 400, body: { field: "incident" } });
});

test("a link is removed from either side, once", async () => {
  const other = await another();
  const { body } = await link(other);
  const answers = await Promise.all(
    [path, `/incidents/${other}/links`, path].map((of) => member.call("DELETE", `${of}/${body.id}`)),
  );
  expect(answers.map(({ http }) => http).sort()).toEqual([204, 404, 404]);
  expect(await listOf(other)).toEqual([]);
  for (const id of [incidentId, other])
    expect((await linksIn(id)).map(({ kind }) => kind).sort()).toEqual([
      "incident.linked",
      "incident.unlinked",
    ]);
  const third = await another();
  const { body: elsewhere } = await link(third, "related", `/incidents/${other}/links`);
  expect((await member.call("DELETE", `${path}/${elsewhere.id}`)).http).toBe(404);
});

test("a deleted incident takes its links along", async () => {
  const other = await another();
  expect((await link(other)).http).toBe(201);
  expect((await admin.call("DELETE", `/incidents/${other}`)).http).toBe(204);
  expect(await listOf(incidentId)).toEqual([]);
});
