import { expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { useFrontEnd } from "../tests/support/http/front_end_server.ts";
import { exchange } from "../tests/support/http/raw_http.ts";
import { newChallenge, poll, signInToken, type TestServer } from "../tests/support/http/server.ts";
import { until } from "../tests/support/process/until.ts";
import { readHttpsUrls } from "./http/https_urls.ts";
import { usualHeaders } from "./http/security_headers.ts";
import { createInspectionApp } from "./inspection.ts";

/** What holds for every kind of answer, whichever part of the server creates it. */

const { server } = useFrontEnd();

const json = { "content-type": "application/json" };
const incidents = "/incidents/";
const file = "/assets/index-C9dQ2LpZ.js";

interface Asked {
  status: number;
  /** As named in the log. */
  route: string;
  /** With a valid access token. */
  signedIn?: boolean;
  headers?: Record<string, string>;
  body?: string;
}

const kinds: [method: string, path: string, asked: Asked][] = [
  ["GET", "/healthcheck", { status: 200, route: "/healthcheck" }],
  ["HEAD", "/healthcheck", { status: 200, route: "/healthcheck" }],
  ["GET", "/healthcheck/?x=1", { status: 200, route: "/healthcheck" }],
  ["GET", "/icon.svg", { status: 200, route: "/icon.svg" }],
  ["GET", "/openapi", { status: 200, route: "/openapi" }],
  ["GET", "/whoami", { status: 401, route: "/whoami" }],
  ["GET", "/whoami", { status: 200, route: "/whoami", signedIn: true }],
  ["GET", "/whoami?x=1", { status: 400, route: "/whoami", signedIn: true }],
  ["HEAD", "/whoami?x=1", { status: 400, route: "/whoami", signedIn: true }],
  ["GET", `${incidents}?limit=1&limit=2`, { status: 400, route: incidents, signedIn: true }],
  ["GET", "/incidents/x", { status: 400, route: "/incidents/:incident_id", signedIn: true }],
  ["GET", "/incidents/999999", { status: 404, route: "/incidents/:incident_id", signedIn: true }],
  ["POST", incidents, { status: 400, route: incidents, signedIn: true, headers: json, body: "{" }],
  ["POST", incidents, { status: 400, route: incidents, signedIn: true, headers: json, body: "{}" }],
  ["POST", incidents, { status: 401, route: incidents, headers: json, body: "{}" }],
  ["GET", "/approve/x", { status: 400, route: "/approve/:id" }],
  ["GET", "/sign_in/callback", { status: 401, route: "/sign_in/callback" }],
  [
    "GET",
    `/challenge_validator/${"a".repeat(43)}`,
    { status: 404, route: "/challenge:validator/:challengeToken" },
  ],
];

/** With a front end. */
const files: typeof kinds = [
  ["GET", "/", { status: 200, route: "/*" }],
  ["GET", file, { status: 200, route: "/*", headers: { "accept-encoding": "gzip" } }],
  ["GET", "/guide", { status: 308, route: "/*" }],
  ["OPTIONS", file, { status: 204, route: "/*" }],
  ["PUT", file, { status: 405, route: "/*" }],
  ["PUT", "/healthcheck", { status: 405, route: "/*" }],
  ["GET", "/incidents/1/2/3", { status: 404, route: "/*" }],
];

/** Without a front end, these match no route. */
const unmatched: typeof kinds = [
  ["GET", "/noauth/v2", { status: 404, route: "/noauth/*" }],
  ["OPTIONS", "/healthcheck", { status: 204, route: "none" }],
  ["PUT", "/healthcheck", { status: 405, route: "none" }],
  ["GET", "/incidents/1/2/3", { status: 404, route: "none" }],
  ["HEAD", "/nowhere?x=1", { status: 404, route: "none" }],
  ["POST", "/nowhere", { status: 404, route: "none", headers: json, body: "{" }],
  ["POST", "/sign_in/nowhere", { status: 404, route: "none" }],
];

const lineOf = ({ logged }: TestServer, id: string | null) =>
  until(`the line of ${id}`, () =>
    logged.map((text) => JSON.parse(text)).find((line) => line.msg === "request" && line.request_id === id),
  );

async function expectWhole(
  to: TestServer,
  [method, path, asked]: (typeof kinds)[number],
  authorization: string,
) {
  const { status, route, signedIn, body } = asked;
  const headers = { ...(signedIn ? { authorization } : {}), ...asked.headers };
  const response = await to.fetch(path, { method, headers, body });
  const text = await response.text();
  expect([method, path, response.status]).toEqual([method, path, status]);
  for (const name of Object.keys(usualHeaders))
    expect([name, response.headers.get(name)]).toEqual([name, expect.any(String)]);
  const id = response.headers.get("x-request-id");
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-z]+$/);
  if (text.startsWith("{") && status >= 400) expect(JSON.parse(text).request_id).toBe(id);
  const line = await lineOf(to, id);
  const [debug, info] = [20, 30];
  const level = route === "/healthcheck" && status === 200 ? debug : info;
  expect(line).toMatchObject({ level, method, route, status });
  expect(Object.values(line).join(" ")).not.toMatch(/\?|aaaa/);
  return id;
}

