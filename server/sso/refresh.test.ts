import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, desc, eq, ne } from "drizzle-orm";
import { decideChallenge } from "../../core/auth/challenge/decide.ts";
import { type AskIssuer, refreshSignIn } from "../../core/auth/session/refresh.ts";
import { createSession, type SignedInSession, signInSession } from "../../core/auth/session/session.ts";
import type { Actor } from "../../core/context.ts";
import { auditLog, challenge, issuerSession, session, token } from "../../drizzle/schema/index.ts";
import { Unavailable } from "../../platform/errors.ts";
import { createLog } from "../../platform/log.ts";
import { toHex } from "../../platform/secret.ts";
import { PageReader } from "../../tests/support/browser/reader.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { newCertificateRequest } from "../../tests/support/domain/certificate_request.ts";
import {
  decide,
  newChallenge,
  poll,
  rowOf,
  signInToken,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    rateGenerate: 100_000,
    mtlsUrl: "https://svc.example.com:8443",
    tokenLifetime: 7 * 24 * 3600,
  });
});
afterAll(() => server[Symbol.asyncDispose]());
/** Each test has a user of its own. */
let user: string;
let users = 0;
beforeEach(() => {
  users += 1;
  user = `user${users}@example.com`;
  Object.assign(server.issuer, {
    user,
    claims: { groups: ["admin", "oncall"] },
    misbehaviour: undefined,
    userinfo: undefined,
    refresh: {},
  });
});

async function signIn() {
  const headers = { authorization: `Bearer ${await signInToken(server)}` };
  const send = (path: string, body: object, signal?: AbortSignal) =>
    server.fetch(path, {
      method: "POST",
      signal,
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return {
    certificate: (signal?: AbortSignal) => send("/certificates/", { csr: newCertificateRequest() }, signal),
    renew: () => send("/access/leases/1/renew", {}),
    issue: () => send("/access/leases/", { role: "none" }),
    whoami: async () => {
      const answer = await server.fetch("/whoami", { headers });
      return answer.status === 200 ? ((await answer.json()) as { groups: string[] }).groups : answer.status;
    },
  };
}

const contextOf = () => ({ ...server, log: createLog("silent") });
/** As somebody with the newest token of the user. @returns the groups */
const refresh = async (ask: AskIssuer) => {
  const newest = desc(token.issuedAt);
  const [row] = await server.db.select().from(token).where(eq(token.userName, user)).orderBy(newest).limit(1);
  const { groups, jti: tokenId, expiresAt } = row!;
  const actor: Actor = { kind: "user", user, groups, admin: false, tokenId, expiresAt };
  return (await refreshSignIn(contextOf(), actor, ask)).groups;
};

const rowOfUser = async () =>
  (await server.db.select().from(issuerSession).where(eq(issuerSession.userName, user)))[0]!;

test.each(["certificate", "issue", "renew"] as const)(
  "the groups at the issuer count when a certificate or a lease is issued or renewed: %s",
  async (request) => {
    const person = await signIn();
    server.issuer.claims = { groups: ["oncall"] };
    server.clock.advance(61);
    expect(await person.whoami()).toEqual(["admin", "oncall"]);
    await person[request]();
    expect(await person.whoami()).toEqual(["oncall"]);
  },
);

test("each refresh token is used once, and at most one a minute", async () => {
  const person = await signIn();
  const before = server.issuer.refreshes;
  for (let i = 0; i < 3; i += 1) {
    await person.renew();
    expect(server.issuer.refreshes - before).toBe(i);
    server.clock.advance(61);
  }
});

test("a refresh token that was replaced counts, even if the rest of the answer cannot be used", async () => {
  const person = await signIn();
  server.issuer.userinfo = { email: user, groups: ["oncall"] };
  server.issuer.misbehaviour = "userinfo down";
  server.clock.advance(61);
  await person.renew();
  expect(await person.whoami()).toEqual(["admin", "oncall"]);
  server.issuer.misbehaviour = undefined;
  server.clock.advance(600);
  await person.renew();
  expect(await person.whoami()).toEqual(["oncall"]);
});

describe("a sign-in ends, and says to sign in again, when the issuer", () => {
  test.each<[string, () => void]>([
    ["refuses the refresh token", () => server.issuer.refreshTokens.clear()],
    [
      "answers for another subject",
      () => {
        server.issuer.misbehaviour = "refresh of another subject";
      },
    ],
    [
      "has another name for the user",
      () => {
        server.issuer.claims = { email: "somebody@example.com" };
      },
    ],
    [
      "no longer names the user",
      () => {
        server.issuer.claims = { email: "not a name@" };
      },
    ],
  ])("%s", async (_, change) => {
    const person = await signIn();
    change();
    server.clock.advance(61);
    const answer = await person.renew();
    expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
      401,
      expect.stringContaining("sign"),
    ]);
    expect(await person.whoami()).toBe(401);
    const ended = and(eq(auditLog.action, "sign_in.ended"), eq(auditLog.subject, (await rowOfUser()).id));
    expect((await server.db.select().from(auditLog).where(ended)).map(({ data }) => data)).toEqual([
      { user, because: "refused" },
    ]);
  });
});

