import { describe, expect, test } from "bun:test";
import { useFrontEnd } from "../../tests/support/http/front_end_server.ts";
import { newChallenge, poll, signInToken, type TestServer } from "../../tests/support/http/server.ts";
import { errorPage } from "../process/error_page.ts";
import { proxyTrust } from "./address.ts";
import { SecurityHeaders } from "./security_headers.ts";

const { server } = useFrontEnd();

const strict = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

function expectStrict(what: string, { headers }: Response) {
  for (const [name, value] of Object.entries(strict))
    expect([what, name, headers.get(name)]).toEqual([what, name, value]);
  expect([what, headers.get("content-security-policy")]).toEqual([
    what,
    expect.stringContaining("frame-ancestors 'none'"),
  ]);
  expect([what, headers.get("content-security-policy")]).toEqual([
    what,
    expect.stringContaining("default-src '"),
  ]);
  expect([what, headers.get("referrer-policy")]).toEqual([
    what,
    expect.stringMatching(/^(no-referrer|strict-origin-when-cross-origin)$/),
  ]);
  for (const name of ["server", "x-powered-by", "strict-transport-security"])
    expect([what, headers.get(name)]).toEqual([what, null]);
}

describe("what a browser is told", () => {
  test("with every answer of every route, good or bad", async () => {
    const authorization = `Bearer ${await signInToken(server())}`;
    for (const { method, path } of server().app.routes) {
      const address = path.replaceAll(/:\w+/g, "1").replace("*", "nothing");
      for (const headers of [new Headers(), new Headers({ authorization })]) {
        const verb = method === "ALL" ? "GET" : method;
        const what = `${verb} ${address}`;
        const response = await server().fetch(address, { method: verb, headers });
        expectStrict(what, response);
        const cacheable = /^\/(style\.css|icon\.svg|openapi|\.well-known)/.test(path);
        if (!cacheable) expect([what, response.headers.get("cache-control")]).toEqual([what, "no-store"]);
      }
    }
  });

  test("with a poll that memory answers, and with what has no address", async () => {
    const challenge = await newChallenge(server());
    await poll(server(), challenge);
    const again = await server().fetch(challenge.pollPath, {
      headers: { authorization: `Challenge ${challenge.verifier}` },
    });
    expectStrict("poll", again);
    expect(again.headers.get("cache-control")).toBe("no-store");
    expectStrict("no host", await server().fetch("/healthcheck", { headers: { host: "a b" } }));
  });

  test("with a file of a front end: it runs what is its own", async () => {
    for (const path of ["/", "/assets/index-C9dQ2LpZ.js"]) {
      const response = await server().fetch(path);
      expectStrict(path, response);
      expect(response.headers.get("content-security-policy")).toStartWith(
        "default-src 'self'; style-src 'self'",
      );
    }
  });

  test("with the page of svc server develop", async () => {
    await using page = errorPage({ host: "127.0.0.1", port: 0 }, "ended", ["<script>"]);
    const { headers } = await fetch(page.url);
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

describe("Strict-Transport-Security", () => {
  const told = async (to: TestServer, proto?: string, path = "/healthcheck", more = {}) => {
    const headers = { ...(proto === undefined ? {} : { "x-forwarded-proto": proto }), ...more };
    return (await to.fetch(path, { headers })).headers.get("strict-transport-security");
  };

  test("where a proxy that we believe says https, and nowhere else", async () => {
    await using proxied = await server().another({ proxyHeaders: true, trustedProxies: "127.0.0.1" });
    await using stranger = await server().another({ proxyHeaders: true, trustedProxies: "10.0.0.1" });
    expect(await told(proxied, "https")).toBe("max-age=31536000");
    expect(await told(proxied, "http, https")).toBe("max-age=31536000");
    expect(await told(proxied, "HTTPS")).toBe("max-age=31536000");
    expect(await told(proxied, "https, http")).toBeNull();
    expect(await told(proxied, "http")).toBeNull();
    expect(await told(proxied)).toBeNull();
    expect(await told(stranger, "https")).toBeNull();
    expect(await told(server(), "https")).toBeNull();
  });

  test("with errors, a poll that memory answers, and what has no address", async () => {
    await using proxied = await server().another({ proxyHeaders: true, trustedProxies: "127.0.0.1" });
    const challenge = await newChallenge(proxied);
    await poll(proxied, challenge);
    const verifier = { authorization: `Challenge ${challenge.verifier}` };
    expect(await told(proxied, "https", challenge.pollPath, verifier)).toBe("max-age=31536000");
    expect(await told(proxied, "https", "/whoami")).toBe("max-age=31536000");
    expect(await told(proxied, "https", "/healthcheck", { host: "a b" })).toBe("max-age=31536000");
  });
});

test("Strict-Transport-Security over TLS of our own", () => {
  const security = new SecurityHeaders(proxyTrust(false, "127.0.0.1"), { server: null });
  const name = "strict-transport-security";
  const told = (url: string) => [
    security.of(new Request(url))[name],
    security.add(new Response(), new Request(url)).headers.get(name),
  ];
  expect(told("https://a/")).toEqual(["max-age=31536000", "max-age=31536000"]);
  for (const url of ["http://a/", "http://a/https:"]) expect(told(url)).toEqual([undefined, null]);
});
