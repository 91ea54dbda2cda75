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
import { type Replicas, startReplicas } from "../support/database/replicas.ts";
import { startTestIssuer } from "../support/http/issuer.ts";
import { Program } from "../support/process/program.ts";
import { listening } from "../support/process/stack.ts";
import { until } from "../support/process/until.ts";

/**
 * The primary of two synchronous PostgreSQL servers is killed under load and the standby is promoted (docs/scale.md,
 * "Database failover"). All processes have one address that names both servers.
 */

setDefaultTimeout(180_000);

const directory = mkdtempSync(join(tmpdir(), "svc-failover-"));
const parts = new AsyncDisposableStack();
let replicas: Replicas;
let settings: Record<string, string>;
let server: string;
let token: string;
/** Connects to the current primary, as the processes do. */
let sql: Sql;

function svc(args: string[], env: Record<string, string> = {}): Program {
  const { PATH } = process.env;
  const base = { PATH, HOME: directory, XDG_CONFIG_HOME: join(directory, "config"), TZ: "UTC" };
  return new Program(args, { env: { ...base, ...settings, ...env }, cwd: directory });
}

beforeAll(async () => {
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  replicas = parts.use(await startReplicas());
  sql = parts.adopt(openSql(replicas.url, { max: 2 }), (one) => one.end({ timeout: 0 }));
  const issuer = parts.adopt(await startTestIssuer(), (one) => one.stop());
  const port = await freePort();
  settings = {
    SVC_DATABASE_URL: replicas.url,
    SVC_PUBLIC_URL: `http://127.0.0.1:${port}`,
    SVC_DOMAIN: "example.com",
    SVC_OIDC_ISSUER: issuer.url,
    SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
  };
  await using init = svc(["database", "init"]);
  expect(await init.exit()).toBe(0);
  server = await listening(parts.use(svc(["server", "start", "server/main:app", "--port", String(port)])));
  for (let i = 0; i < 2; i++) parts.use(svc(["scheduler", "start"]));
  await sql`create table begun (slot timestamptz, pid int)`;
  // With a key: if PostgreSQL dies between a run's commit and its end, the run starts again, and finds its effect.
  await sql`create table effect (slot timestamptz primary key, pid int)`;
  const { challenge_url, polling_url, verifier } = await ask({ url: server });
  await approve(challenge_url);
  const poll = await fetch(polling_url, { headers: { authorization: `Challenge ${verifier}` } });
  token = ((await poll.json()) as { encoded_jwt: string }).encoded_jwt;
});
afterAll(() => parts.disposeAsync());

async function approve(challengeUrl: string): Promise<void> {
  const browser = new TestBrowser();
  const { url, text } = await browser.open(challengeUrl);
  await browser.submit(url, text, { decision: "approve" });
}

/** @throws if there is no answer */
const asked = (path: string, body?: unknown) =>
  fetch(server + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const noteClients = 4;

/** Clients that add notes to one incident's timeline, and record acknowledged notes and all answers. */
function startNotes(incident: number): {
  acknowledged: string[];
  /** How often each status was answered. */
  statuses: Map<number, number>;
  stop(): Promise<void>;
} {
  const acknowledged: string[] = [];
  const statuses = new Map<number, number>();
  let stopped = false;
  const client = async (name: number) => {
    for (let i = 0; !stopped; i++) {
      const description = `note ${name}.${i}`;
      const { status } = await asked(`/incidents/${incident}/events/`, { description });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 201) acknowledged.push(description);
      else await Bun.sleep(20);
    }
  };
  const clients = Array.from({ length: noteClients }, (_, name) => client(name));
  return {
    acknowledged,
    statuses,
    stop: async () => {
      stopped = true;
      await Promise.all(clients);
    },
  };
}

