import { describe, expect, test } from "bun:test";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

test("the log has the user, the client's address and the duration", async () => {
  await using server = await startTestServer({ proxyHeaders: true });
  const person = await personOf(server, "carol@example.com");
  const { headers } = await person.call("GET", "/whoami");
  const line = await requestLine(server, headers.get("x-request-id"));
  expect(line).toMatchObject({ user: "carol@example.com", duration_ms: expect.any(Number) });
  expect(line.duration_ms).toBeWithin(0, 60_000);
  const stranger = await server.fetch("/whoami", {
    headers: { "x-forwarded-for": "192.0.2.7", authorization: "Bearer carol@example.com" },
  });
  const refused = await requestLine(server, stranger.headers.get("x-request-id"));
  expect(refused).toMatchObject({ status: 401, address: "192.0.2.7" });
  expect(Object.keys(refused)).not.toContain("user");
});

test("polls and successful health checks are logged at a lower level, because machines send them every few seconds", async () => {
  await using server = await startTestServer();
  const levelOf = async (path: string, status: number) => {
    const answer = await server.fetch(path);
    expect(answer.status).toBe(status);
    return (await requestLine(server, answer.headers.get("x-request-id"))).level;
  };
  const [debug, info] = [20, 30];
  expect(await levelOf(`/noauth/v1/challenge_poller/${"a".repeat(43)}`, 404)).toBe(debug);
  expect(await levelOf("/healthcheck", 200)).toBe(debug);
  expect(await levelOf("/icon.svg", 200)).toBe(info);
  await server.db.execute("delete from revision");
  await until("a failed health check", async () => (await server.fetch("/healthcheck")).status === 503);
  expect(await levelOf("/healthcheck", 503)).toBe(info);
});

describe("strangers do not fill the log", () => {
  const linesOf = ({ logged }: TestServer, msg: string) =>
    logged.map((text) => JSON.parse(text)).filter((line) => line.msg === msg);
  const ask = (server: TestServer, path: string, times: number) =>
    Promise.all(Array.from({ length: times }, () => server.fetch(path)));

  test.each([
    ["refused requests of one kind up to 60 in a minute", "/whoami", 401, 60],
    ["requests to a public route up to 600 in a minute", "/.well-known/jwks.json", 200, 600],
  ])("%s are logged one by one; the others are counted", async (_, path, status, most) => {
    const server = await startTestServer();
    await ask(server, path, most + 100);
    await server.fetch("/nowhere");
    await until("the lines", () => linesOf(server, "request").length > most);
    expect(linesOf(server, "request").filter((line) => line.status === status)).toHaveLength(most);
    // The remaining counts are written when the server stops.
    await server[Symbol.asyncDispose]();
    const [counted, ...more] = linesOf(server, "requests left out of the log");
    expect(more).toEqual([]);
    expect(counted).toMatchObject({ status });
    expect(counted.count).toBeWithin(1, 101);
  });

  test("every request with a valid token is logged, refused or not", async () => {
    await using server = await startTestServer();
    const person = await personOf(server, "carol@example.com");
    for (let i = 0; i < 70; i += 1) await person.call("GET", "/documents/4711", undefined);
    await until(
      "the lines",
      () => linesOf(server, "request").filter(({ status }) => status === 404).length === 70,
    );
    expect(linesOf(server, "requests left out of the log")).toEqual([]);
  });

  test("nor do failures with their stacks", async () => {
    await using server = await startTestServer();
    await ask(server, "/sign_in/callback", 100);
    expect(linesOf(server, "nobody was signed in")).toHaveLength(60);
    server.clock.advance(60);
    await ask(server, "/sign_in/callback", 1);
    const failure = { failure: "nobody was signed in", error: "Unauthenticated", count: 40 };
    expect(linesOf(server, "failed requests left out of the log")).toMatchObject([failure]);
  });
});

/** The line is written after the answer. */
async function requestLine({ logged }: TestServer, id: string | null) {
  const line = () =>
    logged.map((text) => JSON.parse(text)).find((one) => one.msg === "request" && one.request_id === id);
  while (!line()) await Bun.sleep(1);
  return line();
}

describe("the request id set by a proxy", () => {
  const ids: [string, boolean][] = [
    ["7f3c1a2e-9b4d-4c6a-8f10-2d5e6b7c8a90", true],
    ["Root=1-67891233-abcdef012345678912345678", true],
    ["a/b+c:d.e_f@g", true],
    ["x".repeat(128), true],
    ["x".repeat(129), false],
    ["two words", false],
    ['","msg":"forged', false],
    ["a\ttab", false],
    ["<b>bold</b>", false],
    ["ümlaut", false],
    ["", false],
  ];

  test("is used if it is at most 128 printable characters", async () => {
    await using server = await startTestServer({ proxyHeaders: true });
    for (const [id, taken] of ids) {
      const answer = await server.fetch("/documents/abc", { headers: { "x-request-id": id } });
      const answered = answer.headers.get("x-request-id");
      expect([id, answered === id]).toEqual([id, taken]);
      expect(answered).toMatch(taken ? /./ : /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-z]+$/);
      // The log, the answer's header and its body have the same id.
      expect(((await answer.json()) as { request_id: string }).request_id).toBe(answered!);
      expect((await requestLine(server, answered)).route).toBe("/documents/:document_id");
    }
  });

  test("is used only from trusted proxies", async () => {
    const idBy = async (overrides: Parameters<typeof startTestServer>[0]) => {
      await using server = await startTestServer(overrides);
      const headers = { "x-request-id": "given", "x-forwarded-for": "127.0.0.1" };
      return (await server.fetch("/healthcheck", { headers })).headers.get("x-request-id");
    };
    expect(await idBy({ proxyHeaders: true })).toBe("given");
    expect(await idBy({ proxyHeaders: true, trustedProxies: "10.0.0.0/8" })).not.toBe("given");
    expect(await idBy({})).not.toBe("given");
  });
});