test.each<[string, () => void]>([
  [
    "without one",
    () => {
      server.issuer.refresh = undefined;
    },
  ],
  [
    "with one that ends with the session at the issuer (Keycloak)",
    () => {
      server.issuer.refresh = { refresh_expires_in: 1800 };
    },
  ],
])("a sign-in %s keeps its groups", async (_, prepare) => {
  prepare();
  const person = await signIn();
  server.issuer.claims = { groups: [] };
  server.clock.advance(61);
  await person.renew();
  expect(await person.whoami()).toEqual(["admin", "oncall"]);
  expect((await rowOfUser()).refreshToken).toBeNull();
});

test("the groups of a user's latest sign-in count for the earlier ones, in terminals and browsers", async () => {
  server.issuer.refresh = undefined;
  const other = await signIn();
  user = `other-${user}`;
  server.issuer.user = user;
  const terminal = await signIn();
  const browser = await PageReader.signIn(server, user, ["oncall"]);
  expect(await terminal.whoami()).toEqual(["oncall"]);
  server.issuer.claims = { groups: ["admin"] };
  const later = await signIn();
  expect([await terminal.whoami(), await later.whoami()]).toEqual([["admin"], ["admin"]]);
  expect((await browser.open("/app")).html).toContain('<span class="quiet"> admin</span>');
  await PageReader.signIn(server, user, []);
  expect((await browser.open("/app")).html).not.toContain('<span class="quiet"> admin</span>');
  expect(await other.whoami()).toEqual(["admin", "oncall"]);
});

