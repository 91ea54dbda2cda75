import { expect, test } from "bun:test";
import { type EmptyIncident, useEmptyIncident } from "../tests/support/empty_incident.ts";
import { insertIndividual, letJoin } from "../tests/support/participants.ts";
import { asksForToken } from "./auth/actor.ts";
import { nothing } from "./no_body.ts";

let { server, member, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("participants", (given) => {
  ({ server, member, incidentId, path } = given);
});

/** A POST that says all in its path. */
const leave = async (body?: string, type?: string) => {
  const at = server.clock.now();
  const id = await letJoin(server.db, incidentId, await insertIndividual(server.db, at), at);
  return member.call("POST", `${path}/${id}/leave`, body, type === undefined ? {} : { "content-type": type });
};

test.each([
  [undefined, undefined],
  ["", "application/json"],
  ["", "text/plain"],
  ["{}", "application/json"],
  [" {} ", "application/json; charset=utf-8"],
])("where nothing is to be said, the body %p (%s) says nothing", async (body, type) => {
  expect((await leave(body, type)).http).toBe(200);
});

test.each([
  ["{}", "text/plain"],
  ["{}", "application/problem+json"],
  ["{}", "application/jsonx"],
  ["<a/>", "application/xml"],
  ["abc", "application/octet-stream"],
  ["--x--\r\n", "multipart/form-data; boundary=x"],
  ["a=1", "application/x-www-form-urlencoded"],
  ["abc", ""],
  ["[]", "application/json"],
  ["null", "application/json"],
  ["0", "application/json"],
  ['""', "application/json"],
  ['{"roles":[]}', "application/json"],
])("the body %p (%s) is refused there", async (body, type) => {
  expect(await leave(body, type)).toMatchObject({
    http: 400,
    body: { code: "invalid_input", field: "body" },
  });
});

test.each([
  [undefined, undefined, 200],
  ["", "application/json", 200],
  ["{}", "application/json", 200],
  ['{"step":"none"}', "application/json", 404],
  ["[]", "application/json", 400],
  ["<a/>", "application/xml", 400],
] as const)("where something may be said, the body %p (%s) is answered %d", async (body, type, http) => {
  const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
  expect((await member.call("POST", `/incidents/${incidentId}/retry`, body, headers)).http).toBe(http);
});

test("every POST of somebody signed in says what its body is, or that it is none", () => {
  const posts = server.app.routes.filter((route) => route.method === "POST" && asksForToken(route));
  expect(posts.filter(({ hooks }) => hooks.body === undefined).map(({ path }) => path)).toEqual([]);
  expect(posts.filter(({ hooks }) => hooks.body === nothing).map(({ path }) => path)).toContain(
    "/incidents/:incident_id/participants/:participant_id/leave",
  );
});
