import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createLog } from "../../../platform/log.ts";
import { startTestServer } from "../../../tests/support/http/server.ts";
import {
  createSession,
  findSession,
  type SignedInSession,
  signInSession,
  signOutSession,
} from "./session.ts";

const address = "192.0.2.1";
const identity = { user: "alice@example.com", groups: [] };

test("a session is signed in under its id once: another tab had the old one", async () => {
  await using server = await startTestServer();
  const context = { ...server, log: createLog("silent") };
  const { session } = await createSession(context);
  expect(await signInSession(context, { session, identity, address })).toBeString();
  expect(await signInSession(context, { session, identity, address })).toBeUndefined();
});

test("a sign-out that cannot be logged does not happen", async () => {
  await using server = await startTestServer();
  const { db, clock, config } = server;
  const context = { db, clock, config, log: createLog("silent") };
  const { session } = await createSession(context);
  const id = (await signInSession(context, { session, identity, address }))!;
  await db.execute(sql`alter table audit_log add check (action <> 'session.signed_out')`);
  const signedIn = (await findSession(context, id)) as SignedInSession;
  await expect(signOutSession(context, { session: signedIn, address })).rejects.toThrow();
  expect(await findSession(context, id)).toEqual(signedIn);
});
