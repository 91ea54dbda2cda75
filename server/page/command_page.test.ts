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
    ["/incidents/INC-44", "svc incident view INC-44"],
    ["/incidents/inc-44", "svc incident view INC-44"],
    ["/incidents/999999", "svc incident view 999999"],
    ["/incidents/44/", "svc incident view 44"],
    ["/tasks/7", "svc incident task done 7"],
  ])("%s gets a page that says what to type", async (path, command) => {
    const response = await open(path);
    const text = await response.text();
    expect(response.status).toBe(401);
    expect(text).toContain(`<code>${command}</code>`);
    expect(text).toContain(`<code>svc login --server ${server.url}</code>`);
    for (const [name, value] of Object.entries(pageHeaders)) expect(response.headers.get(name)).toBe(value);
    expect(response.headers.get("vary")).toBe("Accept");
  });

  test("gets the same page whether the record exists or not", async () => {
    const pages = await Promise.all(
      [incidentId, 987_654].map(async (id) => {
        const response = await open(`/incidents/${id}`);
        const headers = [...response.headers].filter(
          ([name]) => !["date", "x-request-id", "content-length"].includes(name),
        );
        return { headers, text: (await response.text()).replaceAll(`view ${id}<`, "view ID<") };
      }),
    );
    expect(pages[0]).toEqual(pages[1]!);
  });

  test("gets the same answer to HEAD, without a body", async () => {
    const [get, head] = [await open("/incidents/44"), await open("/incidents/44", { method: "HEAD" })];
    const headersOf = ({ headers }: Response) =>
      [...headers].filter(([name]) => !["date", "x-request-id"].includes(name)).sort();
    expect([head.status, headersOf(head), await head.text()]).toEqual([401, headersOf(get), ""]);
  });

  test("gets the page with a token that is no longer valid in its cookie, too", async () => {
    const response = await open("/incidents/44", { headers: { cookie: "svc_auth=a.b.c" } });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      401,
      "text/html; charset=utf-8",
    ]);
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
