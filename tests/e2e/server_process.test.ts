import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { openSql } from "../../drizzle/client.ts";
import { freePort } from "../../platform/free_port.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../support/database/database.ts";
import { listening, Stack } from "../support/process/stack.ts";
import { until } from "../support/process/until.ts";

/** `svc server start` as a process: startup problems and shutdown. */

setDefaultTimeout(60_000);

let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start();
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
});

const start = (args: string[], env: Record<string, string> = {}) =>
  stack.run(["server", "start", "server/main:app", ...args], { ...stack.serverSettings(), ...env });

/** `/healthcheck`, once it answers with this code. */
async function healthy(address: string, code: number): Promise<Record<string, unknown>> {
  return until(`/healthcheck to be ${code}`, async () => {
    const response = await fetch(`${address}/healthcheck`);
    return response.status === code && ((await response.json()) as Record<string, unknown>);
  });
}

test("with the database down, it starts, answers 503, and recovers with the database, repeatedly", async () => {
  const { hostname, port } = new URL(stack.databaseUrl);
  const closed = await freePort();
  const through = new URL(stack.databaseUrl);
  through.port = String(closed);
  await using server = start(["--port", String(await freePort())], { SVC_DATABASE_URL: through.href });
  const address = await listening(server);
  const down = { status: "unavailable", database: "unreachable", revision: { status: "unknown" } };
  expect(await healthy(address, 503)).toMatchObject(down);
  expect((await fetch(`${address}/noauth/v1/challenge_generator/alice`)).status).toBeGreaterThanOrEqual(500);

  let bridge = await openBridge(closed, hostname, Number(port));
  expect(await healthy(address, 200)).toMatchObject({ status: "ok", database: "ok" });
  expect((await fetch(`${address}/noauth/v1/challenge_generator/alice`)).status).toBe(200);
  await bridge.close();
  expect(await healthy(address, 503)).toMatchObject(down);
  bridge = await openBridge(closed, hostname, Number(port));
  expect(await healthy(address, 200)).toMatchObject({ status: "ok" });
  server.kill("SIGTERM");
  expect(await server.exit(15)).toBe(0);
  await bridge.close();
  // Its log does not contain the password.
  expect(server.output).not.toContain(through.password);
});

test("on a schema that is behind, it names the command, and starts after it was run", async () => {
  await using empty = await createEmptyTestDatabase();
  const env = { SVC_DATABASE_URL: empty.url };
  await using refused = start(["--port", String(await freePort())], env);
  expect(await refused.exit()).toBe(1);
  expect(refused.stderr).toMatch(
    /^svc: The schema is behind: it is at base, .* Run: svc database upgrade\n$/,
  );
  const upgrade = stack.run(["database", "upgrade"], env);
  expect(await upgrade.exit()).toBe(0);
  await using server = start(["--port", String(await freePort())], env);
  expect(await healthy(await listening(server), 200)).toMatchObject({ revision: { status: "ok" } });
});

test("it serves on a newer release's schema only if its revisions are compatible", async () => {
  await using database = await createTestDatabase();
  const env = { SVC_DATABASE_URL: database.url };
  const sql = openSql(database.url, { max: 1 });
  const newest = await sql`select id from revision order by id desc limit 1`;
  const manifest = { message: "next", parents: [newest[0]!.id], compatible: true };
  await sql`insert into revision (id, checksum, down_sql, manifest)
    values ('99990101T0000_next', 'x', '', ${JSON.stringify(manifest)}::text::jsonb)`;
  await using server = start(["--port", String(await freePort())], env);
  const address = await listening(server);
  expect(await healthy(address, 200)).toMatchObject({
    revision: { status: "ahead", current: ["99990101T0000_next"] },
  });
  await sql`update revision set manifest = manifest || '{"compatible": false}' where id = '99990101T0000_next'`;
  expect(await healthy(address, 503)).toMatchObject({ revision: { status: "newer" } });
  await using refused = start(["--port", String(await freePort())], env);
  expect(await refused.exit()).toBe(1);
  expect(refused.stderr).toMatch(/^svc: The schema is newer than this release: .*svc database downgrade\n$/);
  // The older release reverts revisions that it does not have.
  const back = stack.run(["database", "downgrade"], env);
  expect(await back.exit()).toBe(0);
  expect(await healthy(address, 200)).toMatchObject({ revision: { status: "ok" } });
  await sql.end();
});

/** Makes the database reachable at another port, until it is closed. */
async function openBridge(port: number, host: string, to: number): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const bridge: Server = createServer((client) => {
    const database = connect(to, host);
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    client.pipe(database).pipe(client);
  });
  await new Promise<void>((settle) => bridge.listen(port, "127.0.0.1", settle));
  return {
    close: () =>
      new Promise((settle) => {
        bridge.close(() => settle());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
