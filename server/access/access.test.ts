import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { openPlugins } from "../../core/plugin/open.ts";
import { accessLease, incident, participant } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { builtinPlugins } from "../../plugins/builtin.ts";
import { type AccessTarget, startAccessTarget } from "../../tests/support/domain/access_target.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";
import { revokeLeases } from "../../worker/leases.ts";
import { DatabaseTime } from "../../worker/time.ts";

let server: TestServer;
let target: AccessTarget;
let admin: Person;
let alice: Person;
let bob: Person;
let ids: IncidentIds;
let name: string;
const stop = new AbortController();
let working: Promise<void>;

beforeAll(async () => {
  [server, target] = await Promise.all([
    startTestServer({ pluginCredential: "postgresql-role" }),
    startAccessTarget(),
  ]);
  ids = await insertIncident(server.db, server.clock.now());
  const [row] = await server.db.select().from(incident).where(eq(incident.id, ids.incidentId));
  name = row!.name;
  admin = await personOf(server, "root@example.com", ["admin"]);
  alice = await personOf(server, "alice@example.com", ["oncall"]);
  bob = await personOf(server, "bob@example.com", ["oncall"]);
  ({ working } = await startRevoking());
});
afterAll(async () => {
  stop.abort();
  await working;
  await target[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** What a worker does about leases. */
async function startRevoking(): Promise<{ working: Promise<void> }> {
  const { db, config, clock } = server;
  const log = createLog("silent");
  const time = new DatabaseTime();
  const [now] = await db.execute<{ at: string }>(sql`select clock_timestamp() as at`);
  time.observe(new Date(now!.at), performance.now(), performance.now());
  const deps = { fetch, clock, log, context: { db, config, clock, log } };
  const opened = await openPlugins({
    ...{ config, environment: {}, builtin: builtinPlugins, directory: process.cwd() },
    deps: deps as never,
  });
  const { plugins } = opened;
  return { working: revokeLeases({ db: () => db, time, config, log, plugins }, stop.signal, { poll: 0.1 }) };
}

let made = 0;
/** An access role to the target, as an admin makes it. */
async function makeRole(more: Record<string, unknown> = {}): Promise<string> {
  const slug = `shop-${++made}`;
  const { http, body } = await admin.call("POST", "/access/roles/", {
    ...{ slug, description: "The shop", plugin: "postgresql-role", settings: target.settings },
    ...{ groups: ["oncall"], default_duration: 3600, max_duration: 7200, approval: "none" },
    ...{ incident_required: false, break_glass: false, disabled: false, ...more },
  });
  expect([http, body]).toMatchObject([201, { slug }]);
  return slug;
}

const issue = (who: Person, role: string, more: Record<string, unknown> = {}, headers = {}) =>
  who.call("POST", "/access/leases/", { role, ...more }, headers);
const isGone = (lease: { name: string }) =>
  until("the role to be gone", async () => !(await target.leases()).includes(lease.name), 30);

test("a credential reads what its parent may, and is gone when it is revoked, with its sessions and tables", async () => {
  const role = await makeRole();
  const { http, body: lease } = await issue(alice, role);
  expect([http, lease]).toMatchObject([
    201,
    { role, user: "alice@example.com", state: "Active", credential: { kind: "database" } },
  ]);
  const client = target.open(lease.credential.fields);
  expect(await client`select count(*)::int as n from shop`).toMatchObject([{ n: 2 }]);
  await client`create table mine (id int)`;
  expect(client`delete from shop`).rejects.toThrow("permission denied");
  const { body: revoked } = await alice.call("DELETE", `/access/leases/${lease.id}`);
  expect(revoked.state).toBe("Revoking");
  await isGone(lease);
  expect(client`select 1`).rejects.toThrow();
  await client.end();
  await until(
    "it to be noted",
    async () => (await alice.call("GET", `/access/leases/${lease.id}`)).body.state === "Revoked",
  );
  const log = (
    await server.db.execute(
      sql`select action from audit_log where subject = ${`lease/${lease.id}`} order by id`,
    )
  ).map(({ action }) => action);
  expect(log).toEqual(["access.issued", "access.ending", "access.revoked"]);
});

test("its secret stands in no row of the database", async () => {
  const { body: lease } = await issue(alice, await makeRole());
  const { password } = lease.credential.fields;
  const tables = await server.db.execute<{ name: string }>(
    sql`select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  for (const { name } of tables) {
    const found = await server.db.execute(
      sql`select 1 from ${sql.raw(name)} t where position(${password} in t::text) > 0 or position(${target.settings.password!} in t::text) > 0`,
    );
    expect([name, found.length]).toEqual([name, 0]);
  }
  expect(server.logged.join("")).not.toContain(password);
});

describe("a lease ends", () => {
  const leaseOf = async (more: Record<string, unknown> = {}, role?: string) => {
    const { http, body } = await issue(bob, role ?? (await makeRole()), more);
    expect([http, body.detail]).toEqual([201, undefined]);
    return body as { id: number; name: string };
  };
  const reasonOf = async ({ id }: { id: number }) =>
    (await server.db.select().from(accessLease).where(eq(accessLease.id, id)))[0]!.endReason;

  test("when it expires", async () => {
    const lease = await leaseOf();
    await server.db
      .update(accessLease)
      .set({ dueAt: sql`now()` })
      .where(eq(accessLease.id, lease.id));
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("expired");
  });

  test("when its role is disabled", async () => {
    const role = await makeRole();
    const lease = await leaseOf({}, role);
    const { body, headers } = await admin.call("GET", `/access/roles/${role}`);
    expect(headers.get("etag")).toBe('"1"');
    expect(body.settings.password).toBeUndefined();
    expect((await admin.call("PUT", `/access/roles/${role}`, { ...body, disabled: true })).http).toBe(200);
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("role_disabled");
    expect((await issue(bob, role)).http).toBe(404);
  });

  test("when its user signs out, or the token is revoked", async () => {
    server.clock.advance(1);
    const dana = await personOf(server, "dana@example.com", ["oncall"]);
    const { body: lease } = await issue(dana, await makeRole());
    expect((await dana.call("DELETE", "/tokens/current")).http).toBe(204);
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("signed_out");
  });

  test("when its user signs in without the group", async () => {
    server.clock.advance(1);
    const erin = await personOf(server, "erin@example.com", ["oncall"]);
    const { body: lease } = await issue(erin, await makeRole());
    server.clock.advance(1);
    await personOf(server, "erin@example.com", ["other"]);
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("group_lost");
  });

  test("when its user leaves the incident, and when that is closed", async () => {
    const lease = await leaseOf({ incident: name });
    await server.db
      .update(participant)
      .set({ leftAt: server.clock.now() })
      .where(eq(participant.individualId, ids.bob));
    await isGone(lease);
    expect(await reasonOf(lease)).toBe("left_incident");
    // Who never took part does not lose it by that.
    expect((await issue(bob, await makeRole(), { incident: name })).http).toBe(201);
    const { body: other } = await issue(alice, await makeRole(), { incident: name });
    await server.db.update(incident).set({ status: "Closed", stableAt: sql`now()`, closedAt: sql`now()` });
    await isGone(other);
    expect(await reasonOf(other)).toBe("incident_closed");
    await server.db.update(incident).set({ status: "Active", stableAt: null, closedAt: null });
    await server.db.update(participant).set({ leftAt: null });
  });
});