describe("groups that the issuer was asked for before a newer sign-in of the user", () => {
  test("do not replace those of that sign-in", async () => {
    const terminal = await signIn();
    server.clock.advance(61);
    const current = await refresh(async () => {
      await PageReader.signIn(server, user, ["oncall"]);
      return { user, groups: ["admin"] };
    });
    expect([current, await terminal.whoami()]).toEqual([["oncall"], ["oncall"]]);
    server.clock.advance(61);
    expect(await refresh(async () => ({ user, groups: ["admin"] }))).toEqual(["admin"]);
  });

  test("do not replace those that it has said of another sign-in since then", async () => {
    const [terminal] = [await signIn(), await PageReader.signIn(server, user, ["admin"])];
    const [collected] = await server.db.select().from(token).where(eq(token.userName, user));
    const isAnother = ne(session.issuerSessionId, collected!.issuerSessionId!);
    const ofUser = and(eq(session.userName, user), isAnother);
    const [row] = await server.db.select().from(session).where(ofUser);
    const { groups, expiresAt } = row!;
    const sessionKey = toHex(row!.idHash);
    const browser: Actor = { kind: "user", user, groups, admin: true, sessionKey, expiresAt };
    server.clock.advance(301);
    const current = await refresh(async () => {
      server.clock.advance(1);
      await refreshSignIn(contextOf(), browser, async () => ({ user, groups: ["oncall"] }));
      return { user, groups: ["admin"] };
    });
    expect([current, await terminal.whoami()]).toEqual([["oncall"], ["oncall"]]);
  });

  test("wait until that sign-in is stored", async () => {
    const terminal = await signIn();
    server.clock.advance(61);
    const { session: begun } = await createSession(contextOf());
    const identity = { user, groups: ["oncall"] };
    const issuerSignIn = { issuer: server.issuer.url, subject: "another" };
    const done = await inTheWay<unknown>(
      server.db,
      // The sign-in stores its session last.
      (tx) => tx.select().from(session).where(eq(session.idHash, begun.idHash)).for("update"),
      () => signInSession(contextOf(), { session: begun, identity, address: "192.0.2.1", issuerSignIn }),
      () => refresh(async () => ({ user, groups: ["admin"] })),
    );
    expect(done.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
    expect(await terminal.whoami()).toEqual(["oncall"]);
  });
});

describe("an approval that no terminal has collected gets the groups", () => {
  const groupsOf = async (collected: ReturnType<typeof poll>) => {
    const headers = { authorization: `Bearer ${(await collected).body.encoded_jwt}` };
    return ((await (await server.fetch("/whoami", { headers })).json()) as { groups: string[] }).groups;
  };

  test("of a newer sign-in", async () => {
    const wanted = await newChallenge(server, { user });
    await decide(wanted, "approve");
    await PageReader.signIn(server, user, ["oncall"]);
    expect(await groupsOf(poll(server, wanted))).toEqual(["oncall"]);
  });

  /** A browser that has opened the challenge, and how it approves it with what it was then. */
  const opened = async () => {
    const { browser } = await PageReader.signIn(server, user, ["admin"]);
    const wanted = await newChallenge(server, { user });
    await browser.open(wanted.challengeUrl);
    const { id, sessionHash } = await rowOf(server, wanted);
    const [before] = await server.db.select().from(session).where(eq(session.idHash, sessionHash!));
    const request = { id, decision: "approve" as const, session: before as SignedInSession };
    const approve = () =>
      decideChallenge({ ...contextOf(), watch: server.watch }, { ...request, address: "127.0.0.1" });
    return { wanted, approve };
  };

  test("that have changed while its form arrived", async () => {
    const { wanted, approve } = await opened();
    await PageReader.signIn(server, user, ["oncall"]);
    await approve();
    expect(await groupsOf(poll(server, wanted))).toEqual(["oncall"]);
  });

  test("that change while it is approved", async () => {
    const { wanted, approve } = await opened();
    await inTheWay<unknown>(
      server.db,
      (tx) => tx.select().from(challenge).where(eq(challenge.userName, user)).for("update"),
      approve,
      () => PageReader.signIn(server, user, ["oncall"]),
    );
    expect(await groupsOf(poll(server, wanted))).toEqual(["oncall"]);
  });

  test("that change while it is collected", async () => {
    const wanted = await newChallenge(server, { user });
    await decide(wanted, "approve");
    const [collected] = await inTheWay(
      server.db,
      (tx) =>
        tx
          .update(challenge)
          .set({ groups: ["oncall"] })
          .where(eq(challenge.userName, user)),
      () => poll(server, wanted),
    );
    if (collected?.status !== "fulfilled") throw new Error("not collected");
    expect(await groupsOf(Promise.resolve(collected.value))).toEqual(["oncall"]);
  });
});

test("a refresh token is sealed in the database", async () => {
  server.issuer.refresh = { refresh_expires_in: 0 };
  const before = new Set(server.issuer.refreshTokens);
  await signIn();
  const [issued] = [...server.issuer.refreshTokens].filter((one) => !before.has(one));
  const { refreshToken } = await rowOfUser();
  expect(refreshToken!.length).toBeGreaterThan(issued!.length);
  expect(Buffer.from(refreshToken!).includes(issued!)).toBe(false);
});

describe("an issuer that does not answer", () => {
  const down: AskIssuer = async () => {
    throw new Unavailable("down");
  };

  test("leaves the groups as they are for a day", async () => {
    await signIn();
    server.clock.advance(24 * 3600 - 1);
    expect(await refresh(down)).toEqual(["admin", "oncall"]);
    server.clock.advance(600);
    await expect(refresh(down)).rejects.toThrow("has not answered for a day");
    expect(await refresh(async () => ({ user, groups: ["oncall"] }))).toEqual(["oncall"]);
    expect(await refresh(down)).toEqual(["oncall"]);
  });

  test("is not asked again for ten minutes", async () => {
    await signIn();
    server.clock.advance(61);
    await refresh(down);
    server.clock.advance(599);
    expect(await refresh(async () => ({ user, groups: [] }))).toEqual(["admin", "oncall"]);
    server.clock.advance(1);
    expect(await refresh(async () => ({ user, groups: [] }))).toEqual([]);
  });

  test("is asked by one request at a time", async () => {
    await signIn();
    server.clock.advance(61);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<undefined>();
    const first = refresh(async () => {
      asked.resolve();
      return answer.promise;
    });
    await asked.promise;
    const never: AskIssuer = async () => {
      throw new Error("asked twice");
    };
    expect(await refresh(never)).toEqual(["admin", "oncall"]);
    server.clock.advance(24 * 3600);
    // The first one's server may have stopped.
    expect(await refresh(async () => undefined)).toEqual(["admin", "oncall"]);
    answer.resolve(undefined);
    await first;
  });

  test("does not let a second request pass after a day", async () => {
    await signIn();
    server.clock.advance(24 * 3600);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<undefined>();
    const first = refresh(async () => {
      asked.resolve();
      return answer.promise;
    });
    await asked.promise;
    await expect(refresh(down)).rejects.toThrow("has not answered for a day");
    answer.resolve(undefined);
    await first;
  });
});

test("the HTTP status of a down token endpoint is no refusal", async () => {
  const person = await signIn();
  server.issuer.misbehaviour = "token endpoint down";
  server.clock.advance(61);
  expect((await person.renew()).status).toBe(404);
  expect(await person.whoami()).toEqual(["admin", "oncall"]);
});

test("a client that no longer waits for the issuer gets no certificate", async () => {
  const person = await signIn();
  server.clock.advance(61);
  const { promise, resolve } = Promise.withResolvers<void>();
  Object.assign(server.issuer, { held: promise, refreshes: 0 });
  const gone = new AbortController();
  const request = person.certificate(gone.signal);
  await until("the issuer is asked", async () => server.issuer.refreshes > 0);
  gone.abort();
  await expect(request).rejects.toThrow();
  const { length } = server.logged;
  resolve();
  await until("the request to end", async () =>
    server.logged.slice(length).some((line) => line.includes("/certificates/")),
  );
  const made = and(eq(auditLog.action, "certificate.issued"), eq(auditLog.actor, user));
  expect(await server.db.$count(auditLog, made)).toBe(0);
});
