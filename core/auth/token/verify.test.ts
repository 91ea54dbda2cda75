import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { token } from "../../../drizzle/schema/index.ts";
import { signInToken, startTestServer, type TestServer } from "../../../tests/support/http/server.ts";
import { until } from "../../../tests/support/process/until.ts";

test("a key verifies only its own algorithm, whatever the token's header says", async () => {
  await using server = await startTestServer();
  const authorization = `Bearer ${await signInToken(server)}`;
  const key = await server.keys.verification((await server.keys.signing()).kid);
  expect(key!.algorithm).toBe("ES256");
  using asked = spyOn(server.keys, "verification").mockResolvedValue({ ...key!, algorithm: "Ed25519" });
  expect((await server.fetch("/whoami", { headers: { authorization } })).status).toBe(401);
  asked.mockRestore();
  expect((await server.fetch("/whoami", { headers: { authorization } })).status).toBe(200);
});

describe("a token that this server has verified", () => {
  let server: TestServer;
  let authorization: string;
  const status = async () => (await server.fetch("/whoami", { headers: { authorization } })).status;
  const refused = () => until("a refusal", async () => (await status()) === 401, 60);
  const withoutNotice = async (work: () => Promise<unknown>) => {
    await server.db.execute(sql`alter table token disable trigger svc_token_changed`);
    await work();
    await server.db.execute(sql`alter table token enable trigger svc_token_changed`);
  };
  const revoke = () => server.db.update(token).set({ revokedAt: server.clock.now() });
  beforeEach(async () => {
    server = await startTestServer();
    authorization = `Bearer ${await signInToken(server)}`;
    expect(await status()).toBe(200);
  });
  afterEach(() => server[Symbol.asyncDispose]());

  test("is remembered, and forgotten when its row changes", async () => {
    await withoutNotice(revoke);
    expect(await status()).toBe(200);
    await server.db.update(token).set({ groups: ["others"] });
    await refused();
  });

  test("is refused at once by the server that has revoked it", async () => {
    const headers = { authorization };
    await withoutNotice(() => server.fetch("/tokens/current", { method: "DELETE", headers }));
    expect(await status()).toBe(401);
  });

  test("is refused by all servers once one of them has revoked it", async () => {
    await using another = await server.another();
    const revoked = await another.fetch("/tokens/current", { method: "DELETE", headers: { authorization } });
    expect(revoked.status).toBe(204);
    await refused();
  });

  test("is looked up again when the listening connection was lost", async () => {
    await withoutNotice(revoke);
    await server.db.execute(
      sql`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'svc listen' and datname = current_database()`,
    );
    await refused();
  });

  test("expires by the clock, also after that was set back", async () => {
    server.clock.advance(server.config.tokenLifetime);
    expect(await status()).toBe(401);
    server.clock.advance(-server.config.tokenLifetime);
    expect(await status()).toBe(200);
  });

  test("is refused when its key is withdrawn", async () => {
    using _ = spyOn(server.keys, "verification").mockResolvedValue(undefined);
    expect(await status()).toBe(401);
  });
});
