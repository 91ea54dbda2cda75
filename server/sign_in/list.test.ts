import { beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { findClientCertificate, issueClientCertificate } from "../../core/auth/certificate/certificate.ts";
import { decideChallenge } from "../../core/auth/challenge/decide.ts";
import { type SignedInSession, signInSession } from "../../core/auth/session/session.ts";
import { listSignIns } from "../../core/auth/session/sign_ins.ts";
import type { Actor } from "../../core/context.ts";
import {
  auditLog,
  authorityKey,
  challenge,
  clientCertificate,
  issuerSession,
  session,
  token,
} from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { toHex } from "../../platform/secret.ts";
import { clicked } from "../../tests/support/browser/browser.ts";
import { fieldsOf, PageReader } from "../../tests/support/browser/reader.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { newCertificateRequest } from "../../tests/support/domain/certificate_request.ts";
import { type CertificateServer, useCertificateServer } from "../../tests/support/http/certificate_server.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { decide, newChallenge, poll, rowOf, signInToken } from "../../tests/support/http/server.ts";
import { slowBody } from "../../tests/support/http/slow_body.ts";

let { server, context, newUser, issue } = {} as CertificateServer;
useCertificateServer((given) => {
  ({ server, context, newUser, issue } = given);
});

let user: string;
beforeEach(() => {
  user = newUser();
});

const admin = () => personOf(server, newUser(), ["admin"]);
const signInsOf = async (reader: Person, of = user) =>
  (await reader.call("GET", `/sign_ins/?user=${of}`)).body.items;
const kindsOf = async (reader: Person, of = user) =>
  (await signInsOf(reader, of)).map(({ kind }: { kind: string }) => kind).sort();

/** A browser, and a terminal that was approved in it. */
async function bothSignedIn() {
  const reader = await PageReader.signIn(server, user);
  const wanted = await newChallenge(server, { user });
  await decide(wanted, "approve", reader.browser);
  const authorization = `Bearer ${(await poll(server, wanted)).body.encoded_jwt}`;
  return {
    reader,
    works: async () => [
      (await reader.browser.request(`${server.url}/app`)).status,
      (await server.fetch("/whoami", { headers: { authorization } })).status,
    ],
  };
}

const insertToken = async (more: Partial<typeof token.$inferInsert> = {}) => {
  const now = server.clock.now();
  const of = { jti: crypto.randomUUID() as string, userName: user, issuedAt: now, expiresAt: after(now, 60) };
  await server.db.insert(token).values({ ...of, ...more });
  return more.jti ?? of.jti;
};
const ofOrganisation = () => crypto.randomUUID().replace(/^(.{14})./, "$18");

describe("the list", () => {
  test("has what is valid now, newest first", async () => {
    const certificate = await issue(user, ["admin"]);
    await insertToken({ jti: ofOrganisation(), issuedAt: after(server.clock.now(), -3600) });
    await insertToken({ expiresAt: server.clock.now() });
    await insertToken({ revokedAt: server.clock.now() });
    await insertToken({ certificateSha256: certificate.sha256, groups: ["admin"] });
    await PageReader.signIn(server, user);
    const { body } = await certificate.person.call("GET", `/sign_ins/?user=${user}`);
    const items: Record<string, unknown>[] = body.items;
    expect(items.map(({ kind }) => kind).sort()).toEqual([
      "browser",
      "certificate",
      "organisation certificate",
      "terminal",
    ]);
    const of = (kind: string) => items.find((one) => one.kind === kind);
    expect(of("terminal")).toMatchObject({ user, is_current: true, is_admin: true, serial: null });
    expect(of("certificate")).toMatchObject({
      is_current: false,
      is_admin: true,
      serial: certificate.serial,
    });
    expect(of("browser")).toMatchObject({ is_current: false, is_admin: false });
    const times = items.map(({ created_at }) => created_at);
    expect(times).toEqual(times.toSorted().reverse());
    expect(items.at(-1)!.kind).toBe("organisation certificate");
  });

  test("has a token that is bound to a certificate of another user", async () => {
    const others = await issue(newUser());
    await insertToken({ certificateSha256: others.sha256 });
    expect(await kindsOf(await admin())).toEqual(["terminal"]);
  });

  test("marks the certificate that the reader's token is bound to", async () => {
    const { sha256 } = await issue(user);
    const tokenId = await insertToken({ certificateSha256: sha256 });
    const actor: Actor = {
      kind: "user",
      user,
      groups: [],
      admin: false,
      tokenId,
      expiresAt: server.clock.now(),
    };
    const { items } = await listSignIns(context, actor, {});
    expect(items.filter(({ isCurrent }) => isCurrent).map(({ kind }) => kind)).toEqual(["certificate"]);
  });

  test("has an admin's certificate without the right, once a newer sign-in has none", async () => {
    const { serial } = await issue(user, ["admin"]);
    const ofCertificate = async () =>
      (await signInsOf(await admin())).find((one: { serial: string }) => one.serial === serial).is_admin;
    expect(await ofCertificate()).toBe(true);
    await insertToken({ issuedAt: after(server.clock.now(), 1) });
    expect(await ofCertificate()).toBe(false);
  });

  test("goes on after its cursor, also at equal times", async () => {
    const [issuedAt, ids] = [server.clock.now(), new Set<string>()];
    for (let left = 5; left > 0; left -= 1) ids.add(await insertToken({ issuedAt }));
    const reader = await personOf(server, user);
    const read = new Set<string>();
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages += 1) {
      const query: string = cursor && `&cursor=${cursor}`;
      const { body } = await reader.call("GET", `/sign_ins/?limit=2${query}`);
      for (const { id } of body.items) read.add(id);
      cursor = body.next_cursor;
    }
    expect([pages, read.size, ids.isSubsetOf(read)]).toEqual([3, 6, true]);
  });

  test("omits a certificate that has expired, and cannot be renewed", async () => {
    await issue(user);
    const reader = await admin();
    expect(await kindsOf(reader)).toContain("certificate");
    server.clock.advance(25 * 3600);
    try {
      expect(await kindsOf(await admin())).toEqual([]);
    } finally {
      server.clock.advance(-25 * 3600);
    }
  });

  test("names a browser without what its cookie is compared with", async () => {
    await PageReader.signIn(server, user);
    const [row] = await server.db.select().from(session).where(eq(session.userName, user));
    const [{ id }] = await signInsOf(await admin());
    expect(toHex(row!.idHash)).not.toContain(id.replaceAll("-", "").slice(0, 8));
  });
});