test.each([
  ["with a front end", [...kinds, ...files], {}],
  ["without one", [...kinds, ...unmatched], { staticDir: undefined }],
])("%s, each kind of answer has its headers, a unique id, and one log line", async (_, asked, changed) => {
  await using to = await server().another(changed);
  const authorization = `Bearer ${await signInToken(to)}`;
  const ids = new Set<string | null>();
  for (const kind of asked) ids.add(await expectWhole(to, kind, authorization));
  expect(ids.size).toBe(asked.length);
  const lines = to.logged.map((text) => JSON.parse(text)).filter(({ msg }) => msg === "request");
  for (const id of ids) expect(lines.filter(({ request_id }) => request_id === id)).toHaveLength(1);
});

test("headers that one answer sets do not leak into the next or a concurrent one", async () => {
  const headers = { authorization: `Bearer ${await signInToken(server())}` };
  const keys = await server().fetch("/.well-known/jwks.json");
  expect(keys.headers.get("cache-control")).toBe("public, max-age=300");
  const answers = await Promise.all(Array.from({ length: 20 }, () => server().fetch("/whoami", { headers })));
  for (const answer of answers) expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(new Set(answers.map((answer) => answer.headers.get("x-request-id"))).size).toBe(answers.length);
});

test("nor do those of an unexpected error", async () => {
  const authorization = `Bearer ${await signInToken(server())}`;
  await server().db.execute(sql`alter table term rename to term_elsewhere`);
  try {
    const asked = { status: 500, route: "/terms/:term_id", signedIn: true };
    await expectWhole(server(), ["GET", "/terms/1", asked], authorization);
  } finally {
    await server().db.execute(sql`alter table term_elsewhere rename to term`);
  }
});

test("a held poll is logged when it is answered, with its challenge as a hash of the token", async () => {
  await using to = await server().another();
  const challenge = await newChallenge(to);
  const next = spyOn(to.watch, "next");
  const asked = poll(to, challenge, { headers: { prefer: "wait=30" } });
  await until("the poll to be held", () => next.mock.calls.length > 0);
  await to.watch.stop();
  const { http, headers } = await asked;
  expect(http).toBe(200);
  const line = await lineOf(to, headers.get("x-request-id"));
  const hash = new Bun.CryptoHasher("sha256").update(challenge.token).digest("hex");
  expect(line).toMatchObject({ level: 20, status: 200, challenge: hash.slice(0, 8) });
  const names = "level time request_id method route status duration_ms address challenge msg".split(" ");
  expect(Object.keys(line)).toEqual(names);
});

test("an invalid Host is refused, even after a valid one", async () => {
  const { port } = new URL(server().url);
  const statusOf = async (host: string, path = "/healthcheck") => {
    const answer = await exchange(Number(port), `GET ${path} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    return answer.split(" ")[1];
  };
  const good = ["Host: a\r\n", "Host: A.b:80\r\n", "Host: [::1]:8000\r\n"];
  const bad = [
    "",
    "Host:\r\n",
    "Host: a b\r\n",
    "Host: ]\r\n",
    "Host: :80\r\n",
    "Host: a:x\r\n",
    "Host: %00\r\n",
  ];
  const twice = ["Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host: a, a\r\n", "Host: a,b\r\n"];
  for (const host of good) {
    expect([host, await statusOf(host)]).toEqual([host, "200"]);
    // After a valid one, which is cached.
    for (const other of [...bad, ...twice]) expect([other, await statusOf(other)]).toEqual([other, "400"]);
  }
  expect(await statusOf("Host: a\r\n", "http://[/healthcheck")).toBe("200");
});

test("over TLS, a host name too short for the router is refused", async () => {
  const app = await createInspectionApp({});
  readHttpsUrls(app);
  const statusOf = async (host: string, path: string) =>
    (await app.handle(new Request(`https://${host}${path}`))).status;
  for (const good of ["abc", "ab:8000", "a.b", "[::1]"]) {
    expect([good, await statusOf(good, "/plugins")]).toEqual([good, 401]);
    // After a valid one, which is cached.
    for (const bad of ["a", "ab"]) {
      expect([bad, await statusOf(bad, "/x/plugins")]).toEqual([bad, 400]);
      expect([bad, await statusOf(bad, "/plugins")]).toEqual([bad, 400]);
    }
  }
});
