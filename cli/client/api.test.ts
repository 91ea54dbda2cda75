import { describe, expect, test } from "bun:test";
import { Forbidden, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { script, testIo } from "../../tests/support/cli/io.ts";
import type { Fetch } from "../io.ts";
import { revoke, whoami } from "./api.ts";
import { readToken } from "./token.ts";

const server = { base: "https://svc.example/team", origin: "https://svc.example" };
const token = readToken(fakeToken())!;
const alice = {
  user: "alice@example.com",
  groups: ["admin"],
  admin: true,
  expires_at: "2026-01-02T03:04:05Z",
};
const ask = (fetch: Fetch) =>
  whoami(testIo({ fetch }), { endpoint: server, token }, new AbortController().signal);

test("calls the server with the token, below its path", async () => {
  const requests: unknown[] = [];
  const fetch: Fetch = async (url, { method, headers }) => {
    requests.push([method, url, (headers as Record<string, string>).authorization]);
    return method === "GET" ? Response.json(alice) : new Response(null, { status: 204 });
  };
  expect(await ask(fetch)).toEqual({ ...alice, expires_at: "2026-01-02T03:04:05.000Z" });
  await revoke(testIo({ fetch }), { endpoint: server, token }, new AbortController().signal);
  expect(requests).toEqual([
    ["GET", "https://svc.example/team/whoami", `Bearer ${token.token}`],
    ["DELETE", "https://svc.example/team/tokens/current", `Bearer ${token.token}`],
  ]);
});

describe("an answer that is not a user is refused", () => {
  test.each([
    ["no user", { user: undefined }],
    ["a user that cannot be shown", { user: "\x1b[2J" }],
    ["no groups", { groups: undefined }],
    ["an admin that is neither", { admin: "yes" }],
    ["an end that is no time", { expires_at: "soon" }],
  ])("%s", async (_name, change) => {
    await expect(ask(script(Response.json({ ...alice, ...change })))).rejects.toEqual(
      new Unavailable("https://svc.example/team answered with an invalid user"),
    );
  });
});

test("groups that cannot be shown, and thousands of them, do not matter", async () => {
  const groups = ["", "on\u00adcall", "\x1b[2J", ...Array.from({ length: 2000 }, () => crypto.randomUUID())];
  expect((await ask(script(Response.json({ ...alice, groups })))).groups).toEqual(groups);
  expect((await ask(script(Response.json({ ...alice, groups: ["admin", 42, null] })))).groups).toEqual([
    "admin",
    "42",
    "null",
  ]);
});

test("problems and network errors keep their messages", async () => {
  const problem = (status: number, code: string) => Response.json({ code, detail: "Why" }, { status });
  await expect(ask(script(problem(401, "unauthenticated")))).rejects.toBeInstanceOf(Unauthenticated);
  await expect(ask(script(problem(403, "forbidden")))).rejects.toEqual(new Forbidden("Why"));
  await expect(ask(script(problem(503, "unavailable")))).rejects.toEqual(new Unavailable("Why"));
  const refused = Object.assign(new TypeError("x"), { code: "ECONNREFUSED" });
  await expect(ask(script(refused))).rejects.toThrow(
    "cannot reach https://svc.example/team: connection refused",
  );
  await expect(ask(script(new Response("<html>")))).rejects.toThrow("an HTML page");
});