describe("ending", () => {
  const idOf = async (by: Person, kind: string) =>
    (await signInsOf(by)).find((one: { kind: string }) => one.kind === kind).id;
  const end = async (by: Person, kind: string) =>
    (await by.call("DELETE", `/sign_ins/${await idOf(by, kind)}`)).http;
  const atIssuer = async () =>
    (await server.db.select().from(issuerSession).where(eq(issuerSession.userName, user))).map(
      ({ endedAt }) => endedAt !== null,
    );

  test("a browser leaves its terminal, and with the last one the sign-in at the issuer ends", async () => {
    const [by, { works }] = [await admin(), await bothSignedIn()];
    expect(await end(by, "browser")).toBe(204);
    expect([await works(), await atIssuer()]).toEqual([[303, 200], [false]]);
    expect(await end(by, "terminal")).toBe(204);
    expect([await works(), await atIssuer()]).toEqual([[303, 401], [true]]);
  });

  test("both at once ends the sign-in at the issuer as well", async () => {
    const by = await admin();
    await bothSignedIn();
    const ids = [await idOf(by, "browser"), await idOf(by, "terminal")];
    const done = await inTheWay(
      server.db,
      // Each has read what else there is, and waits for this before it ends its own.
      async (tx) => {
        await tx.select().from(session).where(eq(session.userName, user)).for("update");
        await tx.select().from(token).where(eq(token.userName, user)).for("update");
      },
      ...ids.map((id) => () => by.call("DELETE", `/sign_ins/${id}`)),
    );
    expect(done).toMatchObject([{ value: { http: 204 } }, { value: { http: 204 } }]);
    expect(await atIssuer()).toEqual([true]);
  });

  test("a terminal leaves its browser, and others of the user", async () => {
    const [by, one, other] = [await admin(), await bothSignedIn(), await bothSignedIn()];
    const ended = await end(by, "terminal");
    const left = [await one.works(), await other.works()];
    expect([ended, left.toSorted()]).toEqual([
      204,
      [
        [200, 200],
        [200, 401],
      ],
    ]);
  });

  test.each([true, false])(
    "a browser ends what it has approved and no terminal has collected (alone: %p)",
    async (isAlone) => {
      const { reader, works } = await bothSignedIn();
      const by = await admin();
      if (isAlone) await end(by, "terminal");
      const wanted = await newChallenge(server, { user });
      await decide(wanted, "approve", reader.browser);
      expect(await end(by, "browser")).toBe(204);
      expect((await poll(server, wanted)).body.status).toBe("expired");
      expect((await works())[1]).toBe(isAlone ? 401 : 200);
    },
  );

  test("a browser leaves the token that it has approved and that is bound to an earlier certificate", async () => {
    const [by, { sha256 }] = [await admin(), await issue(user)];
    await bothSignedIn();
    const [found] = await server.db.select().from(issuerSession).where(eq(issuerSession.userName, user));
    await server.db
      .update(token)
      .set({ certificateSha256: sha256 })
      .where(eq(token.issuerSessionId, found!.id));
    expect([await end(by, "browser"), await atIssuer()]).toEqual([204, [false]]);
  });

  describe("a browser that is about to approve a terminal", () => {
    const opened = async () => {
      const { browser } = await PageReader.signIn(server, user);
      const wanted = await newChallenge(server, { user });
      await browser.open(wanted.challengeUrl);
      const { id, sessionHash } = await rowOf(server, wanted);
      const [before] = await server.db.select().from(session).where(eq(session.idHash, sessionHash!));
      const approve = { id, decision: "approve" as const, session: before as SignedInSession };
      return {
        wanted,
        approve: () =>
          decideChallenge({ ...context, watch: server.watch }, { ...approve, address: "127.0.0.1" }),
      };
    };
    const detach = () =>
      server.db.update(session).set({ issuerSessionId: null }).where(eq(session.userName, user));

    test.each([true, false])("has no user any more (known to the issuer: %p)", async (isKnown) => {
      const [by, { wanted, approve }] = [await admin(), await opened()];
      if (!isKnown) await detach();
      expect(await end(by, "browser")).toBe(204);
      await expect(approve()).rejects.toThrow("You are no longer signed in in this browser");
      expect((await poll(server, wanted)).body.status).not.toBe("success");
    });

    test("has no user any more, once its session has expired", async () => {
      const { approve } = await opened();
      await server.db
        .update(session)
        .set({ expiresAt: server.clock.now() })
        .where(eq(session.userName, user));
      await expect(approve()).rejects.toThrow("You are no longer signed in in this browser");
    });

    test("as it ends, approves nothing that can be collected", async () => {
      const [by, { wanted, approve }] = [await admin(), await opened()];
      await detach();
      const id = await idOf(by, "browser");
      await inTheWay<unknown>(
        server.db,
        (tx) => tx.select().from(challenge).where(eq(challenge.userName, user)).for("update"),
        () => by.call("DELETE", `/sign_ins/${id}`),
        approve,
      );
      expect((await poll(server, wanted)).body.status).toBe("expired");
    });
  });

  test("a browser ends what it has approved under its earlier sign-in at the issuer", async () => {
    const [by, { browser }] = [await admin(), await PageReader.signIn(server, user)];
    const wanted = await newChallenge(server, { user });
    await decide(wanted, "approve", browser);
    const [before] = await server.db.select().from(session).where(eq(session.userName, user));
    const issuerSignIn = { issuer: server.issuer.url, subject: "again" };
    const identity = { user, groups: [] };
    await signInSession(context, { session: before!, identity, address: "192.0.2.1", issuerSignIn });
    expect(await end(by, "browser")).toBe(204);
    expect((await poll(server, wanted)).body.status).toBe("expired");
  });

  test("a browser that is being signed in again does not deadlock", async () => {
    const [by, { browser }] = [await admin(), await PageReader.signIn(server, user)];
    await browser.open((await newChallenge(server, { user })).challengeUrl);
    // As behind a proxy that signs people in.
    const ofUser = eq(session.userName, user);
    const [row] = await server.db.update(session).set({ issuerSessionId: null }).where(ofUser).returning();
    const id = await idOf(by, "browser");
    const again = { session: row!, identity: { user, groups: [] }, address: "192.0.2.1" };
    const done = await inTheWay<unknown>(
      server.db,
      (tx) => tx.select().from(challenge).where(eq(challenge.userName, user)).for("update"),
      () => by.call("DELETE", `/sign_ins/${id}`),
      () => signInSession(context, again),
    );
    expect(done).toMatchObject([{ value: { http: 204 } }, { value: expect.any(String) }]);
  });

  test("a certificate ends the sign-in at the issuer, if only a token that is bound to it is left", async () => {
    const [by, { reader }] = [await admin(), await bothSignedIn()];
    const { sha256 } = await issue(user);
    const { sha256: isOfIt, jti } = clientCertificate;
    const [row] = await server.db.select({ jti }).from(clientCertificate).where(eq(isOfIt, sha256));
    const [found] = await server.db.select().from(issuerSession).where(eq(issuerSession.userName, user));
    const issuerSessionId = found!.id;
    const cameFromIt = eq(token.issuerSessionId, issuerSessionId);
    await server.db.update(token).set({ certificateSha256: sha256 }).where(cameFromIt);
    await server.db.update(token).set({ issuerSessionId }).where(eq(token.jti, row!.jti));
    await reader.submit("/app/profile", {}, "/app/sign_out");
    expect([await kindsOf(by), await atIssuer()]).toContainEqual([false]);
    expect([await end(by, "certificate"), await atIssuer()]).toEqual([204, [true]]);
  });

  test("a terminal leaves a certificate that is being issued with it", async () => {
    const [by, { reader, works }] = [await admin(), await bothSignedIn()];
    await reader.submit("/app/profile", {}, "/app/sign_out");
    const [row] = await server.db.select().from(token).where(eq(token.userName, user));
    const { jti: tokenId, expiresAt } = row!;
    const actor: Actor = { kind: "user", user, groups: [], admin: false, tokenId, expiresAt };
    const [made, ended] = await inTheWay<{ sha256?: string; http?: number }>(
      server.db,
      // The certificate is stored after its sign-in, and waits for this.
      (tx) => tx.select().from(authorityKey).for("update"),
      () => issueClientCertificate(context, actor, newCertificateRequest(), "192.0.2.1"),
      () => by.call("DELETE", `/sign_ins/${tokenId}`),
    );
    if (made?.status !== "fulfilled" || ended?.status !== "fulfilled") throw new Error("not both");
    expect([ended.value.http, await works(), await atIssuer()]).toEqual([204, [303, 401], [false]]);
    expect(await findClientCertificate(context, made.value.sha256!)).toHaveProperty("actor");
  });

  test("one twice at once is recorded once", async () => {
    const name = newUser();
    const [by, jti] = [await personOf(server, name, ["admin"]), await insertToken()];
    const both = Array.from({ length: 2 }, () => () => by.call("DELETE", `/sign_ins/${jti}`));
    const done = await inTheWay(
      server.db,
      (tx) => tx.select().from(token).where(eq(token.jti, jti)).for("update"),
      ...both,
    );
    expect(done).toMatchObject([{ value: { http: 204 } }, { value: { http: 404 } }]);
    expect(await server.db.$count(auditLog, eq(auditLog.actor, name))).toBe(1);
  });

  test("a token that is bound to a certificate is refused: that is the sign-in", async () => {
    const [by, { sha256 }] = [await admin(), await issue(user)];
    const bound = await insertToken({ certificateSha256: sha256 });
    expect((await by.call("DELETE", `/sign_ins/${bound}`)).http).toBe(404);
  });

  test("a certificate ends what is bound to it", async () => {
    const { sha256, person } = await issue(user);
    const bound = await insertToken({ certificateSha256: sha256 });
    expect(await end(person, "certificate")).toBe(204);
    expect(await findClientCertificate(context, sha256)).toEqual({ refused: "revoked" });
    const [row] = await server.db.select().from(token).where(eq(token.jti, bound));
    expect(row!.revokedAt).not.toBeNull();
    expect(await kindsOf(person)).toEqual(["terminal"]);
  });

  test("is recorded, with who did it", async () => {
    const name = newUser();
    const by = await personOf(server, name, ["admin"]);
    await PageReader.signIn(server, user);
    const id = await idOf(by, "browser");
    await by.call("DELETE", `/sign_ins/${id}`);
    const entries = and(eq(auditLog.actor, name), eq(auditLog.action, "sign_in.ended"));
    expect(await server.db.select().from(auditLog).where(entries)).toMatchObject([
      { subject: id, address: "127.0.0.1", data: { user, kind: "browser" } },
    ]);
    expect((await by.call("DELETE", `/sign_ins/${id}`)).http).toBe(404);
  });

  test("all of a user leaves certificates of an organisation", async () => {
    const [by, name, { works }] = [await admin(), newUser(), await bothSignedIn()];
    const { sha256 } = await issue(user);
    await insertToken({ certificateSha256: sha256 });
    await insertToken({ jti: ofOrganisation() });
    const others = await personOf(server, name);
    const { body } = await by.call("DELETE", `/sign_ins/?user=${user}`);
    // A browser, two terminals, a certificate.
    expect([body, await works()]).toEqual([{ ended: 4 }, [303, 401]]);
    expect(await kindsOf(by)).toEqual(["organisation certificate"]);
    expect(await kindsOf(others, name)).toEqual(["terminal"]);
    const entries = and(eq(auditLog.action, "session.signed_out"), eq(auditLog.address, "127.0.0.1"));
    const recorded = await server.db.select().from(auditLog).where(entries);
    expect(recorded.filter(({ data }) => data.user === user)).toMatchObject([{ data: { everywhere: true } }]);
    expect((await by.call("DELETE", "/sign_ins/")).http).toBe(400);
    expect((await others.call("DELETE", `/sign_ins/?user=${name}`)).body).toEqual({ ended: 1 });
  });
});

