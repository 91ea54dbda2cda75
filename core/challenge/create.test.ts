import { expect, test } from "bun:test";
import { auditLog, challenge, session, signIn, token } from "../../drizzle/schema/index.ts";
import { startTestServer } from "../../tests/support/server.ts";
import { after } from "../clock.ts";
import { sha256 } from "../secret.ts";
import { deleteExpired } from "./create.ts";

test("what has been over for more than a day is deleted, and nothing else", async () => {
  await using server = await startTestServer();
  const { db, clock } = server;
  const now = clock.now();
  const dayAgo = after(now, -24 * 3600);
  const ends = { open: after(now, 1), kept: dayAgo, gone: after(dayAgo, -0.001) };
  for (const [userName, expiresAt] of Object.entries(ends)) {
    const createdAt = after(expiresAt, -120);
    const id = crypto.randomUUID();
    const hash = sha256(userName);
    await db.insert(session).values({ idHash: hash, userName, createdAt, expiresAt });
    await db.insert(challenge).values({
      ...{ id, tokenHash: hash, userName, createdAt, expiresAt },
      ...{ userCode: "BCDF-GHJK", requestAddress: "192.0.2.1", client: "test" },
    });
    await db.insert(token).values({ jti: id, userName, issuedAt: createdAt, expiresAt });
    await db.insert(auditLog).values({ at: createdAt, actor: userName, action: "challenge.created" });
    await db.insert(signIn).values({
      ...{ stateHash: hash, nonce: userName, createdAt, expiresAt },
      // Of a session that stays, with which it would go otherwise.
      ...{ sessionHash: sha256("open"), pkceVerifier: "", returnTo: "/" },
    });
  }
  await deleteExpired({ ...server, log: {} as never });
  const names = async (table: typeof session | typeof challenge | typeof token) =>
    (await db.select().from(table)).map(({ userName }) => userName).sort();
  for (const table of [session, challenge, token]) expect(await names(table)).toEqual(["kept", "open"]);
  expect((await db.select().from(signIn)).map(({ nonce }) => nonce).sort()).toEqual(["kept", "open"]);
  expect(await db.$count(auditLog)).toBe(3);
});
