import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dump } from "../drizzle/backup/dump.ts";
import { systemClock } from "../platform/clock.ts";
import { spawnSvc } from "./support/cli/process.ts";
import { using } from "./support/database/backup.ts";
import { type AccessWorld, startAccessWorld } from "./support/domain/access_world.ts";
import { type FakeSts, startFakeSts } from "./support/domain/fake_sts.ts";
import { signInToken } from "./support/http/server.ts";
import { commandLines, databaseAsText, databaseLog } from "./support/process/traces.ts";
import { until } from "./support/process/until.ts";
import { startTestTelemetry, type TestTelemetry } from "./support/telemetry.ts";

// The secret of a credential, a broker's password and a stored key must appear nowhere but in the response.

let world: AccessWorld;
let sts: FakeSts;
let telemetry: TestTelemetry;
let directory: string;
/** The exported traces and metrics. */
let exported = "";
const collector = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    exported += await request.text();
    return Response.json({});
  },
});
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-secrecy-"));
  telemetry = await startTestTelemetry({
    OTEL_TRACES_EXPORTER: "otlp",
    METRIC_PROVIDERS: "otlp",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url.href,
  });
  world = await startAccessWorld(undefined, telemetry.telemetry, "postgresql-role,aws-assume-role");
  sts = startFakeSts();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await telemetry?.[Symbol.asyncDispose]();
  await sts?.stop();
  collector.stop(true);
  await rm(directory, { recursive: true, force: true });
});

/** The files that exist now. */
async function temporaryFiles(): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) found.push(join(entry.parentPath, entry.name));
  return found;
}

test("no table, dump, log, trace, argument or file contains a secret of a credential", async () => {
  const { server, target, admin, alice } = world;
  await using _worker = world.startWorker();
  const key = {
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  };
  const roleArn = "arn:aws:iam::123456789012:role/ops/deploy";
  sts.secrets.set(key.accessKeyId, key.secretAccessKey);
  sts.roles.set(roleArn, { maxSessionSeconds: 7200, keys: { ids: [key.accessKeyId] } });
  const database = await world.makeRole();
  const aws = await world.makeRole({
    plugin: "aws-assume-role",
    settings: { roleArn, endpoint: sts.url, ...key },
  });
  const unreachable = await world.makeRole({ settings: { ...target.settings, port: 9 } });
  await target.sql.unsafe(`alter role ${target.broker} set log_statement = 'all'`);

  const leases = [];
  for (const role of [database, aws]) {
    const { http, body } = await world.issue(alice, role, {});
    expect([role, http]).toEqual([role, 201]);
    leases.push(body);
  }
  expect((await world.issue(alice, unreachable)).http).toBe(503);
  await alice.call("POST", `/access/leases/${leases[0].id}/renew`, { duration: 5000 });
  await admin.call("GET", `/access/roles/${database}/check`);
  for (const { id } of leases) await alice.call("DELETE", `/access/leases/${id}`);

  // The command has the secret in its environment, but `ps` does not show it.
  server.issuer.user = "bob@example.com";
  // The CLI uses the real time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const env = {
    SVC_SERVER: server.url,
    SVC_TOKEN: await signInToken(server),
    HOME: directory,
    TMPDIR: directory,
    PATH: process.env.PATH!,
  };
  const command = ["sh", "-c", 'echo "password $PGPASSWORD"; sleep 1'];
  const running = spawnSvc(["access", "run", database, "--", ...command], env);
  await running.prints("password ");
  const lines = commandLines().join("\n");
  const { stdout } = await running.finished;
  const [, ofCommand = ""] = /^password (.+)$/m.exec(stdout) ?? [];

  await until("the revocations", async () => {
    const rows = await using(server.databaseUrl, (sql) => sql`select state from access_lease`);
    return rows.filter(({ state }) => state !== "Revoked" && state !== "Failed").length <= 1;
  });
  const path = join(directory, "dump.svc");
  await dump({
    url: server.databaseUrl,
    path,
    release: "0",
    clock: systemClock,
  });
  await until("the traces", () => exported.includes("access/leases"));
  const places = {
    tables: await using(server.databaseUrl, databaseAsText),
    "the log": [...server.logged, ...telemetry.logged].join(""),
    "traces and metrics": exported,
    "the target's log": await using(target.url, databaseLog),
    arguments: lines,
    files: (await Promise.all((await temporaryFiles()).map((file) => readFile(file, "latin1")))).join("\n"),
  };
  // Every place has been recorded.
  for (const [place, known] of [
    ["tables", leases[0].name],
    ["the log", "access/leases"],
    ["traces and metrics", "access/leases"],
    ["the target's log", "create role"],
    ["arguments", "sleep 1"],
    ["files", "access_lease"],
  ] as const)
    expect([place, places[place].includes(known)]).toEqual([place, true]);

  const secrets: Record<string, string> = {
    "password of a lease": leases[0].credential.fields.password,
    "password of the command": ofCommand,
    "password of the broker": String(target.settings.password),
    "session's secret": leases[1].credential.fields.secret_access_key,
    "session token": leases[1].credential.fields.session_token,
    "stored key": key.secretAccessKey,
    "token of the user": env.SVC_TOKEN,
  };
  for (const [name, secret] of Object.entries(secrets)) {
    expect([name, secret.length > 8]).toEqual([name, true]);
    const spellings = [secret, Buffer.from(secret).toString("hex"), Buffer.from(secret).toString("base64")];
    spellings.push(encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1));
    for (const [place, text] of Object.entries(places))
      expect([name, place, spellings.some((one) => text.includes(one))]).toEqual([name, place, false]);
  }
});
