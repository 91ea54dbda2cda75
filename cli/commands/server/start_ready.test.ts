import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSql } from "../../../drizzle/client.ts";
import { freePort } from "../../../platform/free_port.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { startSmallDatabase } from "../../../tests/support/database/disk_full.ts";
import { type Started, startServing, useOwnServer } from "../../../tests/support/http/serving.ts";
import { descendants } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const own = useOwnServer();
const otherSecret = "another-secret-for-tests-of-forty-characters";

/** The error of a server that cannot start. */
async function refusal(env: Record<string, string>) {
  const place = ["--port", String(await freePort())];
  const ended = await svc(["server", "start", "server/main:app", ...place], { ...own.env, ...env }, own.path);
  expect([ended.code, ended.stdout]).toEqual([1, ""]);
  return ended.stderr;
}

async function health(server: Pick<Started, "fetch">) {
  const answer = await server.fetch("/healthcheck");
  return { code: answer.status, ...((await answer.json()) as { database: string; keys: string }) };
}

async function run(url: string, ...statements: string[]) {
  const sql = openSql(url, { max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.end();
}

const generate = "/noauth/v1/challenge:generator/alice@example.com";

describe("a server that could not serve does not start", () => {
  test("with a key secret that does not decrypt the signing key", async () => {
    await using server = await own.start();
    expect(await health(server)).toMatchObject({ code: 200, database: "ok", keys: "ok" });
    const said = await refusal({ SVC_KEY_SECRET: otherSecret });
    expect(said).toMatch(/^svc: SVC_KEY_SECRET cannot decrypt signing key \S+: [^\n]+\n$/);
    expect(said).not.toContain(otherSecret);
  });

  test("with a missing key file", async () => {
    const file = join(own.path, "missing.pem");
    expect(await refusal({ SVC_TOKEN_KEY_FILES: file })).toStartWith(
      `svc: SVC_TOKEN_KEY_FILES: cannot read ${file}`,
    );
  });

  test("on a read-only database; a running server reports it in its health until it can write again", async () => {
    const url = own.env.SVC_DATABASE_URL!;
    const name = new URL(url).pathname.slice(1);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`;
    await using server = await own.start();
    await run(url, `alter database ${name} set default_transaction_read_only = on`, cut);
    const unready = await until("it to see that", async () => {
      const answer = await health(server);
      return answer.database === "read_only" && answer;
    });
    expect(unready).toMatchObject({ code: 503, status: "unavailable", keys: "ok" });
    expect(await refusal({})).toMatch(/^svc: The database is read-only [^\n]+ to the primary\n$/);
    const refused = await server.fetch(generate);
    expect([refused.status, await refused.text()]).toEqual([
      503,
      expect.stringContaining("The database is read-only at the moment"),
    ]);
    await run(
      url,
      "set default_transaction_read_only = off",
      `alter database ${name} reset default_transaction_read_only`,
      cut,
    );
    await until("it to recover", async () => (await health(server)).code === 200);
    await server.says('"msg":"ready to serve again"');
    // One line for each change, however often it is checked.
    for (let asked = 0; asked < 5; asked++) await health(server);
    expect(server.said().split('"msg":"ready to serve again"')).toHaveLength(2);
    expect(server.said().split('"database":"read_only"')).toHaveLength(2);
  });
});

test("a full disk of PostgreSQL: /healthcheck and every refusal name it, and no server starts", async () => {
  await using small = await startSmallDatabase();
  const env = { ...own.env, SVC_DATABASE_URL: small.url };
  await using server = await startServing(own.path, [], { app: "server/main:app", env });
  expect(await health(server)).toMatchObject({ code: 200 });
  await small.fill();
  // A page may have free space.
  const refused = await until("a refusal", async () => {
    const answer = await server.fetch(generate);
    return answer.ok ? undefined : answer;
  });
  expect([refused.status, await refused.text()]).toEqual([
    503,
    expect.stringContaining("The disk of the database is full, so nothing can be saved"),
  ]);
  expect(await health(server)).toMatchObject({
    code: 503,
    status: "unavailable",
    database: "disk_full",
    keys: "ok",
  });
  await server.says(`"reason":"PostgreSQL's disk is full"`);
  expect(await refusal(env)).toBe(
    "svc: PostgreSQL's disk is full: free some space, then start the server again\n",
  );
  await small.empty();
  expect(await health(server)).toMatchObject({ code: 200, database: "ok" });
});

describe("SIGHUP: the old workers continue while the new ones could not serve", () => {
  test("a database that does not answer", async () => {
    const { SVC_KEY_SECRET: _key, SVC_DATABASE_URL: _url, ...rest } = own.env;
    const good = `SVC_KEY_SECRET=${own.env.SVC_KEY_SECRET}\nSVC_DATABASE_URL=${own.env.SVC_DATABASE_URL}\n`;
    writeFileSync(join(own.path, ".env"), good);
    const options = { app: "server/main:app", env: rest };
    await using server = await startServing(own.path, ["--workers", "1"], options);
    expect(await health(server)).toMatchObject({ code: 200 });
    const old = descendants(server.pid).map(({ pid }) => pid);
    writeFileSync(join(own.path, ".env"), `${good}SVC_DATABASE_URL=postgres://svc@127.0.0.1:1/svc\n`);
    process.kill(server.pid, "SIGHUP");
    await server.says("not ready: the database");
    expect(await health(server)).toMatchObject({ code: 200 });
    expect(descendants(server.pid).map(({ pid }) => pid)).toEqual(expect.arrayContaining(old));
    expect((await server.end()).code).toBe(0);
  });
});
