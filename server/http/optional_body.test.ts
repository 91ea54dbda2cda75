import { expect, test } from "bun:test";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { insertIndividual, letJoin } from "../../tests/support/http/participants.ts";
import { exchange, statusesOf } from "../../tests/support/http/raw_http.ts";
import { signInToken } from "../../tests/support/http/server.ts";
import { asksForToken } from "../auth/actor.ts";
import { nothing } from "./body.ts";

let { server, member, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("participants", (given) => {
  ({ server, member, incidentId, path } = given);
});

/** A POST whose path says everything. */
const leave = async (body?: string, type?: string) => {
  const at = server.clock.now();
  const id = await letJoin(server.db, incidentId, await insertIndividual(server.db, at), at);
  return member.call("POST", `${path}/${id}/leave`, body, type === undefined ? {} : { "content-type": type });
};

/** The statuses of the answers to a POST without Content-Length. */
async function postInChunks(to: string, chunks: string, type?: string): Promise<number[]> {
  const lines = [
    `POST ${to} HTTP/1.1`,
    "Host: a",
    "Connection: close",
    "Transfer-Encoding: chunked",
    `Authorization: Bearer ${await signInToken(server)}`,
    ...(type === undefined ? [] : [`Content-Type: ${type}`]),
  ];
  const answer = await exchange(
    Number(new URL(server.url).port),
    `${lines.join("\r\n")}\r\n\r\n${chunks}0\r\n\r\n`,
  );
  return statusesOf(answer);
}

const retryInChunks = (chunks: string, type?: string) =>
  postInChunks(`/incidents/${incidentId}/retry`, chunks, type);

test.each([
  [undefined, undefined],
  ["", "application/json"],
  ["", "text/plain"],
  ["{}", "application/json"],
  [" {} ", "application/json; charset=utf-8"],
])("where no body is required, the body %p (%s) is accepted as empty", async (body, type) => {
  expect((await leave(body, type)).http).toBe(200);
});

test.each([
  ["{}", "Application/JSON", 200],
  ["{}", "APPLICATION/JSON ; charset=utf-8", 200],
  ['{"roles":[]}', "Application/JSON", 400],
] as const)("media types are the same in capitals: %p (%s) is answered %d", async (body, type, http) => {
  expect((await leave(body, type)).http).toBe(http);
});

test.each([
  ["", undefined, 200],
  ["", "application/json", 200],
  ["", "text/plain", 200],
  ["", "application/x-unknown", 200],
  ["", "application/x-www-form-urlencoded", 200],
  ["", "application/octet-stream", 200],
  ["", "multipart/form-data; boundary=x", 200],
  ["1\r\na\r\n", "application/x-www-form-urlencoded", 415],
  ["1\r\na\r\n", "application/octet-stream", 415],
  ["2\r\n{}\r\n", "application/json", 200],
  ["2\r\n{}\r\n", undefined, 415],
  ["1\r\n \r\n", "application/json", 400],
] as const)("in chunks, where nothing is to be said: %p (%s) is answered %d", async (chunks, type, http) => {
  expect(await retryInChunks(chunks, type)).toEqual([http]);
});

test("an empty chunked body is missing where a body is required", async () => {
  expect(await postInChunks("/incidents", "", "application/json")).toEqual([400]);
});

const unsupported = { http: 415, body: { code: "unsupported_media_type" } };

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
  const wrong = type === "application/json" ? { http: 400, body: { code: "invalid_input" } } : unsupported;
  expect(await leave(body, type)).toMatchObject(wrong);
});

test.each([
  [undefined, undefined, 200],
  ["", "application/json", 200],
  ["{}", "application/json", 200],
  ['{"step":"none"}', "application/json", 404],
  ["[]", "application/json", 400],
  ["<a/>", "application/xml", 415],
] as const)("where something may be said, the body %p (%s) is answered %d", async (body, type, http) => {
  const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
  expect((await member.call("POST", `/incidents/${incidentId}/retry`, body, headers)).http).toBe(http);
});

test("every authenticated POST declares a body schema, or that it has none", () => {
  const posts = server.app.routes.filter((route) => route.method === "POST" && asksForToken(route));
  expect(posts.filter(({ hooks }) => hooks.body === undefined).map(({ path }) => path)).toEqual([]);
  expect(posts.filter(({ hooks }) => hooks.body === nothing).map(({ path }) => path)).toContain(
    "/incidents/:incident_id/participants/:participant_id/leave",
  );
});
