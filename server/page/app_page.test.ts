import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { pageHeaders } from "./page.ts";

let server: TestServer;
let incidentId: number;
beforeAll(async () => {
  server = await startTestServer();
  ({ incidentId } = await insertIncident(server.db, server.clock.now()));
});
afterAll(() => server[Symbol.asyncDispose]());

const browser = {
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  "sec-fetch-mode": "navigate",
};
const open = (path: string, init: RequestInit = {}) =>
  server.fetch(path, { ...init, headers: { ...browser, ...(init.headers as object) } });

describe("a browser that follows a link of ours", () => {
  test.each([
    ["/incidents/INC-44", "/app/incidents/INC-44"],
    ["/incidents/inc-44", "/app/incidents/inc-44"],
    ["/incidents/999999", "/app/incidents/999999"],
    ["/incidents/44/", "/app/incidents/44"],
    ["/tasks/7", "/app/tasks/7"],
    ["/documents/7", "/app/documents/7"],
    ["/", "/app"],
  ])("%s leads to its page, whether the record exists or not", async (path, page) => {
    const response = await open(path, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([303, page]);
    const { "content-type": _, ...headers } = pageHeaders;
    for (const [name, value] of Object.entries(headers)) expect(response.headers.get(name)).toBe(value);
    if (path !== "/") expect(response.headers.get("vary")).toBe("Accept");
  });

  test("is led there with a token that is no longer valid in its cookie, too", async () => {
    const headers = { cookie: "svc_auth=a.b.c" };
    expect((await open("/incidents/44", { redirect: "manual", headers })).status).toBe(303);
  });
});

describe("everybody else gets what they got before", () => {
  test.each([
    ["a program", "/incidents/44", { headers: { accept: "*/*" } }],
    ["a program that wants JSON", "/incidents/44", { headers: { accept: "application/json" } }],
    ["one that refuses HTML", "/incidents/44", { headers: { accept: "application/json, text/html;q=0" } }],
    ["a program with a wrong token", "/incidents/44", { headers: { authorization: "Bearer a.b.c" } }],
    ["a change", "/incidents/44", { method: "DELETE" }],
    ["another path", "/incidents/44/events", {}],
    ["a list", "/incidents/", {}],
    ["no record", "/incidents/<b>", {}],
  ] as const)("%s", async (_, path, init) => {
    const response = await open(path, init);
    expect(response.status).toBe(401);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(response.headers.get("www-authenticate")).toStartWith("Bearer");
    expect(response.headers.get("vary")).toBe(path === "/incidents/44" ? "Accept" : null);
  });

  test("a user", async () => {
    const authorization = `Bearer ${await signInToken(server)}`;
    const response = await open(`/incidents/${incidentId}`, { headers: { authorization } });
    expect(await response.json()).toMatchObject({ id: incidentId });
  });
});
