import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { decodeJwt } from "jose";
import { csrfToken } from "../../core/auth/session/session.ts";
import { auditLog } from "../../drizzle/schema/index.ts";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import {
  decide,
  newChallenge,
  poll,
  rowOf,
  startTestServer,
  type TestChallenge,
  type TestServer,
} from "../../tests/support/http/server.ts";

/** All audit entries of a challenge, to assert that they contain nothing else and no secret. */
async function eventsOf(server: TestServer, challenge: TestChallenge) {
  const row = await rowOf(server, challenge);
  const events = await server.db
    .select()
    .from(auditLog)
    .where(eq(auditLog.subject, row.id))
    .orderBy(auditLog.id);
  return events.map(({ id: _, subject: __, ...event }) => event);
}

const terminal = { headers: { "x-forwarded-for": "192.0.2.1" } };
const browserAt = (address: string) => new TestBrowser({ "x-forwarded-for": address });
const user = "alice@example.com";

describe("the audit log of a challenge", () => {
  test("records who approved and who collected it, and from where", async () => {
    await using server = await startTestServer({ proxyHeaders: true });
    const at = server.clock.now();
    const challenge = await newChallenge(server, terminal);
    await decide(challenge, "approve", browserAt("198.51.100.7"));
    const { body } = await poll(server, challenge, terminal);
    const { jti } = decodeJwt(body.encoded_jwt as string);
    const [client, browser] = ["192.0.2.1", "198.51.100.7"];
    expect(await eventsOf(server, challenge)).toEqual([
      { at, actor: "client", action: "challenge.created", address: client, data: { user, bound: true } },
      { at, actor: user, action: "challenge.approved", address: browser, data: {} },
      { at, actor: user, action: "challenge.collected", address: client, data: { jti } },
    ]);
  });

  test("records who denied it", async () => {
    await using server = await startTestServer({ proxyHeaders: true });
    const challenge = await newChallenge(server, terminal);
    await decide(challenge, "deny", browserAt("198.51.100.7"));
    await poll(server, challenge, terminal);
    expect((await eventsOf(server, challenge)).slice(1)).toEqual([
      {
        at: server.clock.now(),
        actor: user,
        action: "challenge.denied",
        address: "198.51.100.7",
        data: {},
      },
    ]);
  });

  test("records an attempt by another user, once per person", async () => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server, { user: "carol@example.com" });
    const browser = new TestBrowser();
    for (const somebody of ["alice@example.com", "bob@example.com"]) {
      server.issuer.user = somebody;
      const { url, text } = await browser.open(challenge.challengeUrl);
      const id = new URL(url).pathname.split("/").at(-1)!;
      const sessionId = browser.cookies.get(new URL(server.url).host)!.get("svc_session")!;
      const decision = { decision: "approve", csrf: csrfToken(sessionId, id) };
      const attempts = Array.from({ length: 5 }, () =>
        browser.submit(`${server.url}/approve/${id}`, "", decision),
      );
      expect((await Promise.all(attempts)).map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
      // Signs out, so that the next user can sign in.
      await browser.submit(url, text, {});
    }
    const tried = await eventsOf(server, challenge);
    const data = { user: "carol@example.com", asked_from: "127.0.0.1" };
    expect(tried.map(({ action, actor, data }) => ({ [`${action} ${actor}`]: data }))).toEqual([
      { "challenge.wrong_user alice@example.com": data },
      { "challenge.wrong_user bob@example.com": data },
    ]);
  });

  test("records nothing if no signed-in user decided; such challenges are counted by address", async () => {
    await using server = await startTestServer({ proxyHeaders: true });
    for (let n = 0; n < 20; n += 1) {
      const challenge = await newChallenge(server, { ...terminal, user: `user${n}` });
      await browserAt("198.51.100.7").request(challenge.challengeUrl);
      await poll(server, { ...challenge, verifier: "w".repeat(43) }, terminal);
      await poll(server, challenge, terminal);
    }
    expect(await server.db.$count(auditLog)).toBe(0);
    const at = server.clock.now();
    await server.counts.flush(server.db, at);
    const rows = await server.db.select().from(auditLog).orderBy(auditLog.id);
    const row = { at, actor: "client", address: "192.0.2.1", subject: null, data: { count: 20 } };
    expect(rows.map(({ id: _, ...event }) => event)).toEqual([
      { ...row, action: "challenge.created" },
      { ...row, action: "challenge.wrong_verifier" },
    ]);
  });

  test.each(["before", "after"])("records a poll without the verifier %s the decision", async (when) => {
    await using server = await startTestServer();
    const challenge = await newChallenge(server);
    const stranger = { ...challenge, verifier: "w".repeat(43) };
    if (when === "before") await poll(server, stranger);
    await decide(challenge, "approve");
    if (when === "after") await poll(server, stranger);
    const events = (await eventsOf(server, challenge)).map(({ action }) => action);
    expect(events.filter((action) => action === "challenge.wrong_verifier")).toHaveLength(1);
  });
});