/** Workers of a task that is due every second and writes one row for each slot through its run. */
function startTicking(): AsyncDisposable {
  const program = join(import.meta.dir, "../support/domain/schedule_program.ts");
  const workers = [0, 1].map(() =>
    Bun.spawn([process.execPath, program], {
      env: { PATH: process.env.PATH, SVC_DATABASE_URL: replicas.url, SVC_TEST_NOTES_URL: replicas.url },
      stdio: ["ignore", "ignore", "ignore"],
    }),
  );
  return {
    [Symbol.asyncDispose]: async () => {
      for (const worker of workers) worker.kill("SIGTERM");
      await Promise.all(workers.map((worker) => worker.exited));
    },
  };
}

const count = async (what: string) => Number((await sql.unsafe(`select count(*) as n from ${what}`))[0]?.n);

test("a failover under load loses no acknowledged write, slot or message, and waiting logins continue", async () => {
  const kinds = await Promise.all(
    ["/incident_types/", "/incident_priorities/"].map(async (path) => {
      const { items } = (await (await asked(path)).json()) as { items: { id: number }[] };
      return items[0]!.id;
    }),
  );
  const report = { title: "Failover", description: "", visibility: "Open" };
  const reported = await asked("/incidents/", {
    ...report,
    incident_type_id: kinds[0],
    incident_priority_id: kinds[1],
  });
  expect(reported.status).toBe(201);
  const { id } = (await reported.json()) as { id: number };
  await using login = svc(["login", "alice@example.com", "--no-browser", "--server", server]);
  const [, challenge] = await login.says(/(http\S+\/challenge_validator\/\S+)/);
  const ticking = startTicking();
  const notes = startNotes(id);
  await until("some load", async () => notes.acknowledged.length > 50 && (await count("effect")) > 2);

  await replicas.primary.kill();
  await until("refusals", () => notes.statuses.has(503));
  const before = notes.acknowledged.length;
  await replicas.standby.promote();
  const refused = notes.statuses.get(503)!;
  await until("a write that is acknowledged", () => notes.acknowledged.length > before);
  // Of each client, at most the request that it had sent before.
  expect(notes.statuses.get(503)! - refused).toBeLessThanOrEqual(noteClients);
  await until("more of them", () => notes.acknowledged.length > before + 4);
  const ticksBefore = await until("the new primary", () => count("effect").catch(() => undefined));
  await until("the schedule", async () => (await count("effect")) > ticksBefore + 3);
  await notes.stop();
  await ticking[Symbol.asyncDispose]();

  // All failures were answers that ask to retry.
  expect([...notes.statuses.keys()].sort()).toEqual([201, 503]);
  const kept = await sql<{ description: string }[]>`select description from event where incident_id = ${id}`;
  const there = new Set(kept.map(({ description }) => description));
  expect(notes.acknowledged.filter((note) => !there.has(note))).toEqual([]);

  const runs = await sql<{ slot: Date; state: string; missed: number; effects: number }[]>`
    select slot, state, coalesce((result #>> '{missed_slots,count}')::int, 0) as missed,
      (select count(*)::int from effect where effect.slot = run.slot) as effects
    from run where task = 'tick' order by slot`;
  // A stopped worker leaves unfinished work to others.
  if (runs.at(-1)?.state === "Running") runs.pop();
  for (const [i, { slot, missed, state, effects }] of runs.entries()) {
    const last = runs[i - 1]?.slot ?? slot;
    expect({ slot, state, effects }).toEqual({ slot, state: "Done", effects: 1 });
    expect((slot.getTime() - last.getTime()) / 1000).toBe(i === 0 ? 0 : 1 + missed);
  }

  await approve(challenge!);
  expect(await login.exit()).toBe(0);
  expect(login.output).toContain("as alice@example.com");

  const { db, close } = openDatabase(replicas.url, 1);
  const one = {
    key: { task: "test", what: "message", whom: "all" },
    incidentId: id,
    message: { subject: "After the failover", text: "" },
  };
  const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));
  await db.transaction((tx) => deliver(tx, { clock: systemClock, plugins }, [one]));
  await close();
  await until("the message", async () => (await count("delivery where state = 'Done'")) === 1);
  for (const args of [
    ["database", "current"],
    ["scheduler", "status"],
  ]) {
    await using command = svc(args);
    expect(await command.exit()).toBe(0);
  }
});
