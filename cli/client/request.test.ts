import { describe, expect, test } from "bun:test";
import { version } from "../../package.json";
import { NotFound, TooManyRequests, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { createInspectionApp } from "../../server/inspection.ts";
import { script, testIo } from "../../tests/support/cli/io.ts";
import { Interrupted } from "../errors.ts";
import { NetworkFault, openStream, problem, request, retryAfter } from "./request.ts";
import { chooseServer } from "./server.ts";

const server = { base: "https://svc.example", origin: "https://svc.example" };
const url = "https://svc.example/whoami";
const ask = (...answers: Parameters<typeof script>) =>
  request(testIo({ fetch: script(...answers) }), server, url);

test("returns a JSON object with any status", async () => {
  expect(await ask(Response.json({ a: 1 }))).toMatchObject({ status: 200, body: { a: 1 } });
  expect(await ask(Response.json({ code: "x" }, { status: 403 }))).toMatchObject({
    status: 403,
    body: { code: "x" },
  });
  expect(await ask(new Response(null, { status: 204 }))).toMatchObject({ status: 204, body: {} });
});

test.each([
  ["a page", "<html>Too many</html>"],
  ["text", "slow down"],
  ["a list", "[1]"],
  ["nothing", ""],
  ["too much", "x".repeat(70_000)],
])("401 and 429 need no JSON: %s", async (_name, body) => {
  const headers = { "retry-after": "7" };
  const ran = async (status: number) => {
    const answer = new Response(body, { status, headers });
    return problem(await ask(answer), server);
  };
  expect(await ran(401)).toBeInstanceOf(Unauthenticated);
  expect(await ran(429)).toEqual(new TooManyRequests(7));
  const opened = (status: number) =>
    openStream(testIo({ fetch: script(new Response(body, { status, headers })) }), server, url, {});
  expect(opened(401)).rejects.toBeInstanceOf(Unauthenticated);
  expect(opened(429)).rejects.toEqual(new TooManyRequests(7));
});

test("redirects are not followed, and loopback never goes through a proxy", async () => {
  const inits: BunFetchRequestInit[] = [];
  const io = testIo({
    fetch: async (_url, init) => {
      inits.push(init);
      return Response.json({});
    },
  });
  await request(io, server, url, { headers: { authorization: "Bearer x" } });
  await request(
    io,
    { base: "http://127.0.0.1:8000", origin: "http://127.0.0.1:8000" },
    "http://127.0.0.1:8000/whoami",
  );
  expect(inits.map(({ redirect }) => redirect)).toEqual(["manual", "manual"]);
  expect(inits.map((init) => (init as { proxy?: unknown }).proxy)).toEqual([undefined, false]);
  expect(inits[0]!.headers).toMatchObject({ authorization: "Bearer x", accept: "application/json" });
});

describe("permanent failures", () => {
  const html = (status: number) => new Response(" <!doctype html><p>Sign in</p>", { status });
  test.each([
    ["a page", html(200), "https://svc.example answered with an HTML page (HTTP 200); is it an svc server?"],
    [
      "a page of an error",
      html(500),
      "https://svc.example answered with an HTML page (HTTP 500); is it an svc server?",
    ],
    [
      "text",
      new Response("ok"),
      "https://svc.example answered with something that is not JSON (HTTP 200); is it an svc server?",
    ],
    [
      "a list",
      Response.json([1]),
      "https://svc.example answered with something that is not JSON (HTTP 200); is it an svc server?",
    ],
    [
      "nothing",
      new Response(""),
      "https://svc.example answered with something that is not JSON (HTTP 200); is it an svc server?",
    ],
    [
      "too much",
      Response.json({ pad: "x".repeat(70_000) }),
      "https://svc.example answered with more than 65536 bytes",
    ],
    [
      "a redirect",
      new Response(null, { status: 302, headers: { location: "https://evil.example/\x7fx?y" } }),
      "https://svc.example redirects to https://evil.example/%7Fx?y, which svc does not follow; if that is the server, use --server https://evil.example",
    ],
    [
      "a redirect to nowhere",
      new Response(null, { status: 301 }),
      "https://svc.example redirects to nowhere, which svc does not follow",
    ],
    [
      "a redirect to a file",
      new Response(null, { status: 307, headers: { location: "file:///etc/passwd" } }),
      "https://svc.example redirects to file:///etc/passwd, which svc does not follow",
    ],
    [
      "a certificate",
      Object.assign(new TypeError("x"), { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }),
      "the certificate of https://svc.example is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE); if your own authority signed it, set NODE_EXTRA_CA_CERTS to its PEM file",
    ],
    [
      "a certificate of another host",
      Object.assign(new TypeError("x"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" }),
      "the certificate of https://svc.example is for another host name",
    ],
  ])("%s", async (_name, answer, message) => {
    const error = await ask(answer).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(Unavailable);
    expect(error).not.toBeInstanceOf(NetworkFault);
    expect((error as Error).message).toBe(message);
  });
});

test("an endless body is not read completely", async () => {
  let sent = 0;
  let cancelled = false;
  const endless = new ReadableStream({
    pull(controller) {
      sent += 10_000;
      controller.enqueue(new Uint8Array(10_000).fill(32));
    },
    cancel() {
      cancelled = true;
    },
  });
  const io = testIo({ fetch: async () => new Response(endless) });
  await expect(request(io, server, url)).rejects.toThrow("more than 65536 bytes");
  expect(cancelled).toBeTrue();
  expect(sent).toBeLessThan(200_000);
});

test("where nothing was chosen and nothing listens, it says how to name the server", async () => {
  const refused = Object.assign(new TypeError("x"), { code: "ECONNREFUSED" });
  const io = testIo({ fetch: () => Promise.reject(refused) });
  const local = chooseServer(undefined, undefined, () => undefined);
  await expect(request(io, local, `${local.base}/whoami`)).rejects.toThrow(
    "cannot reach http://127.0.0.1:8000: connection refused; if your server is elsewhere: svc login --server URL",
  );
});

describe("transient failures", () => {
  const failure = (code: string) => Object.assign(new TypeError("x"), { code });
  test.each([
    ["ECONNREFUSED", failure("ECONNREFUSED"), "cannot reach https://svc.example: connection refused"],
    ["ENOTFOUND", failure("ENOTFOUND"), "cannot reach https://svc.example: no such host"],
    [
      "ERR_PROXY_TUNNEL",
      failure("ERR_PROXY_TUNNEL"),
      "cannot reach https://svc.example: the proxy refused the connection",
    ],
    [
      "plain http",
      failure("EPROTO"),
      "cannot reach https://svc.example: the TLS handshake failed; if the server speaks plain http there, use --server http://svc.example",
    ],
    ["ECONNRESET", failure("ECONNRESET"), "cannot reach https://svc.example (ECONNRESET)"],
    ["a time-out", new DOMException("x", "TimeoutError"), "https://svc.example did not answer within 10 s"],
    [
      "a gateway's page",
      new Response("<html>", { status: 502 }),
      "https://svc.example is not available (HTTP 502)",
    ],
    [
      "a gateway's page that says when to try again",
      new Response("<html>", { status: 503, headers: { "retry-after": "120" } }),
      "https://svc.example is not available (HTTP 503); try again in 120 s",
    ],
  ])("%s", async (_name, answer, message) => {
    const error = await ask(answer).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(NetworkFault);
    expect((error as Error).message).toBe(message);
  });
});

test("Ctrl-C is not reported as a network error", async () => {
  const controller = new AbortController();
  const io = testIo({
    fetch: async (_url, { signal }) => {
      controller.abort();
      throw (signal as AbortSignal).reason;
    },
  });
  await expect(request(io, server, url, { signal: controller.signal })).rejects.toBeInstanceOf(Interrupted);
});

describe("a problem", () => {
  const answer = (status: number, body: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
    problem({ status, body, headers: new Headers(headers) }, server);

  test("shows its detail and the request's id, in printable characters", () => {
    const { message } = answer(400, { code: "invalid_input", detail: "No \x1b[1mname", request_id: "r\n1" });
    expect(message).toBe("No \uFFFD[1mname (request r\uFFFD1)");
  });
  test("a route that the server does not have, as the server itself says it", async () => {
    const app = await createInspectionApp({});
    const response = await app.handle(new Request("https://svc.example/teleporters/"));
    const { status, headers } = response;
    const body = (await response.json()) as Record<string, unknown>;
    const error = problem({ status, headers, body: { ...body, request_id: "r1" } }, server);
    expect(error).toBeInstanceOf(NotFound);
    expect(error.message).toBe(
      `https://svc.example does not have what this command needs: it may run another release than this svc (${version}) (request r1)`,
    );
  });
  test("a path that does not belong to the address", async () => {
    const app = await createInspectionApp({});
    const response = await app.handle(
      new Request("https://svc.example/team/noauth/v1/challenge_generator/ada"),
    );
    const body = (await response.json()) as Record<string, unknown>;
    const { status, headers } = response;
    const base = "https://svc.example/team";
    const error = problem({ status, headers, body: { ...body, request_id: "r1" } }, { ...server, base });
    expect([status, error.message]).toEqual([
      404,
      "https://svc.example is an svc server, but has nothing below /team: use --server https://svc.example, unless a proxy removes that path (request r1)",
    ]);
  });
  test("a 404 of a gateway says nothing about our records", () => {
    const error = problem({ status: 404, headers: new Headers(), body: { error: "no route" } }, server);
    expect(error).toBeInstanceOf(Unavailable);
    expect(error.message).toBe("https://svc.example answered HTTP 404; is it an svc server?");
  });
  test("without a detail", () => expect(answer(500).message).toBe("https://svc.example answered HTTP 500"));
  test("401", () => expect(answer(401)).toBeInstanceOf(Unauthenticated));
  test.each([
    [400, "invalid_input"],
    [403, "forbidden"],
    [404, "not_found"],
    [408, "unavailable"],
    [409, "conflict"],
    [412, "conflict"],
    [413, "invalid_input"],
    [422, "invalid_input"],
    [425, "unavailable"],
    [500, "unavailable"],
    [503, "unavailable"],
  ] as const)("with status %i has the code %s", (status, code) =>
    expect(answer(status, { detail: "No" }).code).toBe(code),
  );
  test("409 with a time to retry at is a failure that may pass", () =>
    expect(answer(409, {}, { "retry-after": "5" })).toBeInstanceOf(Unavailable));
  test("names the field that is invalid", () =>
    expect(answer(400, { field: "name\n" })).toMatchObject({ field: "name\uFFFD" }));
  test("429", () => {
    expect(answer(429, {}, { "retry-after": "17" })).toEqual(new TooManyRequests(17));
    expect(answer(429)).toEqual(new TooManyRequests(60));
  });
});

test("Retry-After in seconds, and nothing else", () => {
  const read = (value: string) => retryAfter(new Headers({ "retry-after": value }));
  expect(read("3")).toBe(3);
  for (const value of ["-1", "1e9", "Wed, 21 Oct 2015 07:28:00 GMT", "99999999999"])
    expect(read(value)).toBeUndefined();
});
