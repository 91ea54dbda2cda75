import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deliver } from "../../core/outbox/deliver.ts";
import { openDatabase, openSql, type Sql } from "../../drizzle/client.ts";
import { systemClock } from "../../platform/clock.ts";
import { freePort } from "../../platform/free_port.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { TestBrowser } from "../support/browser/browser.ts";
import { ask } from "../support/browser/sign_in.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { type Pooler, startPgbouncer } from "../support/database/pgbouncer.ts";
import { startTestIssuer } from "../support/http/issuer.ts";
import { Program } from "../support/process/program.ts";
import { listening } from "../support/process/stack.ts";
import { until, within } from "../support/process/until.ts";

/** Two servers and a worker behind a real PgBouncer that lends two connections, for one transaction each (docs/scale.md). */

setDefaultTimeout(120_000);

/** Fewer connections than one process would open. */
const lent = 2;
const directory = mkdtempSync(join(tmpdir(), "svc-pooler-"));
const parts = new AsyncDisposableStack();
let direct: string;
let pooler: Pooler;
let sql: Sql;
/** Without SVC_DATABASE_DIRECT_URL. */
let incomplete: Record<string, string>;
let settings: Record<string, string>;
let servers: string[];
let token: string;
let incidentId: number;

function svc(args: string[], env = settings): Program {
  const { PATH } = process.env;
  return new Program(args, { env: { PATH, HOME: directory, TZ: "UTC", ...env }, cwd: directory });
}

beforeAll(async () => {
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  direct = parts.use(await createTestDatabase()).url;
  sql = parts.adopt(openSql(direct, { max: 1, connection: { application_name: "test" } }), (one) =>
    one.end(),
  );
  pooler = parts.use(await startPgbouncer(direct, lent));
  const issuer = parts.adopt(await startTestIssuer(), (one) => one.stop());
  const ports = [await freePort(), await freePort()];
  incomplete = {
    SVC_DATABASE_URL: pooler.url,
    SVC_PUBLIC_URL: `http://127.0.0.1:${ports[0]}`,
    SVC_DOMAIN: "example.com",
    SVC_OIDC_ISSUER: issuer.url,
    SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
  };
  settings = { ...incomplete, SVC_DATABASE_DIRECT_URL: direct };
  await using init = svc(["database", "init"]);
  expect(await init.exit()).toBe(0);
  servers = await Promise.all(
    ports.map((port) =>
      listening(parts.use(svc(["server", "start", "server/main:app", "--port", String(port)]))),
    ),
  );
  parts.use(svc(["scheduler", "start"]));
});
afterAll(() => parts.disposeAsync());

const asked = (path: string, init: RequestInit = {}) =>
  fetch(servers[1]! + path, {
    ...init,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  });

const count = async (what: string) => Number((await sql.unsafe(`select count(*) as n from ${what}`))[0]?.n);

test("a poll held by one server is answered after a decision on the other", async () => {
  const { challenge_url, polling_url, verifier } = await ask({ url: servers[0]! });
  const headers = { authorization: `Challenge ${verifier}`, prefer: "wait=25" };
  const poll = async (wait: Record<string, string>) => {
    const response = await fetch(servers[1]! + new URL(polling_url).pathname, { headers: wait });
    return (await response.json()) as { status?: string; encoded_jwt?: string };
  };
  expect(await poll({ authorization: headers.authorization })).toEqual({ status: "pending" });
  const held = poll(headers);
  const browser = new TestBrowser();
  const { url, text } = await browser.open(challenge_url);
  await browser.submit(url, text, { decision: "approve" });
  const { encoded_jwt } = await within("the held poll", held);
  expect(encoded_jwt).toBeString();
  token = encoded_jwt!;
});

test("an incident is reported, its steps run, and it can be read repeatedly", async () => {
  const first = async (path: string) =>
    ((await (await asked(path)).json()) as { items: { id: number }[] }).items[0]!.id;
  const body = {
    title: "Behind a pooler",
    description: "",
    visibility: "Open",
    incident_type_id: await first("/incident_types/"),
    incident_priority_id: await first("/incident_priorities/"),
  };
  const response = await asked("/incidents/", { method: "POST", body: JSON.stringify(body) });
  expect(response.status).toBe(201);
  incidentId = ((await response.json()) as { id: number }).id;
  await until(
    "what follows from it",
    async () =>
      (await count("flow_step where state = 'Done'")) > 0 &&
      !(await count("flow_step where state <> 'Done'")),
  );
  // If statements are prepared, each of these is, and 40 at once use all connections of the pool.
  const answers = await Promise.all(Array.from({ length: 40 }, () => asked(`/incidents/${incidentId}`)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test("the worker runs the schedule, and sends", async () => {
  await until("a run", async () => (await count("run where state = 'Done'")) > 0, 90);
  const { db, close } = openDatabase(pooler.url, 1, undefined, { prepare: false, pooled: true });
  const key = { task: "test", what: "message", whom: "all" };
  const one = { key, incidentId, message: { subject: "Sent by a worker", text: "" } };
  const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));
  await db.transaction((tx) => deliver(tx, { clock: systemClock, plugins }, [one]));
  await close();
  await until("the message", async () => (await count("delivery where state = 'Done'")) === 1);
});

test("all processes shared these connections, plus one per server or worker that listens", async () => {
  expect(
    await count("pg_stat_activity where application_name = 'svc listen' and datname = current_database()"),
  ).toBe(3);
  const others = await count(
    "pg_stat_activity where application_name not in ('svc listen', 'test') and datname = current_database()",
  );
  expect(others).toBeLessThanOrEqual(lent);
});

test.each([
  ["server", ["server", "start", "server/main:app", "--port", "0"]],
  ["worker", ["scheduler", "start"]],
  ["task that is run now", ["scheduler", "start", "--eager", "incident-task-sync"]],
  ["schema change", ["database", "upgrade"]],
  ["dump", ["database", "dump"]],
])("with only the pooler's address, a %s reports it and does nothing", async (_, args) => {
  await using program = svc(args, incomplete);
  expect(await program.exit()).toBe(1);
  expect(program.output).toBe(
    "svc: This is the address of a pooler: set SVC_DATABASE_DIRECT_URL to that of PostgreSQL itself (docs/scale.md)\n",
  );
});
