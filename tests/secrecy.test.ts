import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { openSql } from "../drizzle/client.ts";
import { TestBrowser } from "./support/browser/browser.ts";
import { decide, newChallenge, poll, startTestServer } from "./support/http/server.ts";
import { databaseAsText } from "./support/process/traces.ts";

test("logs and tables do not contain T, verifier, token, session id or passwords", async () => {
  await using server = await startTestServer();
  const browser = new TestBrowser();
  const challenge = await newChallenge(server);
  await poll(server, challenge);
  await poll(server, { ...challenge, verifier: "w".repeat(43) });
  await decide(challenge, "approve", browser);
  const { body } = await poll(server, challenge);
  const jwt = body.encoded_jwt as string;
  await server.fetch("/whoami", { headers: { authorization: `Bearer ${jwt}` } });
  await server.fetch(`/whoami?token=${jwt}`, { headers: { cookie: `svc_auth=${jwt}x` } });
  // Also causes errors: a broken query, a broken token, T at the wrong address.
  await server.db.execute("alter table challenge rename column client to client_was");
  expect((await server.fetch(challenge.pollPath)).status).toBe(500);
  expect((await server.fetch(`/challenge_validator/${challenge.token}`)).status).toBe(500);
  await server.db.execute("alter table challenge rename column client_was to client");
  await server.fetch(`/nowhere/${challenge.token}`);
  await server.fetch("/tokens/current", { method: "DELETE", headers: { authorization: `Bearer ${jwt}` } });

  const log = server.logged.join("");
  const sql = openSql(server.databaseUrl, { max: 1 });
  const tables = await databaseAsText(sql);
  await sql.end();
  // The search finds what it should.
  expect(log).toContain("/noauth/v1/:operation/:argument");
  expect(log).toContain(new Bun.CryptoHasher("sha256").update(challenge.token).digest("hex").slice(0, 8));
  expect(tables).toContain("alice@example.com");
  const sessionId = browser.cookies.get(new URL(server.url).host)!.get("svc_session")!;
  const secrets = {
    T: challenge.token,
    verifier: challenge.verifier!,
    token: jwt,
    "the token's signature": jwt.split(".")[2]!,
    "session id": sessionId,
    "key secret": server.config.keySecret!,
    "client secret": server.config.oidcClientSecret!,
    "database password": new URL(server.databaseUrl).password,
  };
  for (const [name, secret] of Object.entries(secrets)) {
    expect(secret.length).toBeGreaterThan(8);
    expect(`${name} in the log: ${log.includes(secret)}`).toBe(`${name} in the log: false`);
    expect(`${name} in a table: ${tables.includes(secret)}`).toBe(`${name} in a table: false`);
    const hex = Buffer.from(secret).toString("hex");
    expect(`${name} in a bytea: ${tables.includes(hex)}`).toBe(`${name} in a bytea: false`);
  }
  const commandLine = await readFile("/proc/self/cmdline", "utf8");
  for (const secret of Object.values(secrets)) expect(commandLine).not.toContain(secret);
});