test("a form that arrives after the end of its session does not sign its user out everywhere", async () => {
  const [by, ended] = [await admin(), await PageReader.signIn(server, user)];
  const [{ id }] = await signInsOf(by);
  const fields = { ...fieldsOf((await ended.open("/app/profile")).html, "/app/sign_out"), everywhere: "on" };
  const [[name, value]] = [...ended.browser.cookies.get(new URL(server.url).host)!] as [[string, string]];
  let again: PageReader | undefined;
  const answer = await server.app.handle(
    new Request(`${server.url}/app/sign_out`, {
      method: "POST",
      headers: {
        ...clicked,
        "content-type": "application/x-www-form-urlencoded",
        cookie: `${name}=${value}`,
      },
      body: slowBody(`${new URLSearchParams(fields)}`, async () => {
        await by.call("DELETE", `/sign_ins/${id}`);
        again = await PageReader.signIn(server, user);
      }),
    }),
  );
  expect(answer.headers.get("location")).toStartWith("/app/sign_in");
  expect((await again!.open("/app")).path).toBe("/app");
  expect(await kindsOf(by)).toEqual(["browser"]);
});

test("a request whose body arrives after the end of its sign-in is refused", async () => {
  const authorization = `Bearer ${await signInToken(server)}`;
  const send = (meanwhile: () => Promise<unknown>) =>
    server.app.handle(
      new Request(`${server.url}/documents/`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: slowBody('{"name":"Notes","resource_type":"notes"}', meanwhile),
      }),
    );
  expect((await send(async () => {})).status).toBe(201);
  const revoke = () => server.fetch("/tokens/current", { method: "DELETE", headers: { authorization } });
  expect((await send(revoke)).status).toBe(401);
});

test("a certificate that is being issued while its user is signed out everywhere ends as well", async () => {
  const { person } = await issue(user);
  const [row] = await server.db.select().from(token).where(eq(token.userName, user)).limit(1);
  const actor: Actor = {
    kind: "user",
    user,
    groups: [],
    admin: false,
    tokenId: row!.jti,
    expiresAt: row!.expiresAt,
  };
  const [made, ended] = await inTheWay<{ sha256?: string; http?: number }>(
    server.db,
    // The certificate is stored after its sign-in, and waits for this.
    (tx) => tx.select().from(authorityKey).for("update"),
    () => issueClientCertificate(context, actor, newCertificateRequest(), "192.0.2.1"),
    () => person.call("DELETE", `/sign_ins/?user=${user}`),
  );
  if (made?.status !== "fulfilled" || ended?.status !== "fulfilled") throw new Error("not both");
  expect(ended.value.http).toBe(200);
  expect(await findClientCertificate(context, made.value.sha256!)).toEqual({ refused: "revoked" });
});
