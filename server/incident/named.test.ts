import { expect, test } from "bun:test";
import { incident } from "../../drizzle/schema/index.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let { server, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, ids } = given);
});

const insert = async (values: Partial<typeof incident.$inferInsert>) => {
  const at = server.clock.now();
  const kind = { incidentTypeId: ids.incidentTypeId, incidentPriorityId: ids.incidentPriorityId };
  const stamps = { reportedAt: at, createdAt: at, updatedAt: at };
  const text = { title: "Named", description: "" };
  const [row] = await server.db
    .insert(incident)
    .values({ ...text, ...kind, ...stamps, ...values })
    .returning({ id: incident.id, name: incident.name });
  return row!;
};

test("every route under /incidents/ takes a name, in upper or lower case, whatever the id is", async () => {
  const { id } = await insert({ name: "INC-4711" });
  expect(id).not.toBe(4711);
  for (const name of ["INC-4711", "inc-4711", "Inc-4711", String(id)]) {
    expect(await member.call("GET", `/incidents/${name}`)).toMatchObject({ http: 200, body: { id } });
    for (const list of ["participants", "reports", "events", "messages"])
      expect((await member.call("GET", `/incidents/${name}/${list}/`)).http).toBe(200);
  }
  const joined = await member.call("POST", "/incidents/inc-4711/participants/", {
    email: "dana@example.com",
  });
  expect(joined.http).toBe(201);
  const participant = `/incidents/inc-4711/participants/${joined.body.id}`;
  expect((await member.call("GET", participant)).http).toBe(200);
  expect((await member.call("POST", `${participant}/roles`, { role: "scribe" })).http).toBe(201);
  const { body } = await member.call("GET", "/incidents/INC-4711");
  expect((await member.call("PUT", "/incidents/INC-4711", { ...body, title: "Renamed" })).http).toBe(200);
  expect((await member.call("POST", "/incidents/INC-4711/retry", {})).http).toBe(200);
});

test("an id is never read as a name", async () => {
  const { id } = await insert({});
  await insert({ name: `INC-${id + 5000}` });
  expect((await member.call("GET", `/incidents/${id + 5000}`)).http).toBe(404);
});

test.each([
  "INC-0",
  "INC-007",
  "INC-",
  "INC",
  "INC-1x",
  "INC-1-2",
  "XINC-1",
  "INC 1",
  "\u0130NC-1",
  "INC--1",
])("%p is no name", async (name) => {
  const answer = await member.call("GET", `/incidents/${encodeURIComponent(name)}`);
  expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field: "incident_id" } });
});

test("the name of a hidden incident is answered like an unknown one, also with a bad body", async () => {
  const hidden = await insert({ visibility: "Restricted" });
  const answers = async (name: string) => {
    const requests = [
      member.call("GET", `/incidents/${name}`),
      member.call("GET", `/incidents/${name}/events/?limit=x`),
      member.call("POST", `/incidents/${name}/events/`, { description: "" }),
      member.call("POST", `/incidents/${name}/events/`, { description: "Seen" }),
      member.call("GET", `/incidents/${name}/stream`),
      member.call("DELETE", `/incidents/${name}`),
    ];
    return (await Promise.all(requests)).map(({ http, body }) => [http, { ...body, request_id: undefined }]);
  };
  const seen = await answers(hidden.name);
  expect(seen.map(([http]) => http)).toEqual([404, 400, 400, 404, 404, 403]);
  expect(seen).toEqual(await answers("INC-999999999999999999"));
});

test("without a token, a name is not looked up", async () => {
  for (const name of ["INC-1", "INC-99999"])
    expect((await server.app.handle(new Request(`http://localhost/incidents/${name}`))).status).toBe(401);
});

test("status takes several values, separated by commas", async () => {
  const at = server.clock.now();
  const of = { title: "Several" };
  const active = await insert(of);
  const stable = await insert({ ...of, status: "Stable", stableAt: at });
  const closed = await insert({ ...of, status: "Closed", stableAt: at, closedAt: at });
  const listed = async (status: string) => {
    const { http, body } = await member.call("GET", `/incidents/?q=several&sort=id&status=${status}`);
    return http === 200 ? body.items.map(({ id }: { id: number }) => id) : [http, body.field];
  };
  expect(await listed("Active")).toEqual([active.id]);
  expect(await listed("Active,Stable")).toEqual([active.id, stable.id]);
  expect(await listed("Closed,Active")).toEqual([active.id, closed.id]);
  expect(await listed("Active,Stable,Closed")).toEqual([active.id, stable.id, closed.id]);
  expect(await listed("Active,Active")).toEqual([active.id]);
  for (const wrong of ["", ",", "Active,", "active", "Active,Broken", "Active,Active,Active,Active"])
    expect(await listed(wrong)).toEqual([400, "status"]);
});

test("a cursor goes on with the same statuses in another order", async () => {
  const first = await member.call("GET", "/incidents/?limit=1&sort=id&status=Active,Stable");
  const next = (status: string) =>
    member.call("GET", `/incidents/?limit=1&sort=id&status=${status}&cursor=${first.body.next_cursor}`);
  expect((await next("Stable,Active")).http).toBe(200);
  expect((await next("Active")).http).toBe(400);
});

test("each incident in a list names its commander", async () => {
  const { body } = await member.call("GET", "/incidents/?sort=id&limit=1");
  const { body: one } = await member.call("GET", `/incidents/${body.items[0].id}`);
  expect(body.items[0].commander).toEqual(one.commander);
  expect(one.commander).toMatchObject({ email: "alice@example.com" });
  const { id } = await insert({ title: "Headless" });
  const { body: none } = await member.call("GET", "/incidents/?q=headless");
  expect(none.items).toMatchObject([{ id, commander: null }]);
});
