import { describe, expect, test } from "bun:test";
import { SvcError } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { NOW, script, testIo } from "../../tests/support/cli/io.ts";
import type { Challenge } from "../client/answer.ts";
import type { Fetch } from "../io.ts";
import { awaitDecision, backoff } from "./poll.ts";

const server = { base: "https://svc.example", origin: "https://svc.example" };
const challenge: Challenge = {
  challengeUrl: "https://svc.example/challenge_validator/T0",
  pollingUrl: "https://svc.example/noauth/v1/challenge_poller/T0",
  lifetime: 120,
  interval: 2,
  userCode: "WXYZ-2345",
  bound: true,
};
const pending = Response.json({ status: "pending" });
const token = fakeToken({ now: NOW.getTime() });
const success = Response.json({ status: "success", encoded_jwt: token, user: "alice@example.com" });
/** With the time of the server. */
const timely = new Response(success.clone().body, { headers: { date: NOW.toUTCString() } });

function poll(fetch: Fetch, change: Partial<Challenge> = {}, env: Record<string, string> = {}) {
  const notes: string[] = [];
  const controller = new AbortController();
  const io = testIo({ fetch, env });
  const options = {
    verifier: "v".repeat(43),
    signal: controller.signal,
    note: (line: string) => void notes.push(line),
  };
  return { io, notes, controller, result: awaitDecision(io, server, { ...challenge, ...change }, options) };
}

test("polls at the interval until it is approved", async () => {
  const { io, result } = poll(script(pending, pending, success));
  expect(await result).toMatchObject({ status: "success", token: { token }, user: "alice@example.com" });
  expect(io.slept).toEqual([2000, 2000]);
});

test("a bound poll sends the verifier and may be held; a poll of an old server does neither", async () => {
  for (const bound of [true, false]) {
    const seen: unknown[] = [];
    const fetch: Fetch = async (url, { headers }) => {
      const { authorization, prefer } = headers as Record<string, string>;
      seen.push({ url, authorization, prefer });
      return success.clone();
    };
    await poll(fetch, { bound }).result;
    const [authorization, prefer] = bound ? [`Challenge ${"v".repeat(43)}`, "wait=25"] : [];
    expect(seen).toEqual([{ url: challenge.pollingUrl, authorization, prefer }]);
  }
});

test("a poll that was held longer than the interval is followed immediately", async () => {
  const { io, result } = poll(
    script(() => {
      io.clock.now = () => new Date(NOW.getTime() + 25_000);
      return pending.clone();
    }, success),
  );
  await result;
  expect(io.slept).toEqual([0]);
});

describe("fails with a specific message for", () => {
  const codeAndSentence = async (fetch: Fetch, change?: Partial<Challenge>) => {
    const { io, result } = poll(fetch, change);
    const error = await result.then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(SvcError);
    const { code, detail } = error as SvcError;
    return { code, detail, slept: io.slept };
  };
  test.each([
    ["denied", 403, "forbidden", "the sign-in was denied in the browser"],
    ["expired", 410, "unavailable", "the sign-in was not approved in time; run svc login again"],
    ["unknown", 404, "not_found", "the server does not know this sign-in; run svc login again"],
  ])("%s", async (status, http, code, detail) => {
    const answer = Response.json({ status }, { status: http });
    expect(await codeAndSentence(script(answer))).toEqual({ code, detail, slept: [] } as never);
  });

  test("a server that never decides, at the end of the lifetime", async () => {
    const { detail, slept } = await codeAndSentence(script(pending), { lifetime: 10 });
    expect(detail).toBe("the sign-in was not approved in time; run svc login again");
    expect(slept.reduce((a, b) => a + b)).toBe(12_000);
  });

  test("a network that does not recover, at the end of the lifetime", async () => {
    const reset = Object.assign(new TypeError("x"), { code: "ECONNRESET" });
    const { detail, slept } = await codeAndSentence(script(reset), { lifetime: 30 });
    expect(detail).toBe("the sign-in was not approved in time; run svc login again");
    expect(slept).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000, 500]);
  });
});

