import { describe, expect, test } from "bun:test";
import { getTableName, is, sql } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import * as schema from "../drizzle/schema/index.ts";
import {
  auditLog,
  challenge,
  issuerSession,
  session,
  signIn,
  signingKey,
  token,
} from "../drizzle/schema/index.ts";
import { after } from "../platform/clock.ts";
import { sha256 } from "../platform/secret.ts";
import { startTestServer } from "../tests/support/http/server.ts";
import { EventCounts } from "./audit.ts";
import { deleteExpired } from "./retention.ts";

const day = 24 * 3600;

test("deletes what has expired for long enough, and nothing else", async () => {
  await using server = await startTestServer();
  const { db, clock } = server;
  const now = clock.now();
  const insertSession = (userName: string | null, id: string, expiresAt: Date) =>
    db.insert(session).values({ idHash: sha256(id), userName, createdAt: now, expiresAt });
  await insertSession("alice", "open", after(now, 1));
  const [used, unused] = [crypto.randomUUID(), crypto.randomUUID()];
  for (const id of [used, unused])
    await db
      .insert(issuerSession)
      .values({ id, userName: "alice", issuer: "issuer", subject: "alice", createdAt: now });
  await db.update(session).set({ issuerSessionId: used });
  const ends = {
    open: after(now, 1),
    lately: after(now, -299),
    today: after(now, -301),
    before: after(now, -day - 1),
  };
  for (const [name, expiresAt] of Object.entries(ends)) {
    const createdAt = after(expiresAt, -120);
    for (const decided of [true, false]) {
      const userName = `${name} ${decided ? "decided" : "undecided"}`;
      await db.insert(challenge).values({
        id: crypto.randomUUID(),
        tokenHash: sha256(userName),
        userName,
        createdAt,
        expiresAt,
        userCode: "BCDF-GHJK",
        requestAddress: "192.0.2.1",
        client: "test",
        ...(decided ? { boundAt: createdAt, approvedAt: createdAt } : {}),
      });
    }
    await insertSession(name, `of ${name}`, expiresAt);
    await insertSession(null, `of nobody ${name}`, expiresAt);
    await db
      .insert(token)
      .values({ jti: crypto.randomUUID(), userName: name, issuedAt: createdAt, expiresAt });
    await db.insert(signIn).values({
      stateHash: sha256(name),
      nonce: name,
      createdAt,
      expiresAt,
      // Its session stays, or it would be deleted with it.
      sessionHash: sha256("open"),
      pkceVerifier: "",
      returnTo: "/",
    });
    const key = { algorithm: "ES256", publicJwk: {}, privateKey: new Uint8Array(), createdAt };
    await db.insert(signingKey).values({ ...key, kid: name, activeAt: createdAt, expiresAt });
  }
  await db.insert(signingKey).values({
    kid: "in use",
    algorithm: "ES256",
    publicJwk: {},
    privateKey: new Uint8Array(),
    createdAt: now,
    activeAt: now,
  });
  await deleteExpired({ ...server, log: {} as never });
  const users = async (table: typeof session | typeof challenge | typeof token) =>
    (await db.select().from(table)).map(({ userName }) => userName ?? "nobody").sort();
  expect(await users(challenge)).toEqual([
    "lately decided",
    "lately undecided",
    "open decided",
    "open undecided",
    "today decided",
  ]);
  expect(await users(session)).toEqual(["alice", "lately", "nobody", "open", "today"]);
  expect(await users(token)).toEqual(["lately", "open", "today"]);
  expect((await db.select().from(signIn)).map(({ nonce }) => nonce)).toEqual(["open"]);
  expect((await db.select().from(issuerSession)).map(({ id }) => id)).toEqual([used]);
  const kids = (await db.select().from(signingKey)).map(({ kid }) => kid);
  expect(kids.sort()).toEqual(["in use", "lately", "open", "today"]);
});

test("docs/database.md lists the retention of each table with expiring rows", async () => {
  const text = await Bun.file(new URL("../docs/database.md", import.meta.url)).text();
  const listed = [...text.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
  const tables = Object.values(schema).filter((value) => is(value, PgTable));
  const ending = tables.filter((table) => "expiresAt" in table).map((table) => getTableName(table));
  expect(ending.length).toBeGreaterThan(5);
  expect(listed).toEqual(expect.arrayContaining([...ending, "audit_log", "run", "run_fault", "worker"]));
});

test("deletes more rows than one batch", async () => {
  await using server = await startTestServer();
  const { db, clock } = server;
  await db.execute(sql`
    insert into ${session} (id_hash, created_at, expires_at)
    select sha256(n::text::bytea), ${clock.now().toISOString()}, ${after(clock.now(), -1).toISOString()}
    from generate_series(1, 2500) as n`);
  await deleteExpired({ ...server, log: {} as never });
  expect(await db.$count(session)).toBe(0);
});

describe("the audit log", () => {
  const event = (at: Date) => ({ at, actor: "alice", action: "token.revoked" });

  test("keeps SVC_AUDIT_RETENTION days, by the earlier of two clocks", async () => {
    await using server = await startTestServer({ auditRetention: 90 });
    const { db, clock } = server;
    const now = new Date(Math.min(clock.now().getTime(), Date.now()));
    const kept = after(now, -89 * day);
    await db.insert(auditLog).values([event(after(now, -91 * day)), event(kept), event(now)]);
    await deleteExpired({ ...server, log: {} as never });
    expect((await db.select().from(auditLog)).map(({ at }) => at)).toEqual([kept, now]);
    // One server's clock jumps ahead by ten years.
    clock.advance(3650 * day);
    const today = new Date();
    await db.insert(auditLog).values(event(today));
    await deleteExpired({ ...server, log: {} as never });
    expect((await db.select().from(auditLog)).map(({ at }) => at)).toContainEqual(today);
  });

  test("has a row for each of the ten busiest addresses and one for all others", async () => {
    await using server = await startTestServer();
    const counts = new EventCounts();
    for (let n = 0; n < 3000; n += 1) counts.count("challenge.created", `10.0.${n >> 8}.${n & 255}`);
    for (let n = 1; n <= 10; n += 1) counts.count("challenge.created", `10.0.0.${n}`, n);
    counts.count("challenge.wrong_verifier", "192.0.2.1");
    await counts.flush(server.db, server.clock.now());
    await counts.flush(server.db, server.clock.now());
    const rows = await server.db.select().from(auditLog).orderBy(auditLog.id);
    const seen = rows.map(({ action, actor, address, data }) => [actor, action, address, data.count]);
    const busiest = Array.from({ length: 10 }, (_, n) => [
      "client",
      "challenge.created",
      `10.0.0.${10 - n}`,
      11 - n,
    ]);
    expect(seen).toEqual([
      ...busiest,
      ["client", "challenge.created", null, 3000 - 10],
      ["client", "challenge.wrong_verifier", "192.0.2.1", 1],
    ]);
  });

  test("keeps its counts if its rows cannot be written", async () => {
    await using server = await startTestServer();
    const counts = new EventCounts();
    counts.count("challenge.created", "192.0.2.1", 2);
    const failing = { insert: () => ({ values: () => Promise.reject(new Error("no")) }) };
    await expect(counts.flush(failing as never, server.clock.now())).rejects.toThrow("no");
    counts.count("challenge.created", "192.0.2.1");
    await counts.flush(server.db, server.clock.now());
    const rows = await server.db.select().from(auditLog);
    expect(rows.map(({ address, data }) => [address, data.count])).toEqual([["192.0.2.1", 3]]);
  });
});
