import { describe, expect, test } from "bun:test";
import { useFrontEnd } from "../../tests/support/http/front_end_server.ts";
import { newChallenge, poll, signInToken, type TestServer } from "../../tests/support/http/server.ts";
import { pageHeaders } from "../page/page.ts";
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

describe("security headers", () => {
  test("are on every answer of every route, successful or not", async () => {
    const authorization = `Bearer ${await signInToken(server())}`;
    for (const { method, path } of server().app.routes) {
      const address = path.replaceAll(/:\w+/g, "1").replace("*", "nothing");
      for (const headers of [new Headers(), new Headers({ authorization })]) {
        const verb = method === "ALL" ? "GET" : method;
        const what = `${verb} ${address}`;
        const response = await server().fetch(address, { method: verb, headers });
        expectStrict(what, response);
        const cacheable = /^\/(icon\.svg|openapi|\.well-known)/.test(path);
        if (!cacheable) expect([what, response.headers.get("cache-control")]).toEqual([what, "no-store"]);
      }
    }
  });

  test("are on a poll answered from memory, and on an answer without a valid address", async () => {
    const challenge = await newChallenge(server());
    await poll(server(), challenge);
    const again = await server().fetch(challenge.pollPath, {
      headers: { authorization: `Challenge ${challenge.verifier}` },
    });
    expectStrict("poll", again);
    expect(again.headers.get("cache-control")).toBe("no-store");
    expectStrict("no host", await server().fetch("/healthcheck", { headers: { host: "a b" } }));
  });

  test("let a front end's file run its own scripts only", async () => {
    for (const path of ["/", "/assets/index-C9dQ2LpZ.js"]) {
      const response = await server().fetch(path);
      expectStrict(path, response);
      expect(response.headers.get("content-security-policy")).toStartWith(
        "default-src 'self'; style-src 'self'",
      );
    }
  });

  test("are on the error page of svc server develop", async () => {
    await using page = errorPage({ host: "127.0.0.1", port: 0 }, "ended", ["<script>"]);
    const { headers } = await fetch(page.url);
    expect(headers.get("content-security-policy")).toBe(pageHeaders["content-security-policy"]);
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

describe("Strict-Transport-Security", () => {
  const told = async (to: TestServer, proto?: string, path = "/healthcheck", more = {}) => {
    const headers = { ...(proto === undefined ? {} : { "x-forwarded-proto": proto }), ...more };
    return (await to.fetch(path, { headers })).headers.get("strict-transport-security");
  };

  test("is sent when a trusted proxy reports https, and never otherwise", async () => {
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

  test("is sent with errors, a poll answered from memory, and an answer without a valid address", async () => {
    await using proxied = await server().another({ proxyHeaders: true, trustedProxies: "127.0.0.1" });
    const challenge = await newChallenge(proxied);
    await poll(proxied, challenge);
    const verifier = { authorization: `Challenge ${challenge.verifier}` };
    expect(await told(proxied, "https", challenge.pollPath, verifier)).toBe("max-age=31536000");
    expect(await told(proxied, "https", "/whoami")).toBe("max-age=31536000");
    expect(await told(proxied, "https", "/healthcheck", { host: "a b" })).toBe("max-age=31536000");
  });
});

test("Strict-Transport-Security is sent when the server itself ends TLS", () => {
  const security = new SecurityHeaders(proxyTrust(false, "127.0.0.1"), { server: null });
  const name = "strict-transport-security";
  const told = (url: string) => [
    security.of(new Request(url))[name],
    security.add(new Response(), new Request(url)).headers.get(name),
  ];
  expect(told("https://a/")).toEqual(["max-age=31536000", "max-age=31536000"]);
  for (const url of ["http://a/", "http://a/https:"]) expect(told(url)).toEqual([undefined, null]);
});