describe("an answer that is not from svc is a network fault", () => {
  const elsewhere = { headers: { location: "https://portal.example/" }, status: 302 };
  const untrusted = Object.assign(new Error("x"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
  const tunnel = Object.assign(new Error("x"), { code: "ERR_PROXY_TUNNEL", status: 407 });
  const withPassword =
    "cannot reach https://svc.example through the proxy http://proxy:3128 (HTTPS_PROXY): the proxy asks for a user name and a password (HTTP 407)";
  test.each<[string, Response | Error, string]>([
    ["a captive portal's page", new Response("<p>Welcome"), "answered with an HTML page (HTTP 200)"],
    ["a page of more than 64 kB", new Response("x".repeat(70_000)), "answered with more than 65536 bytes"],
    ["an empty page", new Response(""), "answered with something that is not JSON (HTTP 200)"],
    ["a redirect to another origin", new Response(null, elsewhere), "redirects to https://portal.example/"],
    ["a portal's certificate", untrusted, "is not trusted"],
    ["a proxy's 407", new Response("<p>Password?", { status: 407 }), withPassword],
    ["a proxy's 407 to CONNECT", tunnel, withPassword],
    ["a gateway's 502", new Response("<p>Bad gateway", { status: 502 }), "is not available (HTTP 502)"],
    [
      "a firewall's 403",
      new Response("<p>Blocked", { status: 403 }),
      "answered with an HTML page (HTTP 403)",
    ],
    ["a gateway's 401", new Response("<p>Sign in", { status: 401 }), "HTTP 401 with something not from svc"],
    ["another program's JSON", Response.json({ hello: 1 }), "HTTP 200 with something not from svc"],
    [
      "another program's status",
      Response.json({ status: "denied", reason: "quota" }),
      "HTTP 200 with something not from svc",
    ],
    [
      "another program's success",
      Response.json({ status: "success", data: {} }),
      "HTTP 200 with something not from svc",
    ],
    [
      "another program's problem",
      Response.json({ message: "no route" }, { status: 404 }),
      "HTTP 404 with something not from svc",
    ],
  ])("%s", async (_name, answer, note) => {
    const { io, notes, result } = poll(
      script(pending, answer, answer, pending, success),
      {},
      {
        HTTPS_PROXY: "http://me:secret@proxy:3128",
      },
    );
    expect(await result).toMatchObject({ status: "success" });
    expect(io.slept).toEqual([2000, 500, 1000, 2000]);
    expect(notes).toEqual([expect.stringContaining(note)]);
    expect(notes[0]).not.toContain("secret");
  });

  test("until the lifetime is over", async () => {
    const { result } = poll(script(pending, new Response("<p>Welcome")));
    await expect(result).rejects.toThrow("the sign-in was not approved in time");
  });
});

test("a network error is retried with backoff, and reported once", async () => {
  const reset = Object.assign(new TypeError("x"), { code: "ECONNRESET" });
  const { io, notes, result } = poll(
    script(reset, reset, new Response("<html>", { status: 503 }), pending, success),
  );
  expect(await result).toMatchObject({ status: "success" });
  expect(io.slept).toEqual([500, 1000, 2000, 2000]);
  expect(notes).toEqual(["cannot reach https://svc.example (ECONNRESET); trying again"]);
});

test("an answer resets the backoff", async () => {
  const reset = Object.assign(new TypeError("x"), { code: "ECONNRESET" });
  const { io, notes, result } = poll(script(reset, reset, pending, reset, success));
  await result;
  expect(io.slept).toEqual([500, 1000, 2000, 500]);
  expect(notes).toHaveLength(2);
});

test("a server error is retried", async () => {
  const { io, result } = poll(
    script(Response.json({ code: "internal", detail: "Oops" }, { status: 500 }), success),
  );
  expect(await result).toMatchObject({ status: "success" });
  expect(io.slept).toEqual([500]);
});

test("obeys Retry-After, but never polls faster than the interval", async () => {
  const slow = (seconds: string) =>
    Response.json({ status: "pending" }, { status: 429, headers: { "retry-after": seconds } });
  const { io, result } = poll(script(slow("7"), slow("1"), slow("soon"), success));
  await result;
  expect(io.slept).toEqual([7000, 2000, 2000]);
});

test("limits Retry-After to the lifetime", async () => {
  const slow = Response.json({ status: "pending" }, { status: 429, headers: { "retry-after": "9999" } });
  const { io, result } = poll(script(slow));
  await expect(result).rejects.toThrow("not approved in time");
  expect(io.slept).toEqual([122_000]);
});

test.each([
  ["ahead", 2 * 86_400_000],
  ["back", -2 * 86_400_000],
])("a clock of this machine that is set %s does not end a sign-in, nor make it wait", async (_name, jump) => {
  const reset = Object.assign(new TypeError("x"), { code: "ECONNRESET" });
  const { io, result } = poll(
    script(
      pending,
      () => {
        const { now } = io.clock;
        io.clock.now = () => new Date(now().getTime() + jump);
        throw reset;
      },
      pending,
      timely,
    ),
  );
  expect(await result).toMatchObject({ status: "success" });
  expect(Math.max(...io.slept)).toBeLessThanOrEqual(2000);
});

test("the time in another program's answer does not end a sign-in", async () => {
  const headers = { date: "Thu, 01 Jan 2099 00:00:00 GMT" };
  const { result } = poll(script(pending, Response.json({ hello: 1 }, { headers }), pending, timely));
  expect(await result).toMatchObject({ status: "success" });
});

test("Ctrl-C during the pause stops polling", async () => {
  const { controller, result } = poll(
    script(() => {
      controller.abort(new Error("stop"));
      return pending.clone();
    }),
  );
  await expect(result).rejects.toThrow("stop");
});

test("backoff", () => {
  expect([1, 2, 3, 4, 5, 6, 60].map(backoff)).toEqual([0.5, 1, 2, 4, 8, 8, 8]);
});
