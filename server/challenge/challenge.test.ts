import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { get, type IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { eq } from "drizzle-orm";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { auditLog, challenge as challengeTable, token } from "../../drizzle/schema/index.ts";
import {
  decide,
  newChallenge,
  poll,
  pollUntilRemembered,
  rowOf,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";

let server: TestServer;
beforeAll(async () => {
  // Limits have separate tests.
  server = await startTestServer({ rateGenerate: 100_000, ratePoll: 1_000_000 });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Polls after the interval, so that rate limits do not apply. */
async function politePoll(...args: Parameters<typeof poll>) {
  server.clock.advance(3);
  return poll(...args);
}

describe("generator", () => {
  test("returns two URLs under the public URL, whatever the Host header says", async () => {
    const response = await server.fetch("/noauth/v1/challenge_generator/alice@example.com", {
      headers: { host: "server:8000", "x-forwarded-host": "evil.example" },
    });
    expect(response.status).toBe(200);
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toEqual({
      challenge_url: expect.stringMatching(new RegExp(`^${server.url}/challenge_validator/[\\w-]{43}$`)),
      polling_url: expect.stringMatching(new RegExp(`^${server.url}/noauth/v1/challenge_poller/[\\w-]{43}$`)),
      expires_in: 120,
      interval: 2,
    });
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    ["the public host", "", 200],
    ["an address, as in a trial or by a probe", "192.0.2.1:8000", 200],
    ["an IPv6 address", "[2001:db8::1]:8000", 200],
    ["this machine", "localhost:8000", 200],
    ["a container", "server:8000", 200],
    ["a service of a cluster", "svc-server.default.svc.cluster.local", 200],
    ["another site's name that resolves here (DNS rebinding)", "evil.example", 403],
    ["another name with a port", "evil.example:8000", 403],
    ["another name with a trailing dot", "evil.example.", 403],
    ["a name that starts like an address", "127.0.0.1.evil.example", 403],
    ["a name that ends like ours", "localhost.evil.example", 403],
  ])("handles a Host that is %s", async (_, host, status) => {
    const headers = { host: host || new URL(server.url).host };
    const asked = await server.fetch("/noauth/v1/challenge_generator/alice", { headers });
    expect(asked.status).toBe(status);
    if (status === 403) expect(await asked.json()).toMatchObject({ status: "forbidden" });
    // The fast path also checks the Host: nothing is answered from memory.
    const challenge = await newChallenge(server);
    for (const _ of [1, 2]) expect((await poll(server, challenge, { headers })).http).toBe(status);
  });

  test("returns the code and the binding to a bound client", async () => {
    const hash = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    const path = `/noauth/v1/challenge_generator/alice?code_challenge=${hash}&code_challenge_method=S256`;
    const body = await (await server.fetch(path)).json();
    expect(body).toMatchObject({ binding: "S256", user_code: expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/) });
  });

  test.each([
    ["code_challenge=short&code_challenge_method=S256", "code_challenge"],
    ["code_challenge_method=S256", "code_challenge"],
    ["code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method"],
    [
      "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=plain",
      "code_challenge_method",
    ],
  ])("refuses %s and names the field", async (query, field) => {
    const response = await server.fetch(`/noauth/v1/challenge_generator/alice?${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ status: "invalid_input", field });
  });

  test.each([
    ["a NUL", "al%00ice"],
    ["a line break", "alice%0d%0aSet-Cookie:x"],
    ["an encoded slash", "a%2fb"],
    ["an encoded path", "..%2f..%2fetc%2fpasswd"],
    ["a broken encoding", "%ff"],
    ["half an encoding", "alice%4"],
    ["markup", "%3Cscript%3E"],
  ])("refuses a user name of %s with a JSON body that has a text status", async (_, name) => {
    const response = await server.fetch(`/noauth/v1/challenge_generator/${name}`);
    expect(response.status).toBe(400);
    expect(response.headers.get("content-type")).toStartWith("application/json");
    const body = await response.json();
    expect(body).toMatchObject({ status: "invalid_input", code: "invalid_input", field: "user" });
    expect(JSON.stringify(body)).not.toContain("passwd");
  });

  test.each([".", ".."])("refuses the literal path segment %p", async (segment) => {
    // fetch would resolve the dots before sending them.
    const path = `/noauth/v1/challenge_generator/${segment}`;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    get(`${server.url}/`, { path }, resolve).on("error", reject);
    const response = await promise;
    // Bun resolves them too, so the result is an invalid user name or another path.
    expect([400, 404]).toContain(response.statusCode!);
    expect(await json(response)).toMatchObject({
      status: expect.stringMatching(/^(invalid_input|not_found)$/),
    });
  });

  test.each([
    ["анна", "анна@example.com"],
    ["Alice", "alice@example.com"],
    ["o'brien+oncall@sub.example.com", "o'brien+oncall@sub.example.com"],
  ])("accepts the user name %s as %s", async (name, canonical) => {
    const challenge = await newChallenge(server, { user: name });
    const [row] = await server.db
      .select()
      .from(challengeTable)
      .where(eq(challengeTable.tokenHash, new Bun.CryptoHasher("sha256").update(challenge.token).digest()));
    expect(row?.userName).toBe(canonical);
  });

  test("answers for an unknown user as for a known one", async () => {
    const [known, stranger] = await Promise.all(
      ["alice@example.com", "nobody-at-all@elsewhere.invalid"].map(async (user) => {
        const response = await server.fetch(`/noauth/v1/challenge_generator/${user}`);
        return { status: response.status, keys: Object.keys((await response.json()) as object) };
      }),
    );
    expect(stranger).toEqual(known!);
  });
});

describe("spellings", () => {
  test.each(["challenge_generator", "challenge:generator", "challenge%3Agenerator"])(
    "%s generates",
    async (spelling) => {
      expect((await server.fetch(`/noauth/v1/${spelling}/alice`)).status).toBe(200);
    },
  );

  test.each(["challengeXgenerator", "challenge-generator", "challengegenerator", "challenge::generator"])(
    "%s does not, and answers JSON with a status",
    async (spelling) => {
      const response = await server.fetch(`/noauth/v1/${spelling}/alice`);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ status: "not_found" });
    },
  );

  test("the poller accepts both spellings", async () => {
    const challenge = await newChallenge(server);
    const colon = {
      ...challenge,
      pollPath: challenge.pollPath.replace("challenge_poller", "challenge:poller"),
    };
    expect((await poll(server, colon)).body).toEqual({ status: "pending" });
    expect((await poll(server, challenge)).body).toEqual({ status: "pending" });
  });

  test("the validator accepts both spellings, and no other", async () => {
    const visit = (spelling: string, token: string) => server.fetch(`/${spelling}/${token}`);
    const { token: first } = await newChallenge(server);
    expect((await visit("challenge:validator", first)).status).toBe(303);
    const { token: second } = await newChallenge(server);
    expect((await visit("challenge_validator", second)).status).toBe(303);
    const { token: third } = await newChallenge(server);
    expect((await visit("challengeXvalidator", third)).status).toBe(404);
  });
});

describe("poller", () => {
  test("answers pending, success, then unknown; the one token has the claims a verifier needs", async () => {
    const challenge = await newChallenge(server, { legacy: true });
    expect(await politePoll(server, challenge)).toMatchObject({ http: 200, body: { status: "pending" } });
    await decide(challenge, "approve");
    const { http, body, headers } = await politePoll(server, challenge);
    expect(http).toBe(200);
    expect(headers.get("cache-control")).toBe("no-store");
    const issuedAt = Math.floor(server.clock.now().getTime() / 1000);
    expect(body).toEqual({
      status: "success",
      encoded_jwt: expect.any(String),
      cookie_name: "svc_auth",
      expiration: issuedAt + 3600,
      user: "alice@example.com",
    });
    const jwt = body.encoded_jwt as string;
    expect(decodeProtectedHeader(jwt)).toEqual({ alg: "ES256", kid: expect.any(String), typ: "at+jwt" });
    expect(decodeJwt(jwt)).toEqual({
      iss: server.url,
      aud: "svc",
      sub: "alice@example.com",
      groups: ["admin", "oncall"],
      iat: issuedAt,
      exp: issuedAt + 3600,
      jti: expect.any(String),
    });
    expect(await politePoll(server, challenge)).toMatchObject({ http: 404, body: { status: "unknown" } });
  });

  test("denied stays denied", async () => {
    const challenge = await newChallenge(server);
    await decide(challenge, "deny");
    expect(await politePoll(server, challenge)).toMatchObject({ http: 403, body: { status: "denied" } });
    server.clock.advance(600);
    expect(await politePoll(server, challenge)).toMatchObject({ http: 403, body: { status: "denied" } });
  });

  test("the lifetime ends at exactly 120 s, cached or not", async () => {
    for (const remembered of [true, false]) {
      const challenge = await newChallenge(server);
      if (remembered) await poll(server, challenge);
      server.clock.advance(119.999);
      expect(await poll(server, challenge)).toMatchObject({ http: 200, body: { status: "pending" } });
      server.clock.advance(0.001);
      expect(await poll(server, challenge)).toMatchObject({ http: 410, body: { status: "expired" } });
    }
  });

  test("an approval that is not collected in time is lost", async () => {
    const challenge = await newChallenge(server);
    await decide(challenge, "approve");
    server.clock.advance(120);
    expect(await poll(server, challenge)).toMatchObject({ http: 410, body: { status: "expired" } });
    expect(await server.db.select().from(token).where(eq(token.userName, "nobody"))).toEqual([]);
  });

  test.each([
    "x",
    "",
    "a".repeat(43),
    "a".repeat(44),
    "%00",
    "%ff",
    "%zz",
    "../../healthcheck",
    "a".repeat(5000),
    "'%20or%201=1--",
  ])("an invalid challenge token is unknown, in JSON: %s", async (text) => {
    const response = await server.fetch(`/noauth/v1/challenge_poller/${text}`);
    expect(response.headers.get("content-type")).toStartWith("application/json");
    expect(response.status).toBe(404);
    expect(await response.json()).toHaveProperty("status");
  });

  test("HEAD does not consume the token", async () => {
    const challenge = await newChallenge(server, { legacy: true });
    await decide(challenge, "approve");
    expect((await server.fetch(challenge.pollPath, { method: "HEAD" })).status).toBe(404);
    expect((await politePoll(server, challenge)).body.status).toBe("success");
  });

  test.each(["POST", "PUT", "DELETE", "PATCH"])("%s is not allowed, in JSON", async (method) => {
    const { pollPath } = await newChallenge(server);
    const response = await server.fetch(pollPath, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, OPTIONS"]);
    expect(await response.json()).toMatchObject({ status: "method_not_allowed" });
  });
});

describe("verifier", () => {
  test("without the right one, a bound challenge stays pending, and one audit event records it", async () => {
    const challenge = await newChallenge(server);
    const other = await newChallenge(server);
    const asked = () =>
      Promise.all([
        politePoll(server, { ...challenge, verifier: undefined }),
        politePoll(server, { ...challenge, verifier: other.verifier }),
        politePoll(server, { ...challenge, verifier: `${challenge.verifier}A` }),
      ]);
    await poll(server, challenge); // remembered from here on: memory must be as strict
    for (const answer of await asked())
      expect(answer).toMatchObject({ http: 200, body: { status: "pending" } });
    await decide(challenge, "approve");
    for (const answer of await asked())
      expect(answer).toMatchObject({ http: 200, body: { status: "pending" } });
    expect((await politePoll(server, challenge)).body.status).toBe("success");
    for (const answer of await asked())
      expect(answer).toMatchObject({ http: 200, body: { status: "pending" } });

    const row = await rowOf(server, challenge);
    const events = await server.db.select().from(auditLog).where(eq(auditLog.subject, row.id));
    expect(
      events.map((event) => event.action).filter((action) => action === "challenge.wrong_verifier"),
    ).toHaveLength(1);
  });

  test.each([
    ["none", () => undefined],
    ["another", () => "w".repeat(43)],
    ["a longer one", (right: string) => `${right}A`],
    [
      "one with a different last character",
      (right: string) => right.replace(/.$/, (c) => (c === "A" ? "B" : "A")),
    ],
  ])("%s is never answered from memory", async (_, wrong) => {
    const challenge = await newChallenge(server);
    await pollUntilRemembered(server, challenge);
    await poll(server, { ...challenge, verifier: wrong(challenge.verifier!) });
    const row = await rowOf(server, challenge);
    // Only a lookup of the challenge records this.
    expect(row.wrongVerifierAt).toEqual(server.clock.now());
  });

  test("its holder may collect the same token again for 10 s, then nobody may", async () => {
    const challenge = await newChallenge(server);
    await decide(challenge, "approve");
    const first = await poll(server, challenge);
    const again = await poll(server, challenge);
    expect(decodeJwt(again.body.encoded_jwt as string)).toEqual(decodeJwt(first.body.encoded_jwt as string));
    server.clock.advance(9.9);
    expect((await poll(server, challenge)).body.status).toBe("success");
    server.clock.advance(0.1);
    expect(await poll(server, challenge)).toMatchObject({ http: 404, body: { status: "unknown" } });
  });

  test("a token revoked meanwhile is not returned again", async () => {
    const challenge = await newChallenge(server);
    await decide(challenge, "approve");
    const { body } = await poll(server, challenge);
    const headers = { authorization: `Bearer ${body.encoded_jwt}` };
    expect((await server.fetch("/tokens/current", { method: "DELETE", headers })).status).toBe(204);
    expect(await poll(server, challenge)).toMatchObject({ http: 404, body: { status: "unknown" } });
  });
});

describe("one token", () => {
  test("fifty concurrent polls get one success", async () => {
    const challenge = await newChallenge(server, { legacy: true });
    await decide(challenge, "approve");
    const answers = await Promise.all(Array.from({ length: 50 }, () => poll(server, challenge)));
    const by = (status: string) => answers.filter(({ body }) => body.status === status).length;
    expect(by("success")).toBe(1);
    expect(by("unknown")).toBe(49);
  });

  test("fifty concurrent polls by the holder of the verifier get one token", async () => {
    const challenge = await newChallenge(server);
    await decide(challenge, "approve");
    const answers = await Promise.all(Array.from({ length: 50 }, () => poll(server, challenge)));
    const tokens = answers.flatMap(({ body }) =>
      body.encoded_jwt ? [decodeJwt(body.encoded_jwt as string).jti] : [],
    );
    expect(new Set(tokens).size).toBe(1);
    expect(answers.every(({ body }) => body.status === "success" || body.status === "pending")).toBe(true);
    expect(await server.db.select().from(token).where(eq(token.jti, tokens[0]!))).toHaveLength(1);
  });
});
